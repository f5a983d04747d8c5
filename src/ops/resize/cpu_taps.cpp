// SPDX-License-Identifier: Apache-2.0
#include "ops/resize/cpu_taps.h"

#include <algorithm>

namespace tw::ops::resize {

Coordinate coordinateOf(Attrs const& a, Axis const& axis, int64_t o)
{
    switch (a.coordinates) {
    case Coordinates::kAlignCorners:
        return axis.out == 1 ? Coordinate{0, 1} : Coordinate{o * (axis.in - 1), axis.out - 1};
    case Coordinates::kAsymmetric:
        return Coordinate{o * axis.scale.under, axis.scale.over};
    case Coordinates::kHalfPixel:
        break;
    }
    if (axis.out == 1 && a.selector == Selector::kUpper)
        return Coordinate{0, 1};
    return Coordinate{(2 * o + 1) * axis.scale.under - axis.scale.over, 2 * axis.scale.over};
}

template <class Acc>
void fillTable(Attrs const& a, Axis const& axis, TapTable<Acc> t)
{
    for (int64_t o = 0; o < axis.out; ++o, t.index += kMaxTaps, t.weight += kMaxTaps) {
        Coordinate const c = coordinateOf(a, axis, o);
        int64_t const base = c.floor();
        double const rest = double(c.number - base * c.unit) / double(c.unit); // [0, 1)
        double w[kMaxTaps]{};
        if (a.mode == Mode::kLinear) {
            w[1] = 1 - rest;
            w[2] = rest;
        } else { // the polynomials of distances 1 + r, r, 1 - r, 2 - r
            double const k = a.cubicCoeff, r = rest, s = 1 - rest;
            w[0] = ((k * (r + 1) - 5 * k) * (r + 1) + 8 * k) * (r + 1) - 4 * k;
            w[1] = ((k + 2) * r - (k + 3)) * r * r + 1;
            w[2] = ((k + 2) * s - (k + 3)) * s * s + 1;
            w[3] = ((k * (s + 1) - 5 * k) * (s + 1) + 8 * k) * (s + 1) - 4 * k;
            if (rest == 0) { // exactly on element `base`: no trace of the others
                w[0] = w[2] = w[3] = 0;
                w[1] = 1;
            }
        }
        double sum = 0;
        for (int k = 0; k < kMaxTaps; ++k) {
            int64_t const i = base - 1 + k;
            if (a.excludeOutside && (i < 0 || i >= axis.in))
                w[k] = 0;
            sum += w[k];
            t.index[k] = int32_t(std::clamp<int64_t>(i, 0, axis.in - 1));
        }
        for (int k = 0; k < kMaxTaps; ++k)
            t.weight[k] = Acc(a.excludeOutside ? w[k] / sum : w[k]);
    }
}

template void fillTable(Attrs const&, Axis const&, TapTable<float>);
template void fillTable(Attrs const&, Axis const&, TapTable<double>);

} // namespace tw::ops::resize
