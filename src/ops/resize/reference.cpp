// SPDX-License-Identifier: Apache-2.0
#include "tactic/reference.h"

#include <algorithm>
#include <cmath>

#include "ops/resize/op.h"

namespace tw::ops::resize {

namespace {

using ir::ceilDivInt;
using ir::floorDivInt;

// The elements of one axis that make an output, with their weights.
struct Taps
{
    int count = 0;
    int64_t index[4]{};
    double weight[4]{};
    void add(int64_t i, double w)
    {
        if (w == 0)
            return;
        index[count] = i;
        weight[count++] = w;
    }
};

// The coordinate of output o as an exact fraction.
Fraction exactCoordinate(Attrs const& a, Axis const& axis, int64_t o)
{
    if (axis.out == 1 && (a.selector == Selector::kUpper || a.coordinates == Coordinates::kAlignCorners))
        return Fraction{0, 1};
    if (a.coordinates == Coordinates::kAlignCorners)
        return Fraction{o * (axis.in - 1), axis.out - 1};
    auto [over, under] = axis.scale;
    if (a.coordinates == Coordinates::kAsymmetric)
        return Fraction{o * under, over};
    return Fraction{(2 * o + 1) * under - over, 2 * over};
}

int64_t roundOf(Rounding rounding, Fraction c)
{
    switch (rounding) {
    case Rounding::kHalfUp:
        return floorDivInt(2 * c.over + c.under, 2 * c.under);
    case Rounding::kHalfDown:
        return ceilDivInt(2 * c.over - c.under, 2 * c.under);
    case Rounding::kFloor:
        return floorDivInt(c.over, c.under);
    case Rounding::kCeil:
        return ceilDivInt(c.over, c.under);
    }
    return 0;
}

double cubicWeight(double distance, double a)
{
    double const x = std::fabs(distance);
    if (x == 1) // what the polynomials say, without their rounding
        return 0;
    if (x < 1)
        return (a + 2) * x * x * x - (a + 3) * x * x + 1;
    if (x < 2)
        return a * x * x * x - 5 * a * x * x + 8 * a * x - 4 * a;
    return 0;
}

Taps tapsOf(Attrs const& a, Axis const& axis, int64_t o)
{
    Taps taps;
    Fraction const c = exactCoordinate(a, axis, o);
    auto clamped = [&](int64_t i) { return std::clamp<int64_t>(i, 0, axis.in - 1); };
    if (a.mode == Mode::kNearest) {
        taps.add(clamped(roundOf(a.rounding, c)), 1);
        return taps;
    }
    int64_t const base = floorDivInt(c.over, c.under);
    double const rest = double(c.over - base * c.under) / double(c.under); // [0, 1)
    int const first = a.mode == Mode::kLinear ? 0 : -1, last = a.mode == Mode::kLinear ? 1 : 2;
    double sum = 0;
    for (int k = first; k <= last; ++k) {
        bool const outside = base + k < 0 || base + k >= axis.in;
        double const w = a.mode == Mode::kCubic ? cubicWeight(rest - k, a.cubicCoeff) : k == 0 ? 1 - rest : rest;
        if (a.excludeOutside && outside)
            continue;
        taps.add(clamped(base + k), w);
        sum += w;
    }
    if (a.excludeOutside)
        for (int k = 0; k < taps.count; ++k)
            taps.weight[k] /= sum;
    return taps;
}

} // namespace

Result<void> reference(RefContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    TensorRef const &x = ctx.in(0), &y = ctx.out();
    int const rank = x.dims.rank;
    Extents const strides = stridesOf(x.dims);
    Counter o(y.dims);
    for (int64_t at = 0; at < y.count(); ++at, o.next()) {
        if (!ctx.wants(at))
            continue;
        Taps taps[kMaxRank];
        for (int i = 0; i < rank; ++i)
            taps[i] = tapsOf(a, axisOf(a, x.dims, y.dims, i), o.at[i]);
        auto mix = [&](auto& self, int axis, int64_t offset) -> double {
            if (axis == rank)
                return x.get(offset);
            double sum = 0;
            for (int k = 0; k < taps[axis].count; ++k)
                sum += taps[axis].weight[k] * self(self, axis + 1, offset + taps[axis].index[k] * strides[axis]);
            return sum;
        };
        double v = mix(mix, 0, 0);
        if (isQuantized(x.type)) // to 2^-20 first, so that the order of the sum does not decide at a half
            v = std::nearbyint(v * 0x1p20) * 0x1p-20;
        y.setReal(at, v);
    }
    return {};
}

} // namespace tw::ops::resize
