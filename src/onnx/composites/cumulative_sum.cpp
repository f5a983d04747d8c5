// SPDX-License-Identifier: Apache-2.0
// CumSum, CumProd. 8.5 has no layer for them: sums of 1, 2, 4, ... neighbours are made of each other until they reach over the
// whole axis, each from the one before and the same moved along the axis. Exact for integers. The builder knows the
// form of sums (passes/fusion/fuse_cumulative_sum.cpp) and makes one step of it.
#include "onnx/importer.h"

namespace tw::onnx {

namespace {

constexpr int64_t kLongest = INT32_MAX; // of an axis whose length is not known yet

using Op = nvinfer1::ElementWiseOperation;

// y[i] = x[i - by] along the axis; outside it is what changes nothing, 0 of sums and 1 of products.
ITensor& moved(ImportContext& ctx, ITensor& x, Sizes const& size, int axis, int64_t by, Op op)
{
    Sizes start(size.size(), Size(0));
    start[size_t(axis)] = Size(-by);
    ITensor* const fill = op == Op::kPROD ? &ctx.scalar(1, x.getType(), 0) : nullptr;
    return ctx.slice(x, start, size, Sizes(size.size(), Size(1)), nvinfer1::SliceMode::kFILL, fill);
}

void importCumulative(ImportContext& ctx, Op op)
{
    ITensor* x = &ctx.tensor(0);
    int const rank = x->getDimensions().nbDims;
    std::vector<int64_t> const given = ctx.constantInts(1, "axis");
    if (given.size() != 1)
        ctx.invalid(fmt::format("axis has {} elements, it must have one", given.size()));
    if (rank < 1)
        ctx.invalid("the input must have at least one dimension");
    int const axis = ctx.axis(given[0], rank);
    bool const exclusive = ctx.attrInt("exclusive", 0) != 0;
    int64_t const direction = ctx.attrInt("reverse", 0) != 0 ? -1 : 1;
    Sizes const size = ctx.sizesOf(*x);
    Size const length = size[size_t(axis)];
    int64_t const reach = length.known() ? length.value : kLongest;
    if (x->getType() == DataType::kBOOL) // what PyTorch writes for the sum of a mask
        x = &ctx.cast(*x, DataType::kINT32);
    if (exclusive)
        x = &moved(ctx, *x, size, axis, direction, op);
    for (int64_t window = 1; window < reach; window *= 2)
        x = &ctx.elementwise(*x, moved(ctx, *x, size, axis, direction * window, op), op);
    ctx.setOutput(0, *x);
}

} // namespace

void register_composites_cumulative_sum(ImporterMap& map)
{
    map.add("CumSum", [](auto& ctx) { importCumulative(ctx, Op::kSUM); });
    map.add("CumProd", [](auto& ctx) { importCumulative(ctx, Op::kPROD); });
}

} // namespace tw::onnx
