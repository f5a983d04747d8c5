// SPDX-License-Identifier: Apache-2.0
#include "tactic/reference.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/reduce/op.h"

namespace tw::ops::reduce {

namespace {

// In the reals; halves and floats are exact in double.
struct RealValue
{
    double value;

    explicit RealValue(Kind kind)
    {
        double const inf = std::numeric_limits<double>::infinity();
        value = kind == Kind::kProd ? 1 : kind == Kind::kMax ? -inf : kind == Kind::kMin ? inf : 0;
    }
    void join(Kind kind, double v)
    {
        if (kind == Kind::kSum || kind == Kind::kAvg)
            value += v;
        else if (kind == Kind::kProd)
            value *= v;
        else if (std::isnan(v) || (kind == Kind::kMax ? v > value : v < value))
            value = v;
    }
};

double entering(Before before, double v)
{
    return before == Before::kAbs ? std::fabs(v) : before == Before::kSquare ? v * v : v;
}
double leaving(After after, double v)
{
    return after == After::kSqrt ? std::sqrt(v) : after == After::kLog ? std::log(v) : v;
}

// In the integers: products of i32 wrap (as the sums' truncation does), those of i8 stay where they saturate.
struct WholeValue
{
    int64_t value;
    bool wide; // i32

    WholeValue(Kind kind, bool isWide) : wide(isWide)
    {
        int64_t const low = wide ? INT32_MIN : -128, high = wide ? INT32_MAX : 127;
        value = kind == Kind::kProd ? 1 : kind == Kind::kMax ? low : kind == Kind::kMin ? high : 0;
    }
    void join(Kind kind, int64_t v)
    {
        if (kind == Kind::kSum || kind == Kind::kAvg)
            value += v;
        else if (kind == Kind::kMax)
            value = std::max(value, v);
        else if (kind == Kind::kMin)
            value = std::min(value, v);
        else if (wide)
            value = int64_t(int32_t(uint32_t(uint64_t(value) * uint64_t(v))));
        else
            value = std::clamp<int64_t>(value * v, -1000, 1000); // from 128 on it leaves the range for good, unless a 0
    }
    int64_t result(Kind kind, int64_t count) const
    {
        int64_t v = value;
        if (kind == Kind::kAvg && count == 0)
            v = wide ? 0 : -128;
        else if (kind == Kind::kAvg)
            v = wide ? value / count : int64_t(std::nearbyint(double(value) / double(count)));
        return wide ? v : std::clamp<int64_t>(v, -128, 127);
    }
};

} // namespace

Result<void> reference(RefContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    TensorRef const &x = ctx.in(0), &y = ctx.out();
    Extents kept = x.dims, reduced = x.dims; // counters of the kept axes and of the reduced ones
    for (int i = 0; i < x.dims.rank; ++i)
        (a.has(i) ? kept : reduced)[i] = 1;
    Extents const strides = stridesOf(x.dims);
    int64_t const count = reduced.volume();
    Counter outer(kept);
    if (a.isLogSumExp()) {
        for (int64_t at = 0; at < y.count(); ++at, outer.next()) {
            auto each = [&](auto const& with) {
                Counter inner(reduced);
                for (int64_t k = 0; k < count; ++k, inner.next())
                    with(x.get(outer.offset(strides) + inner.offset(strides)));
            };
            RealValue most(Kind::kMax);
            double sum = 0;
            each([&](double v) { most.join(Kind::kMax, v); });
            each([&](double v) { sum += std::exp(v - most.value); });
            y.set(at, std::isfinite(most.value) ? most.value + std::log(sum) : most.value);
        }
        return {};
    }
    for (int64_t at = 0; at < y.count(); ++at, outer.next()) {
        RealValue real(a.kind);
        WholeValue whole(a.kind, x.type == DataType::kInt32);
        Counter inner(reduced);
        for (int64_t k = 0; k < count; ++k, inner.next()) {
            int64_t const from = outer.offset(strides) + inner.offset(strides);
            if (isFloating(x.type))
                real.join(a.kind, entering(a.before, x.get(from)));
            else
                whole.join(a.kind, x.getInt(from));
        }
        if (isFloating(x.type)) // 0 / 0 is NaN
            y.set(at, leaving(a.after, a.kind == Kind::kAvg ? real.value / double(count) : real.value));
        else
            y.setInt(at, whole.result(a.kind, count));
    }
    return {};
}

} // namespace tw::ops::reduce
