// SPDX-License-Identifier: Apache-2.0
// TopK, ArgMax, ArgMin. INT32 data goes through FLOAT, as ITopKLayer takes no INT32.
#include <limits>
#include <numeric>

#include "onnx/importer.h"

namespace tw::onnx {

namespace {

using nvinfer1::TopKOperation;

constexpr int64_t kMostFound = 3840; // by ITopKLayer

struct Best
{
    ITensor *values, *indices;
};

Best best(ImportContext& ctx, ITensor& data, TopKOperation op, int64_t k, int axis)
{
    ITensor* x = &data;
    DataType const type = x->getType();
    if (type == DataType::kINT32) {
        ctx.warn("INT32 data of " + ctx.opType() + " is compared as FLOAT: numbers beyond 2^24 lose their last bits");
        x = &ctx.cast(*x, DataType::kFLOAT);
    }
    int const rank = x->getDimensions().nbDims;
    std::vector<int> perm(static_cast<size_t>(rank)); // exchanges the axis with the last one: its own inverse
    std::iota(perm.begin(), perm.end(), 0);
    bool const swaps = axis < rank - 4; // the layer looks along one of the last four
    if (swaps) {
        std::swap(perm[size_t(axis)], perm.back());
        x = &ctx.transpose(*x, perm);
        axis = rank - 1;
    }
    ctx.check(k >= 1 && k <= kMostFound, fmt::format("k is {}, ITopKLayer takes 1 to {}", k, kMostFound));
    auto& layer = ctx.added(ctx.network().addTopK(*x, op, int32_t(k), 1u << axis));
    ITensor *values = &ctx.out(layer, 0), *indices = &ctx.out(layer, 1);
    if (swaps) {
        values = &ctx.transpose(*values, perm);
        indices = &ctx.transpose(*indices, perm);
    }
    return Best{&ctx.cast(*values, type), indices};
}

// The first k along the axis, where only the run knows k: all were sorted.
ITensor& first(ImportContext& ctx, ITensor& sorted, int axis, Size const& k)
{
    if (k.known())
        return sorted;
    Sizes size = ctx.sizesOf(sorted);
    size[size_t(axis)] = k;
    return ctx.slice(sorted, Sizes(size.size(), Size(0)), size, Sizes(size.size(), Size(1)));
}

// x with as many elements behind it along the axis as the layer can find, none of which is better than another.
ITensor& extended(ImportContext& ctx, ITensor& data, TopKOperation op, int axis)
{
    ITensor& x = data.getType() == DataType::kINT32 ? ctx.cast(data, DataType::kFLOAT) : data;
    Sizes size = ctx.sizesOf(x);
    size[size_t(axis)] = Size(kMostFound);
    double const worst = std::numeric_limits<double>::infinity() * (op == TopKOperation::kMAX ? -1 : 1);
    return ctx.concat({&x, &ctx.expand(ctx.scalarLike(worst, x), size)}, axis);
}

void importTopK(ImportContext& ctx)
{
    ITensor& x = ctx.tensor(0);
    int const rank = x.getDimensions().nbDims;
    ctx.check(rank >= 1, "the input must have at least one dimension");
    int const axis = ctx.axis(ctx.attrInt("axis", -1), rank);
    Size k;
    if (ctx.opset() < 10) {
        k = ctx.requireInt("k");
    } else {
        Sizes const given = ctx.sizesFrom(ctx.input(1));
        if (given.size() != 1)
            ctx.invalid(fmt::format("input 'K' has {} elements, not one", given.size()));
        k = given[0];
    }
    // Unsorted output may have any order; ours is sorted always.
    TopKOperation const op = ctx.attrInt("largest", 1) != 0 ? TopKOperation::kMAX : TopKOperation::kMIN;
    int64_t const extent = x.getDimensions().d[axis];
    bool const isOpen = !k.known() && extent < 0;
    int64_t const most = k.known() ? k.value : isOpen ? kMostFound : extent;
    Best const b = best(ctx, isOpen ? extended(ctx, x, op, axis) : x, op, most, axis);
    ctx.setOutput(0, ctx.cast(first(ctx, *b.values, axis, k), x.getType()));
    ctx.setOutput(1, first(ctx, *b.indices, axis, k));
}

void importArg(ImportContext& ctx, TopKOperation op)
{
    ITensor* x = &ctx.tensor(0);
    int const rank = x->getDimensions().nbDims;
    ctx.check(rank >= 1, "the input must have at least one dimension");
    int const axis = ctx.axis(ctx.attrInt("axis", 0), rank);
    bool const fromEnd = ctx.attrInt("select_last_index", 0) != 0;
    Size last;
    if (fromEnd) { // of equal elements the first wins: so turn the axis round
        Sizes const size = ctx.sizesOf(*x);
        last = ctx.sub(size[size_t(axis)], 1);
        Sizes start(size.size(), Size(0)), stride(size.size(), Size(1));
        start[size_t(axis)] = last;
        stride[size_t(axis)] = Size(-1);
        x = &ctx.slice(*x, start, size, stride);
    }
    ITensor* index = best(ctx, *x, op, 1, axis).indices;
    if (fromEnd) // the last index broadcasts as [1]
        index = &ctx.elementwise(ctx.asTensor(last), *index, nvinfer1::ElementWiseOperation::kSUB);
    ctx.setOutput(0, ctx.attrInt("keepdims", 1) != 0 ? *index : ctx.squeeze(*index, {axis}));
}
} // namespace

void register_topk(ImporterMap& map)
{
    map.add("TopK", importTopK);
    map.add("ArgMax", [](auto& ctx) { importArg(ctx, TopKOperation::kMAX); });
    map.add("ArgMin", [](auto& ctx) { importArg(ctx, TopKOperation::kMIN); });
}

} // namespace tw::onnx
