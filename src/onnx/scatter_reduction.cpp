// SPDX-License-Identifier: Apache-2.0
// Reductions of scatters. 8.5 has no layer for them: a loop goes along the updates, reads what stands where one belongs,
// and writes both, reduced. Of elements it goes along the axis: the updates of one trip never meet. The builder knows the
// form (passes/fusion/fuse_scatter_reduction.cpp) and makes one step of it.
#include "onnx/importer.h"

namespace tw::onnx {

namespace {

using Op = nvinfer1::ElementWiseOperation;
using nvinfer1::GatherMode;
using nvinfer1::ScatterMode;

Op operationOf(ImportContext& ctx, std::string const& name)
{
    if (name == "add")
        return Op::kSUM;
    if (name == "mul")
        return Op::kPROD;
    if (name == "max")
        return Op::kMAX;
    if (name != "min")
        ctx.invalid("reduction '" + name + "' is unknown (allowed: none, add, mul, max, min)");
    return Op::kMIN;
}

struct Scatter
{
    ScatterMode mode;
    int axis; // that the loop goes along, in indices and updates
    Op operation;
};

ITensor& scattered(ImportContext& ctx, ITensor& x, ITensor& indices, ITensor& updates, Scatter const& s)
{
    bool const isElement = s.mode == ScatterMode::kELEMENT;
    nvinfer1::ILoop* const loop = ctx.network().addLoop();
    if (!loop)
        ctx.refused("the network refused a loop");
    loop->setName(ctx.name().c_str());
    ITensor& count = ctx.asScalar(ctx.sizesOf(indices)[size_t(s.axis)]);
    ctx.added(loop->addTripLimit(count, nvinfer1::TripLimit::kCOUNT));
    auto slice = [&](ITensor& of) -> ITensor& {
        ITensor& each = ctx.out(ctx.added(loop->addIterator(of, s.axis)));
        return isElement ? ctx.unsqueeze(each, {s.axis}) : each;
    };
    auto& carried = ctx.added(loop->addRecurrence(x));
    ITensor &data = ctx.out(carried), &index = slice(indices), &update = slice(updates);
    auto& gather =
        ctx.added(ctx.network().addGatherV2(data, index, isElement ? GatherMode::kELEMENT : GatherMode::kND));
    if (isElement)
        gather.setGatherAxis(s.axis);
    auto& scatter =
        ctx.added(ctx.network().addScatter(data, index, ctx.elementwise(ctx.out(gather), update, s.operation), s.mode));
    if (isElement)
        scatter.setAxis(s.axis);
    carried.setInput(1, ctx.out(scatter));
    return ctx.out(ctx.added(loop->addLoopOutput(data, nvinfer1::LoopOutput::kLAST_VALUE)));
}

// One list of tuples, and their slices.
ITensor& scatteredSlices(ImportContext& ctx, ITensor& x, ITensor& indices, ITensor& updates, Op operation)
{
    Dims const d = x.getDimensions(), j = indices.getDimensions();
    int const k = j.nbDims < 1 ? 0 : j.d[j.nbDims - 1];
    ctx.check(k != -1, "the last dimension of its indices says how many dimensions of the data they name; it must be "
                       "known when the model is imported");
    if (k < 1 || k > d.nbDims)
        ctx.invalid("the indices have shape " + describe(j) + " for data of shape " + describe(d));
    Sizes tuples = ctx.sizesOf(indices), slices = ctx.sizesOf(x);
    Size const last = tuples.back();
    tuples.pop_back();
    Size const count = ctx.product(tuples);
    slices.erase(slices.begin(), slices.begin() + k);
    slices.insert(slices.begin(), count);
    return scattered(ctx, x, ctx.reshape(indices, Sizes{count, last}), ctx.reshape(updates, slices),
                     {ScatterMode::kND, 0, operation});
}

} // namespace

void scatterReduced(ImportContext& ctx, ScatterMode mode, std::string const& reduction)
{
    ITensor &x = ctx.tensor(0), &indices = ctx.cast(ctx.tensor(1), DataType::kINT32), &updates = ctx.tensor(2);
    int const rank = x.getDimensions().nbDims;
    Op const operation = operationOf(ctx, reduction);
    if (mode == ScatterMode::kND) {
        ctx.setOutput(0, scatteredSlices(ctx, x, indices, updates, operation));
        return;
    }
    int const axis = ctx.axis(ctx.attrInt("axis", 0), rank);
    if (updates.getDimensions().nbDims != rank || indices.getDimensions().nbDims != rank)
        ctx.invalid("data, indices and updates must have one rank");
    ctx.setOutput(0, scattered(ctx, x, indices, updates, {mode, axis, operation}));
}

} // namespace tw::onnx
