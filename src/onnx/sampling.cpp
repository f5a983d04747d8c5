// SPDX-License-Identifier: Apache-2.0
#include "onnx/sampling.h"

namespace tw::onnx {

namespace {

using nvinfer1::GatherMode;
using nvinfer1::InterpolationMode;
using nvinfer1::SampleMode;
using nvinfer1::UnaryOperation;
using Op = nvinfer1::ElementWiseOperation;

// One of the elements round a place, along one axis.
struct Neighbour
{
    ITensor *index, *weight; // [n, p]: kINT32, in the image; FLOAT, 0 where it was outside and has to be
};

Neighbour neighbour(ImportContext& ctx, ITensor& whole, ITensor* weight, Size const& extent, SampleMode outside)
{
    ITensor& last = ctx.unsqueeze(ctx.asScalar(ctx.sub(extent, 1)), {0, 1});
    ITensor& index = ctx.cast(whole, DataType::kINT32);
    ITensor& clamped = ctx.elementwise(ctx.elementwise(index, last, Op::kMIN), ctx.scalarLike(0, index), Op::kMAX);
    if (outside == SampleMode::kFILL) {
        // Of the number, not of the index: what INT32 does not hold is outside.
        ITensor& inside =
            ctx.cast(ctx.elementwise(whole, ctx.cast(clamped, DataType::kFLOAT), Op::kEQUAL), DataType::kFLOAT);
        weight = weight ? &ctx.elementwise(*weight, inside, Op::kPROD) : &inside;
    }
    return {&clamped, weight};
}

std::vector<Neighbour> neighbours(ImportContext& ctx, ITensor& place, Size const& extent, InterpolationMode mode,
                                  SampleMode outside)
{
    if (mode == InterpolationMode::kNEAREST)
        return {neighbour(ctx, ctx.unary(place, UnaryOperation::kROUND), nullptr, extent, outside)};
    ITensor& below = ctx.unary(place, UnaryOperation::kFLOOR);
    ITensor& share = ctx.elementwise(place, below, Op::kSUB);
    ITensor& one = ctx.scalarLike(1, share);
    return {neighbour(ctx, below, &ctx.elementwise(one, share, Op::kSUB), extent, outside),
            neighbour(ctx, ctx.elementwise(below, one, Op::kSUM), &share, extent, outside)};
}

} // namespace

ITensor& sampledAt(ImportContext& ctx, ITensor& x, std::vector<ITensor*> const& places, InterpolationMode mode,
                   SampleMode outside)
{
    Sizes const size = ctx.sizesOf(x);
    std::vector<std::vector<Neighbour>> axes;
    Size volume(1);
    for (size_t a = 0; a < places.size(); ++a) {
        axes.push_back(neighbours(ctx, *places[a], size[a + 2], mode, outside));
        volume = ctx.mul(volume, size[a + 2]);
    }
    ITensor& flat = ctx.reshape(x, Sizes{size[0], size[1], volume});
    Sizes const gathered{size[0], size[1], ctx.sizesOf(*places[0])[1]};
    ITensor* sum = nullptr;
    // Every choice of a neighbour along each axis: a corner of the cell round the place.
    size_t const choices = axes[0].size() == 1 ? 1 : size_t(1) << axes.size();
    for (size_t choice = 0; choice < choices; ++choice) {
        ITensor *index = nullptr, *weight = nullptr;
        for (size_t a = 0; a < axes.size(); ++a) {
            Neighbour const& n = axes[a][choice >> a & 1];
            if (index) {
                ITensor& extent = ctx.unsqueeze(ctx.asScalar(size[a + 2]), {0, 1});
                index = &ctx.elementwise(ctx.elementwise(*index, extent, Op::kPROD), *n.index, Op::kSUM);
            } else {
                index = n.index;
            }
            if (n.weight)
                weight = weight ? &ctx.elementwise(*weight, *n.weight, Op::kPROD) : n.weight;
        }
        ITensor* part = &ctx.gather(flat, ctx.expand(ctx.unsqueeze(*index, {1}), gathered), GatherMode::kELEMENT, 2);
        if (weight)
            part = &ctx.elementwise(*part, ctx.cast(ctx.unsqueeze(*weight, {1}), x.getType()), Op::kPROD);
        sum = sum ? &ctx.elementwise(*sum, *part, Op::kSUM) : part;
    }
    return *sum;
}

} // namespace tw::onnx
