// SPDX-License-Identifier: Apache-2.0
#include "ops/resize/cuda_scale.h"

#include <numeric>

#include "base/format.h"
#include "kernels/cuda/common/generate.h"
#include "kernels/cuda/common/prelude.h"
#include "tactic/cuda_tactic.h"

namespace tw::ops::resize {

Scale scaleOf(Attrs const& a, Axis const& axis)
{
    int64_t times = 0, plus = 0, by = 1;
    int64_t const over = axis.scale.over, under = axis.scale.under;
    bool const isCorner = a.coordinates == Coordinates::kAlignCorners;
    if (axis.out == 1 && (a.selector == Selector::kUpper || isCorner)) {
    } else if (isCorner) {
        times = axis.in - 1;
        by = axis.out - 1;
    } else if (a.coordinates == Coordinates::kAsymmetric) {
        times = under;
        by = over;
    } else { // half pixels
        times = 2 * under;
        plus = under - over;
        by = 2 * over;
    }
    if (a.mode == Mode::kNearest) {
        bool const isHalf = a.rounding == Rounding::kHalfUp || a.rounding == Rounding::kHalfDown;
        if (isHalf) { // of half as fine steps
            times *= 2;
            plus = 2 * plus + by;
            by *= 2;
        }
        if (a.rounding == Rounding::kHalfDown)
            plus -= 1;
        else if (a.rounding == Rounding::kCeil)
            plus += by - 1;
    }
    Scale s{.by = cuda::divBy(by),
            .step = cuda::divBy(times),
            .times = times,
            .plus = plus + by,
            .in = axis.in,
            .out = axis.out,
            .inverse = 1.0F / float(by)};
    return s;
}

bool isLong(Scale const& s)
{
    return s.times * s.out + s.plus > INT32_MAX - int64_t(s.by.d);
}

Bands bandsOf(Scale const& tall, int64_t mostRows, bool isNearest)
{
    int64_t const by = int64_t(tall.by.d), period = by / std::gcd(tall.times, by);
    Bands b{.rows = cuda::ceilDiv(tall.out, cuda::ceilDiv(tall.out, mostRows)),
            .isPeriodic = period <= mostRows && tall.times > 0};
    if (b.isPeriodic)
        b.rows = cuda::ceilDiv(b.rows, period) * period;
    b.count = cuda::ceilDiv(tall.out, b.rows);
    int64_t const phase = b.isPeriodic ? tall.plus % by : by - 1;
    b.seen = ((b.rows - 1) * tall.times + phase) / by + (isNearest ? 1 : 2);
    return b;
}

ImagePlan::ImagePlan(Problem const& p)
{
    auto const& a = p.node->attrsAs<Attrs>();
    Extents const &x = p.inputs[0].dims, &y = p.outputs[0].dims;
    tall = scaleOf(a, axisOf(a, x, y, y.rank - 2));
    wide = scaleOf(a, axisOf(a, x, y, y.rank - 1));
}

std::string sizeConstants(Scale const& tall, Scale const& wide, Bands const& bands, bool isNearest)
{
    using cuda::constant;
    return constant("TALL", tall.out) + constant("WIDE", wide.out) + constant("TALL_X", tall.in) +
           constant("WIDE_X", wide.in) + constant("ROWS", bands.rows) + constant("BANDS", bands.count) +
           constant("SEEN", bands.seen) + constant("TIMES", tall.times) + constant("PLUS", tall.plus) +
           constant("BY", int64_t(tall.by.d)) + constant("TIMES_W", wide.times) + constant("PLUS_W", wide.plus) +
           constant("BY_W", int64_t(wide.by.d)) + cuda::number("INVERSE", tall.inverse) +
           cuda::number("INVERSE_W", wide.inverse) + cuda::flag("kIsNearest", isNearest) +
           cuda::flag("IS_PERIODIC", bands.isPeriodic);
}

Support supportsLastAxes(Problem const& p)
{
    auto const& a = p.node->attrsAs<Attrs>();
    TensorSpec const &x = p.inputs[0], &y = p.outputs[0];
    int const rank = x.dims.rank;
    for (int d = 0; d < rank - 2; ++d) {
        Fraction const scale = axisOf(a, x.maxDims, y.maxDims, d).scale;
        if (!(p.node->inputs[0]->shape[size_t(d)] == p.node->outputs[0]->shape[size_t(d)]) || scale.over != scale.under)
            return Support::no("resizes the last two axes only");
    }
    if (isWide(p) || storageCount(y.format, y.type, y.maxDims) >= INT32_MAX ||
        storageCount(x.format, x.type, x.maxDims) >= INT32_MAX)
        return Support::no("counts in 32 bits");
    return Support::yes();
}

Support supportsKnown(Problem const& p)
{
    auto const& a = p.node->attrsAs<Attrs>();
    TensorSpec const &x = p.inputs[0], &y = p.outputs[0];
    if (a.mode == Mode::kCubic)
        return Support::no("does not mix by cubic weights");
    if (!isFloating(x.type))
        return Support::no(std::string("takes no ") + nameOf(x.type));
    int const rank = x.dims.rank;
    if (rank < 2)
        return Support::no("resizes planes");
    for (ir::Value const* v : {p.node->inputs[0], p.node->outputs[0]})
        for (int d = rank - 2; d < rank; ++d)
            if (!v->shape[size_t(d)].isConst())
                return Support::no("wants to know the planes' size when it is built");
    TW_SUPPORTS(supportsLastAxes(p));
    Scale const tall = scaleOf(a, axisOf(a, x.maxDims, y.maxDims, rank - 2)),
                wide = scaleOf(a, axisOf(a, x.maxDims, y.maxDims, rank - 1));
    if (isLong(tall) || isLong(wide))
        return Support::no("counts coordinates in 32 bits");
    if (tall.in * wide.in * tall.out * wide.out == 0)
        return Support::no("takes no empty planes");
    if (tall.times > (a.mode == Mode::kLinear ? 2 : 1) * int64_t(tall.by.d))
        return Support::no("reads all rows, those between too");
    return Support::yes();
}

} // namespace tw::ops::resize
