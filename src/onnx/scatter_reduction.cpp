// SPDX-License-Identifier: Apache-2.0
// Reductions of scatters. 8.5 has no layer for them: each place of the data looks at all updates that may be its own, and
// reduces those that are. That takes places times updates numbers, so that only small ones are imported.
#include "onnx/scatter_reduction.h"

#include <limits>

#include "onnx/positions.h"

namespace tw::onnx {

namespace {

using Op = nvinfer1::ElementWiseOperation;
using nvinfer1::ReduceOperation;

constexpr int64_t kMostNumbers = 1 << 24;

struct Reduction
{
    Op combine;
    ReduceOperation reduce;
    double nothing; // combined with a number it gives the number
};

Reduction reductionOf(ImportContext& ctx, std::string const& name, DataType type)
{
    double const most = type == DataType::kINT32 ? double(INT32_MAX) : std::numeric_limits<double>::infinity();
    double const least = type == DataType::kINT32 ? double(INT32_MIN) : -most;
    if (name == "add")
        return {Op::kSUM, ReduceOperation::kSUM, 0};
    if (name == "mul")
        return {Op::kPROD, ReduceOperation::kPROD, 1};
    if (name == "max")
        return {Op::kMAX, ReduceOperation::kMAX, least};
    if (name != "min")
        ctx.invalid("reduction '" + name + "' is unknown (allowed: none, add, mul, max, min)");
    return {Op::kMIN, ReduceOperation::kMIN, most};
}

void checkSize(ImportContext& ctx, int64_t places, int64_t updates, int64_t each)
{
    bool const fits = places < kMostNumbers && updates < kMostNumbers && each < kMostNumbers &&
                      double(places) * double(updates) * double(each) <= double(kMostNumbers);
    ctx.check(fits, "a scatter with a reduction becomes " + std::to_string(places) + " x " + std::to_string(updates) +
                        " x " + std::to_string(each) + " numbers (places, updates, elements of each), 2^24 at most " +
                        "can be imported");
}

// Indices below 0 count from the end.
ITensor& fromStart(ImportContext& ctx, ITensor& index, ITensor& size)
{
    ITensor& isNegative = ctx.elementwise(index, ctx.scalarLike(0, index), Op::kLESS);
    return ctx.select(isNegative, ctx.elementwise(index, size, Op::kSUM), index);
}

// `indices` and `updates` [rest.., t]: for each of n places of each row, its updates reduced: [rest.., n].
ITensor& reduced(ImportContext& ctx, ITensor& indices, ITensor& updates, int64_t n, Reduction const& r)
{
    int const rank = indices.getDimensions().nbDims;
    Dims column{rank + 1, {}};
    for (int i = 0; i <= rank; ++i)
        column.d[i] = i == rank - 1 ? int32_t(n) : 1;
    ITensor& place = ctx.reshape(positions(ctx, n), column);
    ITensor& isOwn = ctx.elementwise(place, ctx.unsqueeze(indices, {rank - 1}), Op::kEQUAL);
    ITensor& each = ctx.unsqueeze(updates, {rank - 1});
    ITensor& own = ctx.select(isOwn, each, ctx.scalarLike(r.nothing, each));
    return ctx.reduce(own, r.reduce, {rank}, false);
}

void scatterElements(ImportContext& ctx, ITensor& x, ITensor& indices, ITensor& updates, Reduction const& r)
{
    Dims const d = x.getDimensions(), u = updates.getDimensions();
    int const axis = ctx.axis(ctx.attrInt("axis", 0), d.nbDims);
    if (u.nbDims != d.nbDims || indices.getDimensions().nbDims != d.nbDims)
        ctx.invalid("data, indices and updates must have one rank");
    ctx.check(d.nbDims < Dims::MAX_DIMS, "the data has rank 8; 7 at most can be imported with a reduction");
    checkSize(ctx, d.d[axis], volume(u), 1);
    std::vector<int> order; // the axis last
    for (int i = 0; i < d.nbDims; ++i)
        if (i != axis)
            order.push_back(i);
    order.push_back(axis);
    ITensor& index = fromStart(ctx, indices, ctx.scalar(d.d[axis], DataType::kINT32, d.nbDims));
    ITensor& changes = reduced(ctx, ctx.transpose(index, order), ctx.transpose(updates, order), d.d[axis], r);
    ITensor& data = ctx.transpose(x, order);
    // Where the updates do not reach nothing changes.
    Sizes const size = ctx.sizesOf(data), none(size.size(), Size(0)), step(size.size(), Size(1));
    ITensor& fill = ctx.scalar(r.nothing, x.getType(), 0);
    ITensor& all = ctx.slice(changes, none, size, step, nvinfer1::SliceMode::kFILL, &fill);
    std::vector<int> back(order.size());
    for (size_t i = 0; i < order.size(); ++i)
        back[size_t(order[i])] = int(i);
    ctx.setOutput(0, ctx.transpose(ctx.elementwise(data, all, r.combine), back));
}

// Slices as rows: each tuple of indices becomes the number of one.
void scatterSlices(ImportContext& ctx, ITensor& x, ITensor& indices, ITensor& updates, Reduction const& r)
{
    Dims const d = x.getDimensions(), j = indices.getDimensions();
    int const k = j.nbDims < 1 ? 0 : j.d[j.nbDims - 1];
    if (k < 1 || k > d.nbDims)
        ctx.invalid("the indices have shape " + describe(j) + " for data of shape " + describe(d));
    int64_t places = 1;
    std::vector<int64_t> sizes, strides(size_t(k), 1);
    for (int i = 0; i < k; ++i) {
        sizes.push_back(d.d[i]);
        places *= d.d[i];
    }
    for (int i = k - 1; i-- > 0;)
        strides[size_t(i)] = strides[size_t(i + 1)] * d.d[i + 1];
    int64_t const tuples = volume(j) / k, each = places > 0 ? volume(d) / places : 0;
    checkSize(ctx, places, tuples, each);
    ITensor& index = ctx.reshape(indices, makeDims({tuples, k}));
    ITensor& whole = fromStart(ctx, index, ctx.unsqueeze(ctx.asTensor(Value(ctx.intConstant(sizes))), {0}));
    ITensor& weight = ctx.unsqueeze(ctx.asTensor(Value(ctx.intConstant(strides))), {0});
    ITensor& row = ctx.reduce(ctx.elementwise(whole, weight, Op::kPROD), ReduceOperation::kSUM, {1}, false);
    ITensor& columns = ctx.transpose(ctx.reshape(updates, makeDims({tuples, each})), {1, 0});
    ITensor& changes = reduced(ctx, ctx.unsqueeze(row, {0}), columns, places, r); // [each, places]
    ITensor& data = ctx.reshape(x, makeDims({places, each}));
    ITensor& y = ctx.elementwise(data, ctx.transpose(changes, {1, 0}), r.combine);
    ctx.setOutput(0, ctx.reshape(y, d));
}

} // namespace

void scatterReduced(ImportContext& ctx, nvinfer1::ScatterMode mode, std::string const& reduction)
{
    ITensor &x = ctx.tensor(0), &indices = ctx.cast(ctx.tensor(1), DataType::kINT32), &updates = ctx.tensor(2);
    Reduction const r = reductionOf(ctx, reduction, x.getType());
    ctx.check(isStatic(x.getDimensions()) && isStatic(indices.getDimensions()) && isStatic(updates.getDimensions()),
              "a scatter with a reduction can be imported where all shapes are known");
    if (mode == nvinfer1::ScatterMode::kELEMENT)
        scatterElements(ctx, x, indices, updates, r);
    else
        scatterSlices(ctx, x, indices, updates, r);
}

} // namespace tw::onnx
