// SPDX-License-Identifier: Apache-2.0
// DeformConv: columns of elements at moved places, times the weights.
//   place of (o, k) along an axis = o stride - pad + k dilation + offset[n, group, k, axis, o]; outside of the image 0
//   y[n, m, o] = sum over c, k of w[m, c, k] mask[n, group of c, k, o] x[n, c, place] + b[m]
#include <algorithm>

#include "importers/common/window.h"
#include "onnx/sampling.h"

namespace tw::onnx {

namespace {

using Op = nvinfer1::ElementWiseOperation;

// first + step i in FLOAT for i = 0, 1, ... count - 1.
ITensor& line(ImportContext& ctx, Size const& count, double first, double step)
{
    ITensor& i = ctx.cast(positions(ctx, count), DataType::kFLOAT);
    return ctx.elementwise(ctx.elementwise(i, ctx.scalarLike(step, i), Op::kPROD), ctx.scalarLike(first, i), Op::kSUM);
}

void importDeformConv(ImportContext& ctx)
{
    ITensor &x = ctx.tensor(0), &w = ctx.tensor(1), &offset = ctx.tensor(2);
    Dims const dx = x.getDimensions(), dw = w.getDimensions(), offsets = offset.getDimensions();
    ctx.check(dx.nbDims == 4 && dw.nbDims == 4 && isStatic(dw),
              "images of rank 4 and kernels of known dimensions can be imported; the shapes are " + describe(dx) +
                  " and " + describe(dw));
    WindowAttrs const window = readWindow(ctx, 2, {dw.d + 2, dw.d + 4});
    int64_t const groups = ctx.attrInt("group", 1), moved = ctx.attrInt("offset_group", 1), channels = dx.d[1];
    int64_t const taps = window.kernel[0] * window.kernel[1];
    if (channels < 1 || groups < 1 || moved < 1 || channels % groups != 0 || channels % moved != 0 ||
        dw.d[0] % groups != 0 || dw.d[1] != channels / groups)
        ctx.invalid(fmt::format("group {}, offset_group {} and kernel {} do not fit input of shape {}", groups, moved,
                                describe(dw), describe(dx)));
    if (offsets.nbDims != 4 || (offsets.d[1] >= 0 && offsets.d[1] != moved * taps * 2))
        ctx.invalid(fmt::format("the offsets have shape {}; {} of them are needed for each place", describe(offsets),
                                moved * taps * 2));
    ctx.check(window.mode == nvinfer1::PaddingMode::kEXPLICIT_ROUND_DOWN, "auto_pad cannot be imported");
    Sizes const size = ctx.sizesOf(x), so = ctx.sizesOf(offset);
    Size const points = ctx.mul(so[2], so[3]), images = ctx.mul(size[0], moved);

    // [n * moved, taps, axis, rows, columns]
    ITensor& moves = ctx.reshape(ctx.cast(offset, DataType::kFLOAT), Sizes{images, Size(taps), Size(2), so[2], so[3]});
    std::vector<ITensor*> places;
    for (int axis : {0, 1}) {
        Sizes start(5, Size(0)), part{images, Size(taps), Size(1), so[2], so[3]};
        start[2] = Size(axis);
        ITensor& move =
            ctx.squeeze(ctx.slice(moves, start, part, Sizes(5, Size(1))), {2}); // [n * moved, taps, rows, columns]
        std::vector<float> inKernel;
        for (int64_t k = 0; k < taps; ++k)
            inKernel.push_back(
                float((axis == 0 ? k / window.kernel[1] : k % window.kernel[1]) * window.dilations[size_t(axis)]));
        ITensor& tap = ctx.asTensor(Value(ctx.floatConstant(inKernel, Dims{4, {1, int32_t(taps), 1, 1}})));
        ITensor& at =
            line(ctx, so[size_t(axis + 2)], -double(window.before[size_t(axis)]), double(window.strides[size_t(axis)]));
        ITensor& base = ctx.unsqueeze(at, axis == 0 ? std::vector<int>{0, 1, 3} : std::vector<int>{0, 1, 2});
        ITensor& place = ctx.elementwise(ctx.elementwise(move, base, Op::kSUM), tap, Op::kSUM);
        places.push_back(&ctx.reshape(place, Sizes{images, ctx.mul(points, taps)}));
    }
    ITensor& grouped = ctx.reshape(x, Sizes{images, Size(channels / moved), size[2], size[3]});
    ITensor* columns =
        &sampledAt(ctx, grouped, places, nvinfer1::InterpolationMode::kLINEAR, nvinfer1::SampleMode::kFILL);
    columns = &ctx.reshape(*columns, Sizes{images, Size(channels / moved), Size(taps), points});
    if (ctx.hasInput(4)) {
        ITensor& mask = ctx.reshape(ctx.tensor(4), Sizes{images, Size(1), Size(taps), points});
        columns = &ctx.elementwise(*columns, mask, Op::kPROD);
    }
    int64_t const depth = channels / groups * taps;
    columns = &ctx.reshape(*columns, Sizes{size[0], Size(groups), Size(depth), points});
    ITensor& weights = ctx.reshape(w, makeDims({1, groups, dw.d[0] / groups, depth}));
    ITensor* y = &ctx.reshape(ctx.matmul(weights, *columns), Sizes{size[0], Size(dw.d[0]), so[2], so[3]});
    if (ctx.hasInput(3))
        y = &ctx.elementwise(*y, ctx.reshape(ctx.tensor(3), Dims{4, {1, dw.d[0], 1, 1}}), Op::kSUM);
    ctx.setOutput(0, y);
}

} // namespace

void register_composites_deformable(ImporterMap& map)
{
    map.add("DeformConv", importDeformConv);
}

} // namespace tw::onnx
