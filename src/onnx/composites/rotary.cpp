// SPDX-License-Identifier: Apache-2.0
// RotaryEmbedding (opset 23): the layers that exporters write for it, of which a pass makes one node
// (passes/attention/fuse_rotary.cpp).
#include "onnx/importer.h"

namespace tw::onnx {

namespace {

using Op = nvinfer1::ElementWiseOperation;

// Cosines or sines as [B, S, n], with a dimension of 1 for the heads.
ITensor& factors(ImportContext& ctx, int input, DataType type, int heads, int64_t pairs)
{
    ITensor* t = &ctx.tensor(input);
    bool const isTable = ctx.hasInput(3);
    Dims const d = t->getDimensions();
    if (d.nbDims != (isTable ? 2 : 3))
        ctx.invalid(fmt::format("input {} has shape {}; {} is possible {} position_ids", input, describe(d),
                                isTable ? "[positions, pairs]" : "[batch, length, pairs]",
                                isTable ? "with" : "without"));
    if (d.d[d.nbDims - 1] >= 0 && d.d[d.nbDims - 1] != pairs)
        ctx.invalid(fmt::format("input {} has shape {}; its last dimension must be {}, half of what is turned", input,
                                describe(d), pairs));
    if (!isFloating(t->getType()))
        ctx.invalid(fmt::format("input {} is {}, not FLOAT or HALF", input, typeName(t->getType())));
    t = &ctx.cast(*t, type);
    if (isTable) {
        ITensor& places = ctx.tensor(3);
        if (places.getDimensions().nbDims != 2 || places.getType() != DataType::kINT32)
            ctx.invalid(fmt::format("position_ids is {} of shape {}, not integers of shape [batch, length]",
                                    typeName(places.getType()), describe(places.getDimensions())));
        t = &ctx.gather(*t, places, nvinfer1::GatherMode::kDEFAULT, 0);
    }
    return ctx.unsqueeze(*t, {heads});
}

// x [.., n] from `start` on, every `stride`-th of the last dimension.
ITensor& partOf(ImportContext& ctx, ITensor& x, int64_t start, int64_t count, int64_t stride)
{
    Sizes size = ctx.sizesOf(x), from(size.size(), Size(0)), steps(size.size(), Size(1));
    from.back() = Size(start);
    size.back() = Size(count);
    steps.back() = Size(stride);
    return ctx.slice(x, from, size, steps);
}

void importRotaryEmbedding(ImportContext& ctx)
{
    ITensor& input = ctx.tensor(0);
    Dims const d = input.getDimensions();
    ctx.check(isFloating(input.getType()),
              "its input is " + std::string(typeName(input.getType())) + ", not FLOAT or HALF");
    if (d.nbDims != 3 && d.nbDims != 4)
        ctx.invalid("its input has shape " + describe(d) + "; 3 or 4 dimensions are possible");
    bool const isFlat = d.nbDims == 3;
    int64_t const width = d.d[d.nbDims - 1], heads = isFlat ? ctx.requireInt("num_heads") : 1;
    ctx.check(width > 0, "its input has shape " + describe(d) + "; its last dimension must be known");
    if (heads < 1 || width % heads != 0)
        ctx.invalid(fmt::format("num_heads is {}, the input has shape {}", heads, describe(d)));
    int64_t const size = width / heads, given = ctx.attrInt("rotary_embedding_dim", 0), turned = given ? given : size;
    if (turned < 2 || turned > size || turned % 2 != 0)
        ctx.invalid(
            fmt::format("rotary_embedding_dim is {}; heads of size {} need an even number up to that", turned, size));
    bool const neighbours = ctx.attrInt("interleaved", 0) != 0;
    int64_t const pairs = turned / 2;
    // [B, S, heads, size] or [B, heads, S, size]
    Sizes const outer = ctx.sizesOf(input);
    ITensor& x = isFlat ? ctx.reshape(input, Sizes{outer[0], outer[1], Size(heads), Size(size)}) : input;
    ITensor& c = factors(ctx, 1, x.getType(), isFlat ? 2 : 1, pairs);
    ITensor& s = factors(ctx, 2, x.getType(), isFlat ? 2 : 1, pairs);
    ITensor& head = turned == size ? x : partOf(ctx, x, 0, turned, 1);
    ITensor& first = neighbours ? partOf(ctx, head, 0, pairs, 2) : partOf(ctx, head, 0, pairs, 1);
    ITensor& second = neighbours ? partOf(ctx, head, 1, pairs, 2) : partOf(ctx, head, pairs, pairs, 1);
    ITensor& low =
        ctx.elementwise(ctx.elementwise(first, c, Op::kPROD), ctx.elementwise(second, s, Op::kPROD), Op::kSUB);
    ITensor& high =
        ctx.elementwise(ctx.elementwise(second, c, Op::kPROD), ctx.elementwise(first, s, Op::kPROD), Op::kSUM);
    ITensor* y = nullptr;
    if (neighbours)
        y = &ctx.reshape(ctx.concat({&ctx.unsqueeze(low, {4}), &ctx.unsqueeze(high, {4})}, 4), ctx.sizesOf(head));
    else
        y = &ctx.concat({&low, &high}, 3);
    if (turned != size)
        y = &ctx.concat({y, &partOf(ctx, x, turned, size - turned, 1)}, 3);
    ctx.setOutput(0, isFlat ? ctx.reshape(*y, outer) : *y);
}

} // namespace

void register_composites_rotary(ImporterMap& map)
{
    map.add("RotaryEmbedding", importRotaryEmbedding, 23);
}

} // namespace tw::onnx
