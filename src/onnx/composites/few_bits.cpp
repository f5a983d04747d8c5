// SPDX-License-Identifier: Apache-2.0
// MatMulNBits of ONNX Runtime: products by weights of 2, 4 or 8 bits in blocks.
#include "onnx/few_bits.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

namespace tw::onnx {

namespace {

using enum nvinfer1::PluginFieldType;

int64_t inRange(ImportContext& ctx, char const* attr, int64_t v)
{
    if (v < 1 || v > INT32_MAX)
        ctx.invalid(fmt::format("attribute '{}' is {}", attr, v));
    return v;
}

// Of the bytes of an initializer that are to be 32-bit numbers.
Constant asWords(ImportContext& ctx, Value const& b, Dims const& dims)
{
    if (!b.isConstant())
        ctx.fail("its weights (input 1) are no initializer");
    Constant const& given = b.constant();
    bool const isUint8 = given.integers == Integers::kUint8, isBytes = isUint8 && given.later;
    int64_t const bytes = volume(dims) * 4;
    if (given.type != DataType::kINT32 || (given.later && !isUint8) || given.count * (isUint8 ? 1 : 4) != bytes)
        ctx.invalid(
            fmt::format("its weights (input 1) are {} of shape {}, which are not the {} bytes of its K, N, bits "
                        "and block_size",
                        typeName(given.type), describe(given.dims), bytes));
    Constant words;
    words.type = DataType::kINT32;
    words.dims = dims;
    words.count = volume(dims);
    if (isUint8 && !isBytes) { // a number each, as a field of the model has them
        auto* const each = static_cast<uint8_t*>(ctx.allocate(bytes));
        for (int64_t i = 0; i < bytes; ++i)
            each[i] = uint8_t(given.intAt(i));
        words.values = each;
        return words;
    }
    words.values = isBytes ? given.later->integers.bytes : given.values;
    if (reinterpret_cast<uintptr_t>(words.values) % sizeof(int32_t) != 0) {
        void* const copy = ctx.allocate(bytes);
        std::memcpy(copy, words.values, size_t(bytes));
        words.values = copy;
    }
    return words;
}

// A floating input with so many numbers, as [n, blocks], or [n] where blocks is 0.
Value numbers(ImportContext& ctx, int i, char const* what, int64_t n, int64_t blocks)
{
    Value const v = ctx.input(i);
    Dims const dims = makeDims(blocks > 0 ? std::vector{n, blocks} : std::vector{n});
    int64_t const count = volume(v.dims());
    if (!isFloating(v.type()) || (count >= 0 && count != volume(dims)))
        ctx.invalid(fmt::format("its {} (input {}) are {} of shape {}, not {} floating numbers", what, i,
                                typeName(v.type()), describe(v.dims()), volume(dims)));
    if (v.isConstant())
        return Value(ctx.reshaped(v.constant(), dims));
    return Value(ctx.reshape(v.tensor(), dims));
}

// Floating, or packed like the weights, each row of blocks in bytes of its own.
Value zerosOf(ImportContext& ctx, FewBitsWeights const& w, int64_t blocks)
{
    constexpr int kInput = 3;
    Value const v = ctx.input(kInput);
    if (isFloating(v.type()))
        return numbers(ctx, kInput, "zero points", w.n, blocks);
    if (!v.isConstant())
        ctx.fail("its zero points (input 3) are no initializer");
    Constant const& packed = v.constant();
    int64_t const rowBytes = (blocks * w.bits + 7) / 8;
    if (packed.integers != Integers::kUint8 || packed.count != w.n * rowBytes)
        ctx.invalid(fmt::format("its zero points (input 3) of shape {} are not {} bytes of UINT8",
                                describe(packed.dims), w.n * rowBytes));
    ctx.decideBy(v);
    FewBits bytes = packed.later ? packed.later->integers : FewBits();
    Constant zeros = ctx.newConstant(w.scales.type(), makeDims({w.n, blocks}));
    for (int64_t j = 0; j < w.n; ++j)
        for (int64_t g = 0; g < blocks; ++g) {
            int64_t const at = j * rowBytes + g * w.bits / 8;
            auto const byte = unsigned(bytes.bytes ? bytes.at(at) : packed.intAt(at));
            ctx.store(zeros, j * blocks + g, double(byte >> (g * w.bits % 8) & ((1U << w.bits) - 1)));
        }
    return Value(zeros);
}

// The block of each row of the weights; null where they are as they come.
Value groupsOf(ImportContext& ctx, FewBitsWeights const& w, int64_t blocks)
{
    constexpr int kInput = 4;
    Value const v = ctx.input(kInput);
    if (!v.isConstant() || v.type() != DataType::kINT32 || v.constant().later)
        ctx.fail("g_idx (input 4) is no initializer of INT32");
    Constant const& given = v.constant();
    if (given.count != w.k && given.count != blocks * w.block)
        ctx.invalid(fmt::format("g_idx (input 4) has {} numbers for K = {}", given.count, w.k));
    ctx.decideBy(v);
    Constant groups = ctx.newConstant(DataType::kINT32, makeDims({w.k}));
    bool isUsual = true;
    for (int64_t p = 0; p < w.k; ++p) {
        int64_t const g = given.intAt(p);
        if (g < 0 || g >= blocks)
            ctx.invalid(fmt::format("g_idx (input 4) has {} at {}; there are {} blocks", g, p, blocks));
        isUsual = isUsual && g == p / w.block;
        ctx.store(groups, p, double(g));
    }
    return isUsual ? Value() : Value(groups);
}

void importMatMulNBits(ImportContext& ctx)
{
    FewBitsWeights w;
    w.k = inRange(ctx, "K", ctx.requireInt("K"));
    w.n = inRange(ctx, "N", ctx.requireInt("N"));
    w.bits = ctx.attrInt("bits", 4);
    w.block = inRange(ctx, "block_size", ctx.requireInt("block_size"));
    if (w.bits != 2 && w.bits != 4 && w.bits != 8)
        ctx.fail(fmt::format("weights of {} bits cannot be imported (allowed: 2, 4, 8)", w.bits));
    if (w.block < 16 || !std::has_single_bit(uint64_t(w.block)))
        ctx.invalid(fmt::format("block_size is {}, which must be a power of two from 16 on", w.block));
    w.accuracyLevel = ctx.attrInt("accuracy_level", 0);
    if (w.accuracyLevel < 0 || w.accuracyLevel > 4)
        ctx.invalid(fmt::format("accuracy_level is {} (allowed: 0..4)", w.accuracyLevel));
    if (ctx.attrInt("weight_prepacked", 0) != 0)
        ctx.fail("its weights are packed for kernels of ONNX Runtime (weight_prepacked)");
    ITensor& x = ctx.tensor(0);
    Dims const dims = x.getDimensions();
    if (!isFloating(x.getType()) || dims.nbDims < 1 || (dims.d[dims.nbDims - 1] >= 0 && dims.d[dims.nbDims - 1] != w.k))
        ctx.invalid(fmt::format("its input 0 is {} of shape {}; it must have rows of K = {} floating numbers",
                                typeName(x.getType()), describe(dims), w.k));
    int64_t const blocks = (w.k + w.block - 1) / w.block, words = w.block * w.bits / 32;
    if (blocks > INT32_MAX / words || blocks * words > INT32_MAX / w.n)
        ctx.fail("its weights have more than 2^31 - 1 numbers of 32 bits");
    w.words = Value(asWords(ctx, ctx.input(1), makeDims({w.n, blocks, words})));
    ctx.decideBy(ctx.input(1));
    w.scales = numbers(ctx, 2, "scales", w.n, blocks);
    if (ctx.hasInput(3))
        w.zeros = zerosOf(ctx, w, blocks);
    if (ctx.hasInput(4))
        w.groups = groupsOf(ctx, w, blocks);
    if (ctx.hasInput(5))
        w.bias = numbers(ctx, 5, "bias", w.n, 0);
    ctx.setOutput(0, multiplied(ctx, x, w));
}

// w of the numbers [k, n] that the integers stand for; nothing where blocks are not along k, or too short.
std::optional<FewBitsWeights> weightsOf(ImportContext& ctx, QuantizedMatrix const& m, bool isTurned)
{
    // What kernels take at once of a row, what blocks are multiples of; smaller matrices have as few floats as integers in
    // blocks.
    constexpr int64_t kRow = 256, kLeastBlock = 16, kLeastSide = 16;
    Constant const& q = m.q.constant();
    FewBits const integers = q.later ? q.later->integers : FewBits{static_cast<uint8_t const*>(q.values), 8, true};
    bool const rowsAreSummed = isTurned == m.isTransposed; // of q
    FewBitsWeights w;
    w.k = q.dims.d[rowsAreSummed ? 0 : 1];
    w.n = q.dims.d[rowsAreSummed ? 1 : 0];
    w.bits = integers.bits;
    bool const isAlongK = m.axis == (rowsAreSummed ? 0 : 1);
    if (w.k < kLeastSide || w.n < kLeastSide || (m.axis >= 0 && isAlongK != m.inBlocks) ||
        (m.inBlocks && m.block % kLeastBlock != 0))
        return {};
    int64_t const multiple = w.k > kRow ? kRow : kLeastBlock;
    int64_t const row = (w.k + multiple - 1) / multiple * multiple;
    w.block = m.inBlocks ? std::min(m.block, row) : row;
    int64_t const blocks = (w.k + w.block - 1) / w.block, words = w.block * w.bits / 32;
    if (blocks > INT32_MAX / words || blocks * words > INT32_MAX / w.n)
        return {};
    for (Value const& v : {m.q, m.scale, m.zero})
        ctx.decideBy(v);
    Constant packed = ctx.newConstant(DataType::kINT32, makeDims({w.n, blocks, words}));
    auto* const bytes = static_cast<uint8_t*>(const_cast<void*>(packed.values));
    int const up = integers.isSigned ? 1 << (w.bits - 1) : 0, inByte = int(8 / w.bits);
    for (int64_t j = 0; j < w.n; ++j)
        for (int64_t p = 0; p < w.k; ++p) {
            auto const v = unsigned(integers.at(rowsAreSummed ? p * w.n + j : j * w.k + p) + up);
            bytes[(j * blocks * w.block + p) / inByte] |= uint8_t(v << (p % inByte * w.bits));
        }
    w.words = Value(packed);
    // Of [n, blocks], of a scale or zero point that is one, of each column, or of each block of a column.
    auto const spread = [&](auto const& number) {
        Constant c = ctx.newConstant(m.scale.type(), makeDims({w.n, blocks}));
        for (int64_t j = 0; j < w.n; ++j)
            for (int64_t g = 0; g < blocks; ++g)
                ctx.store(c, j * blocks + g,
                          number(m.axis < 0      ? 0
                                 : !m.inBlocks   ? j
                                 : rowsAreSummed ? g * w.n + j
                                                 : j * blocks + g));
        return Value(c);
    };
    Constant const& scale = m.scale.constant();
    w.scales = spread([&](int64_t i) { return scale.floatAt(i); });
    if (!m.zero.isNull()) {
        Constant const& zero = m.zero.constant();
        w.zeros = spread([&](int64_t i) { return zero.floatAt(i) + up; });
    } else if (!integers.isSigned) {
        w.zeros = spread([](int64_t) { return 0.; });
    }
    return w;
}

Constant transposed(ImportContext& ctx)
{
    ctx.withValues(0);
    Constant const& x = ctx.input(0).constant();
    int64_t const rows = x.dims.d[0], columns = x.dims.d[1];
    Constant y = ctx.newConstant(x.type, makeDims({columns, rows}));
    for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j)
            ctx.store(y, j * rows + i, x.floatAt(i * columns + j));
    return y;
}

} // namespace

ITensor* multipliedByIntegers(ImportContext& ctx, bool isTurned)
{
    std::shared_ptr<QuantizedMatrix const> matrix;
    if (Value const b = ctx.optionalInput(1); b.isConstant() && b.constant().later)
        matrix = b.constant().later->matrix;
    if (!matrix)
        return nullptr;
    Dims const b = ctx.input(1).dims();
    ITensor& x = ctx.tensor(0);
    Dims const dims = x.getDimensions();
    int64_t const k = b.d[isTurned ? 1 : 0];
    if (x.getType() == ctx.input(1).type() && dims.nbDims >= 1 &&
        (dims.d[dims.nbDims - 1] < 0 || dims.d[dims.nbDims - 1] == k))
        if (auto const w = weightsOf(ctx, *matrix, isTurned))
            return &multiplied(ctx, x, *w);
    ctx.withValues(1);
    return nullptr;
}

bool keptInteger(ImportContext& ctx)
{
    Constant const& x = ctx.input(0).constant();
    std::vector<int64_t> const order = ctx.attrInts("perm", {1, 0});
    if (ctx.opType() != "Transpose" || !x.later || !x.later->matrix || order != std::vector<int64_t>{1, 0})
        return false;
    Constant y = x;
    auto later = std::make_shared<Later>();
    later->made = ctx.later(transposed);
    auto matrix = std::make_shared<QuantizedMatrix>(*x.later->matrix);
    matrix->isTransposed = !matrix->isTransposed;
    later->matrix = std::move(matrix);
    y.dims = makeDims({x.dims.d[1], x.dims.d[0]});
    y.later = std::move(later);
    ctx.setOutput(0, Value(std::move(y)));
    return true;
}

ITensor& multiplied(ImportContext& ctx, ITensor& x, FewBitsWeights const& w)
{
    auto const k = int32_t(w.k), bits = int32_t(w.bits), block = int32_t(w.block), level = int32_t(w.accuracyLevel);
    std::vector<ITensor*> inputs{&x, &ctx.asTensor(w.words), &ctx.asTensor(w.scales)};
    int32_t given[3] = {};
    Value const* const optional[] = {&w.zeros, &w.groups, &w.bias};
    for (size_t i = 0; i < std::size(optional); ++i)
        if (!optional[i]->isNull()) {
            given[i] = 1;
            inputs.push_back(&ctx.asTensor(*optional[i]));
        }
    nvinfer1::PluginField const fields[] = {{"K", &k, kINT32, 1},
                                            {"bits", &bits, kINT32, 1},
                                            {"block_size", &block, kINT32, 1},
                                            {"zero_points", &given[0], kINT32, 1},
                                            {"g_idx", &given[1], kINT32, 1},
                                            {"bias", &given[2], kINT32, 1},
                                            {"accuracy_level", &level, kINT32, 1}};
    return standardPlugin(ctx, "MatMulNBits", fields, inputs);
}

void register_composites_few_bits(ImporterMap& map)
{
    map.add("MatMulNBits", importMatMulNBits, 1, ImporterMap::kNewestOpset, kMicrosoft);
}

} // namespace tw::onnx
