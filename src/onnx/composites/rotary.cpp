// SPDX-License-Identifier: Apache-2.0
// RotaryEmbedding (opset 23), and that of ONNX Runtime.
#include "onnx/rotary.h"

namespace tw::onnx {

namespace {

// Cosines or sines, with a dimension of 1 for the heads.
ITensor& factors(ImportContext& ctx, int input, DataType type, int heads, int64_t pairs)
{
    if (ctx.hasInput(3)) {
        ITensor& places = ctx.tensor(3);
        if (places.getDimensions().nbDims != 2 || places.getType() != DataType::kINT32)
            ctx.invalid(fmt::format("position_ids is {} of shape {}, not integers of shape [batch, length]",
                                    typeName(places.getType()), describe(places.getDimensions())));
        return rotaryFactors(ctx, input, places, type, heads, pairs);
    }
    ITensor& t = ctx.tensor(input);
    Dims const d = t.getDimensions();
    if (d.nbDims != 3)
        ctx.invalid(fmt::format("input {} has shape {}; [batch, length, pairs] is possible without position_ids", input,
                                describe(d)));
    if (d.d[2] >= 0 && d.d[2] != pairs)
        ctx.invalid(fmt::format("input {} has shape {}; its last dimension must be {}, half of what is turned", input,
                                describe(d), pairs));
    if (!isFloating(t.getType()))
        ctx.invalid(fmt::format("input {} is {}, not FLOAT or HALF", input, typeName(t.getType())));
    return ctx.unsqueeze(ctx.cast(t, type), {heads});
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
    Rotary const how{turned, ctx.attrInt("interleaved", 0) != 0};
    // [B, S, heads, size] or [B, heads, S, size]
    Sizes const outer = ctx.sizesOf(input);
    ITensor& x = isFlat ? ctx.reshape(input, Sizes{outer[0], outer[1], Size(heads), Size(size)}) : input;
    ITensor& c = factors(ctx, 1, x.getType(), isFlat ? 2 : 1, turned / 2);
    ITensor& s = factors(ctx, 2, x.getType(), isFlat ? 2 : 1, turned / 2);
    ITensor& y = rotated(ctx, x, c, s, how);
    ctx.setOutput(0, isFlat ? ctx.reshape(y, outer) : y);
}

// Of com.microsoft: the tables are those of positions, which are input 1: one for each token, or that of the first token of
// all. Its attribute `scale` is not used by ONNX Runtime either.
void importMicrosoftRotary(ImportContext& ctx)
{
    ITensor& input = ctx.tensor(0);
    Dims const d = input.getDimensions(), table = ctx.tensor(2).getDimensions();
    ctx.check(isFloating(input.getType()),
              fmt::format("its input is {}, not FLOAT or HALF", typeName(input.getType())));
    if (d.nbDims != 3 && d.nbDims != 4)
        ctx.invalid("its input has shape " + describe(d) + "; 3 or 4 dimensions are possible");
    if (table.nbDims != 2 || table.d[1] < 1)
        ctx.invalid(fmt::format("input 2 has shape {}; [positions, a known half of what is turned] is possible",
                                describe(table)));
    bool const isFlat = d.nbDims == 3;
    int64_t const width = d.d[d.nbDims - 1], turned = 2 * int64_t(table.d[1]);
    ctx.check(width > 0, "its input has shape " + describe(d) + "; its last dimension must be known");
    int64_t const given = ctx.attrInt("num_heads", 0), part = ctx.attrInt("rotary_embedding_dim", 0);
    if (part > 0 && part != turned)
        ctx.invalid(fmt::format("rotary_embedding_dim is {}, input 2 has shape {}", part, describe(table)));
    if (isFlat && part > 0 && given < 1)
        ctx.invalid("rotary_embedding_dim needs num_heads");
    int64_t const heads = !isFlat ? 1 : given > 0 ? given : width / turned, size = heads > 0 ? width / heads : 0;
    if (heads < 1 || width % heads != 0 || turned > size)
        ctx.invalid(fmt::format("num_heads is {}, the input has shape {}, and {} numbers of each head are turned",
                                given, describe(d), turned));
    Sizes const outer = ctx.sizesOf(input);
    ITensor& x = isFlat ? ctx.reshape(input, Sizes{outer[0], outer[1], Size(heads), Size(size)}) : input;
    ITensor* places = &ctx.tensor(1);
    Dims const p = places->getDimensions();
    if (places->getType() != DataType::kINT32 || p.nbDims < 1 || p.nbDims > 2 || (p.nbDims == 1 && p.d[0] != 1))
        ctx.invalid(fmt::format("position_ids is {} of shape {}, not integers of shape [1] or [batch, length]",
                                typeName(places->getType()), describe(p)));
    if (p.nbDims == 1) {
        ITensor& steps = positions(ctx, outer[isFlat ? 1 : 2]);
        places = &ctx.unsqueeze(ctx.elementwise(steps, *places, nvinfer1::ElementWiseOperation::kSUM), {0});
    }
    ITensor& c = rotaryFactors(ctx, 2, *places, x.getType(), isFlat ? 2 : 1, turned / 2);
    ITensor& s = rotaryFactors(ctx, 3, *places, x.getType(), isFlat ? 2 : 1, turned / 2);
    ITensor& y = rotated(ctx, x, c, s, {turned, ctx.attrInt("interleaved", 0) != 0});
    ctx.setOutput(0, isFlat ? ctx.reshape(y, outer) : y);
}

} // namespace

void register_composites_rotary(ImporterMap& map)
{
    map.add("RotaryEmbedding", importRotaryEmbedding, 23);
    map.add("RotaryEmbedding", importMicrosoftRotary, 1, ImporterMap::kNewestOpset, kMicrosoft);
}

} // namespace tw::onnx
