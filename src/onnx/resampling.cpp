// SPDX-License-Identifier: Apache-2.0
#include "onnx/resampling.h"

#include <algorithm>
#include <cmath>

namespace tw::onnx {

namespace {

using nvinfer1::InterpolationMode;
using Op = nvinfer1::ElementWiseOperation;

constexpr int64_t kMostNumbers = 1 << 24; // that the import computes for an axis

// Where element o of the output lies in the input.
double coordinate(ImportContext const& ctx, std::string const& name, ResampledAxis const& a, int64_t o)
{
    double const x = double(o), in = double(a.in), length = a.scale * in;
    if (name == "asymmetric")
        return x / a.scale;
    if (name == "half_pixel")
        return (x + 0.5) / a.scale - 0.5;
    if (name == "pytorch_half_pixel")
        return a.out > 1 ? (x + 0.5) / a.scale - 0.5 : 0;
    if (name == "half_pixel_symmetric") // about the middle of the image, whatever was lost in rounding the size down
        return in / 2 * (1 - double(a.out) / length) + (x + 0.5) / a.scale - 0.5;
    if (name == "align_corners")
        return a.out > 1 ? x * (in - 1) / (length - 1) : 0;
    if (name == "tf_half_pixel_for_nn")
        return (x + 0.5) / a.scale;
    if (name == "tf_crop_and_resize")
        return a.out > 1 ? a.roiStart * (in - 1) + x * (a.roiEnd - a.roiStart) * (in - 1) / double(a.out - 1)
                         : (a.roiStart + a.roiEnd) / 2 * (in - 1);
    ctx.fail(
        "attribute 'coordinate_transformation_mode' is '" + name +
        "'; half_pixel, pytorch_half_pixel, half_pixel_symmetric, align_corners, asymmetric, tf_half_pixel_for_nn and "
        "tf_crop_and_resize are possible");
}

double nearest(ImportContext const& ctx, std::string const& rounding, double x)
{
    if (rounding == "round_prefer_floor")
        return std::ceil(x - 0.5);
    if (rounding == "round_prefer_ceil")
        return std::floor(x + 0.5);
    if (rounding == "floor")
        return std::floor(x);
    if (rounding == "ceil")
        return std::ceil(x);
    ctx.fail("attribute 'nearest_mode' is '" + rounding +
             "'; round_prefer_floor, round_prefer_ceil, floor and ceil are possible");
}

// Of an element at this distance.
double weight(Resampling const& r, double distance)
{
    double const d = std::fabs(distance), a = r.cubicCoefficient;
    if (r.mode == InterpolationMode::kLINEAR)
        return std::max(0.0, 1 - d);
    return d <= 1 ? ((a + 2) * d - (a + 3)) * d * d + 1 : d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

bool isOutside(Resampling const& r, ResampledAxis const& a, double x)
{
    return r.coordinates == "tf_crop_and_resize" && (x < 0 || x > double(a.in - 1));
}

// [in, out]: column o has the weights of the elements that make element o; elements beyond the ends are those at the ends.
Constant matrixOf(ImportContext& ctx, Resampling const& r, ResampledAxis const& a, DataType type)
{
    ctx.check(
        a.in * a.out <= kMostNumbers,
        fmt::format("a resize of {} to {} elements as a product has a matrix of more than 2^24 numbers", a.in, a.out));
    // A filter for the smaller image is as many times wider.
    double const shrink = r.antialiases ? std::min(a.scale, 1.0) : 1;
    double const reach = (r.mode == InterpolationMode::kLINEAR ? 1 : 2) / shrink;
    std::vector<double> m(size_t(a.in * a.out), 0);
    for (int64_t o = 0; o < a.out; ++o) {
        double const x = coordinate(ctx, r.coordinates, a, o);
        if (isOutside(r, a, x) || !(std::fabs(x) < 1e9))
            continue;
        double sum = 0;
        for (int64_t i = int64_t(std::floor(x - reach)); i <= int64_t(std::ceil(x + reach)); ++i) {
            double const w = weight(r, (double(i) - x) * shrink);
            if (r.excludesOutside && (i < 0 || i >= a.in))
                continue;
            m[size_t(std::clamp<int64_t>(i, 0, a.in - 1) * a.out + o)] += w;
            sum += w;
        }
        for (int64_t i = 0; sum != 0 && i < a.in; ++i)
            m[size_t(i * a.out + o)] /= sum;
    }
    Constant c = ctx.newConstant(type, Dims{2, {int32_t(a.in), int32_t(a.out)}});
    for (int64_t i = 0; i < c.count; ++i)
        ctx.store(c, i, m[size_t(i)]);
    return c;
}

ITensor& alongAxis(ImportContext& ctx, ITensor& x, Resampling const& r, ResampledAxis const& a)
{
    int const rank = x.getDimensions().nbDims;
    if (r.mode == InterpolationMode::kNEAREST) {
        std::vector<int64_t> from;
        for (int64_t o = 0; o < a.out; ++o) {
            double const at = nearest(ctx, r.rounding, coordinate(ctx, r.coordinates, a, o));
            from.push_back(at >= 0 ? int64_t(std::min(at, double(a.in - 1))) : 0); // NaN is 0, too
        }
        return ctx.gather(x, ctx.asTensor(Value(ctx.intConstant(from))), nvinfer1::GatherMode::kDEFAULT, a.axis);
    }
    Constant matrix = matrixOf(ctx, r, a, x.getType());
    std::vector<int> perm = allAxes(rank);
    std::swap(perm[size_t(a.axis)], perm.back());
    ITensor& last = ctx.transpose(x, perm);
    if (rank == 1)
        return ctx.squeeze(ctx.matmul(ctx.unsqueeze(last, {0}), ctx.asTensor(Value(matrix))), {0});
    ITensor& m = ctx.unsqueeze(ctx.asTensor(Value(matrix)), allAxes(rank - 2));
    return ctx.transpose(ctx.matmul(last, m), perm);
}

// 1 for the elements of the output along the axis that lie in the input, else 0; in a tensor to be broadcast.
ITensor& insides(ImportContext& ctx, Resampling const& r, ResampledAxis const& a, DataType type, int rank)
{
    Dims d = unitDims(rank);
    d.d[a.axis] = int32_t(a.out);
    Constant c = ctx.newConstant(type, d);
    for (int64_t o = 0; o < a.out; ++o)
        ctx.store(c, o, isOutside(r, a, coordinate(ctx, r.coordinates, a, o)) ? 0 : 1);
    return ctx.asTensor(Value(c));
}

} // namespace

ITensor& resampled(ImportContext& ctx, ITensor& x, Resampling const& r, std::vector<ResampledAxis> const& axes)
{
    ITensor *y = &x, *inside = nullptr;
    int const rank = x.getDimensions().nbDims;
    for (ResampledAxis const& a : axes) {
        if (a.in < 1 || a.out < 0 || a.out > INT32_MAX)
            ctx.invalid(fmt::format("axis {} has {} elements and gets {}", a.axis, a.in, a.out));
        ctx.check(a.out <= kMostNumbers,
                  fmt::format("axis {} gets {} elements; the import computes 2^24 at most", a.axis, a.out));
        y = &alongAxis(ctx, *y, r, a);
        if (r.coordinates != "tf_crop_and_resize")
            continue;
        ITensor& here = insides(ctx, r, a, x.getType(), rank);
        inside = inside ? &ctx.elementwise(*inside, here, Op::kPROD) : &here;
    }
    if (!inside)
        return *y;
    ITensor& isInside = ctx.elementwise(*inside, ctx.scalarLike(0.5, *inside), Op::kGREATER);
    return ctx.select(isInside, *y, ctx.scalarLike(r.extrapolation, *y));
}

} // namespace tw::onnx
