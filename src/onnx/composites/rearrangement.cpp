// SPDX-License-Identifier: Apache-2.0
// DepthToSpace, SpaceToDepth, Expand, Size, EyeLike, Trilu.
#include <algorithm>

#include "onnx/importer.h"
#include "onnx/weights.h"

namespace tw::onnx {

namespace {

using Op = nvinfer1::ElementWiseOperation;

int64_t blockOf(ImportContext& ctx, ITensor& x)
{
    int64_t const block = ctx.requireInt("blocksize");
    if (block < 1 || block > INT32_MAX)
        ctx.invalid(fmt::format("blocksize is {}", block));
    if (x.getDimensions().nbDims != 4)
        ctx.invalid("the input must have rank 4, its shape is " + describe(x.getDimensions()));
    return block;
}

void importDepthToSpace(ImportContext& ctx)
{
    ITensor& x = ctx.tensor(0);
    int64_t const b = blockOf(ctx, x);
    Sizes const s = ctx.sizesOf(x);
    Size const c = ctx.floorDiv(s[1], b * b);
    if (s[1].known() && c.value * b * b != s[1].value)
        ctx.invalid(fmt::format("blocksize {} squared does not divide {} channels", b, s[1].value));
    std::string const mode = ctx.attrString("mode", "DCR");
    ITensor* y = nullptr;
    if (mode == "DCR")
        y = &ctx.transpose(ctx.reshape(x, Sizes{s[0], b, b, c, s[2], s[3]}), {0, 3, 4, 1, 5, 2});
    else if (mode == "CRD")
        y = &ctx.transpose(ctx.reshape(x, Sizes{s[0], c, b, b, s[2], s[3]}), {0, 1, 4, 2, 5, 3});
    else
        ctx.invalid("mode '" + mode + "' is neither DCR nor CRD");
    ctx.setOutput(0, ctx.reshape(*y, Sizes{s[0], c, ctx.mul(s[2], b), ctx.mul(s[3], b)}));
}

void importSpaceToDepth(ImportContext& ctx)
{
    ITensor& x = ctx.tensor(0);
    int64_t const b = blockOf(ctx, x);
    Sizes const s = ctx.sizesOf(x);
    Size const h = ctx.floorDiv(s[2], b), w = ctx.floorDiv(s[3], b);
    std::string const mode = ctx.attrString("mode", "DCR"); // of opset 28
    if (mode != "DCR" && mode != "CRD")
        ctx.invalid("mode '" + mode + "' is neither DCR nor CRD");
    ITensor& split = ctx.reshape(x, Sizes{s[0], s[1], h, b, w, b});
    ITensor& moved =
        ctx.transpose(split, mode == "DCR" ? std::vector<int>{0, 3, 5, 1, 2, 4} : std::vector<int>{0, 1, 3, 5, 2, 4});
    ctx.setOutput(0, ctx.reshape(moved, Sizes{s[0], ctx.mul(s[1], b * b), h, w}));
}

void importExpand(ImportContext& ctx)
{
    ITensor& x = ctx.tensor(0);
    Sizes shape = ctx.sizesFrom(ctx.input(1)), have = ctx.sizesOf(x);
    size_t const rank = std::max(shape.size(), have.size());
    ctx.check(rank <= size_t(Dims::MAX_DIMS), fmt::format("rank {} is above the highest rank of the API, 8", rank));
    shape.insert(shape.begin(), rank - shape.size(), Size(1));
    have.insert(have.begin(), rank - have.size(), Size(1));
    Sizes y;
    for (size_t i = 0; i < rank; ++i) {
        Size const &a = have[i], &b = shape[i];
        if (a.known() && b.known() && a.value != b.value && a.value != 1 && b.value != 1)
            ctx.invalid(fmt::format("dimension {} cannot be broadcast to {}", a.value, b.value));
        y.push_back(a.known() && a.value == 1   ? b
                    : b.known() && b.value == 1 ? a
                    : a.known()                 ? a
                    : b.known()                 ? b
                                                : ctx.max(a, b));
    }
    ctx.setOutput(0, ctx.expand(x, y));
}

// column - row of every place of a matrix: kINT32, [rows, columns].
ITensor& diagonals(ImportContext& ctx, Size const& rows, Size const& columns)
{
    ITensor& row = ctx.unsqueeze(positions(ctx, rows), {1});
    return ctx.elementwise(positions(ctx, columns), row, Op::kSUB);
}

void importEyeLike(ImportContext& ctx)
{
    Dims const d = ctx.input(0).dims();
    if (d.nbDims != 2)
        ctx.invalid("the input must be a matrix, its shape is " + describe(d));
    DataType type = ctx.input(0).type();
    if (ctx.hasAttr("dtype"))
        ctx.check(dataTypeOf(int(std::clamp<int64_t>(ctx.attrInt("dtype", 0), 0, 1000)), type) &&
                      type != DataType::kUINT8,
                  "dtype " + onnxTypeName(int(ctx.attrInt("dtype", 0))) + " cannot be imported");
    int64_t const k = ctx.attrInt("k", 0);
    if (!isStatic(d)) {
        Sizes const sizes = ctx.sizesOf(ctx.tensor(0));
        ITensor& diagonal = diagonals(ctx, sizes[0], sizes[1]);
        ITensor& wanted = ctx.scalarLike(double(k), diagonal);
        ctx.setOutput(0, ctx.cast(ctx.elementwise(diagonal, wanted, Op::kEQUAL), type));
        return;
    }
    Constant y = ctx.newConstant(type, d);
    for (int64_t i = 0; i < d.d[0]; ++i)
        if (k > -d.d[0] && k < d.d[1] && i + k >= 0 && i + k < d.d[1])
            ctx.store(y, i * d.d[1] + i + k, 1);
    ctx.setOutput(0, ctx.asTensor(Value(y)));
}

// Keeps the elements with column - row >= k (upper) or <= k, zero elsewhere.
void importTrilu(ImportContext& ctx)
{
    ITensor& x = ctx.tensor(0);
    Dims const d = x.getDimensions();
    if (d.nbDims < 2)
        ctx.invalid("the input must have two dimensions at least, its shape is " + describe(d));
    Sizes const sizes = ctx.sizesOf(x);
    Size const &rows = sizes[sizes.size() - 2], &columns = sizes[sizes.size() - 1];
    ITensor& k = ctx.hasInput(1) ? ctx.tensor(1) : ctx.scalar(0, DataType::kINT32, 0);
    bool const upper = ctx.attrInt("upper", 1) != 0;
    ITensor& dropped = ctx.elementwise(diagonals(ctx, rows, columns), k, upper ? Op::kLESS : Op::kGREATER);
    if (x.getType() == DataType::kBOOL) {
        ctx.setOutput(0, ctx.elementwise(x, ctx.unary(dropped, nvinfer1::UnaryOperation::kNOT), Op::kAND));
        return;
    }
    ctx.setOutput(0, ctx.select(dropped, ctx.scalarLike(0, x), x));
}

} // namespace

void register_composites_rearrangement(ImporterMap& map)
{
    map.add("DepthToSpace", importDepthToSpace);
    map.add("SpaceToDepth", importSpaceToDepth);
    map.add("Expand", importExpand);
    // Static sizes were folded; here a dimension is only known at run time.
    map.add("Size", [](auto& ctx) { ctx.setOutput(0, ctx.asScalar(ctx.product(ctx.sizesOf(ctx.tensor(0))))); });
    map.add("EyeLike", importEyeLike);
    map.add("Trilu", importTrilu);
}

} // namespace tw::onnx
