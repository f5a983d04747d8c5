// SPDX-License-Identifier: Apache-2.0
// GatherBlockQuantized of com.microsoft: rows of a table whose numbers have few bits, with a scale for each block of an axis.
// The table is decompressed at import: y = (q - zero) scale.
#include <bit>

#include "onnx/importer.h"
#include "onnx/integers.h"

namespace tw::onnx {

namespace {

// Numbers of some bits, several in a byte of UINT8, the lower ones first, along the last dimension; or one in each element.
struct Packed
{
    Constant const& c;
    int64_t bits, perElement; // perElement 1: each element is a number of its own

    int64_t count(int axis) const { return c.dims.d[axis] * (axis == c.dims.nbDims - 1 ? perElement : 1); }
    // Of row i of all in front of the last dimension.
    int64_t at(int64_t row, int64_t column) const
    {
        int64_t const v = c.intAt(row * c.dims.d[c.dims.nbDims - 1] + column / perElement);
        return perElement == 1 ? v : v >> (column % perElement * bits) & ((1 << bits) - 1);
    }
};

Packed packedAt(ImportContext& ctx, int input, char const* what, int64_t bits)
{
    Constant const& c = ctx.constant(input, what);
    ctx.decideBy(ctx.input(input));
    bool const isByte = c.integers == Integers::kUint8;
    if (!isByte && c.integers != Integers::kInt4 && c.integers != Integers::kUint4)
        ctx.fail(fmt::format("{} is {}; INT4, UINT4 and UINT8 can be imported", what, typeName(c.type)));
    if (c.dims.nbDims < 1)
        ctx.invalid(fmt::format("{} has no dimension", what));
    return {c, bits, isByte ? 8 / bits : 1};
}

void importGatherBlockQuantized(ImportContext& ctx)
{
    int64_t const bits = ctx.attrInt("bits", 4), block = ctx.attrInt("block_size", 128);
    if (bits != 2 && bits != 4 && bits != 8)
        ctx.invalid(fmt::format("bits is {} (allowed: 2, 4, 8)", bits));
    if (block < 16 || block > INT32_MAX || !std::has_single_bit(uint64_t(block)))
        ctx.invalid(fmt::format("block_size is {} (allowed: powers of two from 16 on)", block));
    Packed const data = packedAt(ctx, 0, "data", bits);
    Constant const scales = ctx.constant(2, "scales");
    ctx.decideBy(ctx.input(2));
    Dims dims = data.c.dims;
    int const rank = dims.nbDims, last = rank - 1;
    int const axis = ctx.axis(ctx.attrInt("gather_axis", 0), rank, "gather_axis"),
              blocked = ctx.axis(ctx.attrInt("quantize_axis", 1), rank, "quantize_axis");
    int64_t const columns = data.count(last), ofBlocks = (data.count(blocked) + block - 1) / block;
    if (columns > INT32_MAX)
        ctx.invalid(fmt::format("data of shape {} has more than 2^31 - 1 numbers in a row", describe(data.c.dims)));
    dims.d[last] = int32_t(columns);
    bool fits = isFloating(scales.type) && scales.dims.nbDims == rank;
    for (int i = 0; fits && i < rank; ++i)
        fits = scales.dims.d[i] == (i == blocked ? ofBlocks : dims.d[i]);
    if (!fits)
        ctx.invalid(
            fmt::format("scales are {} of shape {}; numbers of shape {} have one for each {} along dimension {}",
                        typeName(scales.type), describe(scales.dims), describe(dims), block, blocked));
    std::optional<Packed> zeros;
    if (ctx.hasInput(3)) {
        zeros.emplace(packedAt(ctx, 3, "zero_points", bits));
        Dims const z = zeros->c.dims;
        int64_t const inRow = scales.dims.d[last], elements = (inRow + zeros->perElement - 1) / zeros->perElement;
        fits = z.nbDims == rank && z.d[last] == elements;
        for (int i = 0; fits && i < last; ++i)
            fits = z.d[i] == scales.dims.d[i];
        if (!fits)
            ctx.invalid(fmt::format("zero_points have shape {}, scales {}", describe(z), describe(scales.dims)));
    }
    int64_t const middle = data.perElement > 1 || data.c.integers == Integers::kUint8 ? int64_t(1) << (bits - 1) : 0;

    ctx.allowComputed(volume(dims) * sizeOf(scales.type)); // the model holds them, in fewer bytes
    Constant table = ctx.newConstant(scales.type, dims);
    int64_t const ofScales = scales.dims.d[last];
    int64_t below = 1; // rows of the table below one of the axis of blocks
    for (int i = blocked + 1; i < last; ++i)
        below *= dims.d[i];
    for (int64_t row = 0, i = 0; columns > 0 && row < table.count / columns; ++row) {
        int64_t scaleRow = row;
        if (blocked != last) {
            int64_t const length = dims.d[blocked];
            scaleRow = (row / below / length * ofBlocks + row / below % length / block) * below + row % below;
        }
        for (int64_t column = 0; column < columns; ++column, ++i) {
            int64_t const at = blocked == last ? column / block : column;
            int64_t const zero = zeros ? zeros->at(scaleRow, at) : middle;
            ctx.store(table, i, double(data.at(row, column) - zero) * scales.floatAt(scaleRow * ofScales + at));
        }
    }
    ITensor& indices = ctx.tensor(1);
    ctx.check(indices.getType() == DataType::kINT32,
              fmt::format("indices are {}, not integers", typeName(indices.getType())));
    ctx.setOutput(0, ctx.gather(ctx.asTensor(Value(table)), indices, nvinfer1::GatherMode::kDEFAULT, axis));
}

} // namespace

void register_composites_gather_block_quantized(ImporterMap& map)
{
    map.add("GatherBlockQuantized", importGatherBlockQuantized, 1, ImporterMap::kNewestOpset, kMicrosoft);
}

} // namespace tw::onnx
