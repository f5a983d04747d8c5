// SPDX-License-Identifier: Apache-2.0
// Reshape, Transpose, Flatten, Squeeze, Unsqueeze.
#include "onnx/importer.h"

namespace tw::onnx {

namespace {

void importReshape(ImportContext& ctx)
{
    ITensor& x = ctx.tensor(0);
    bool const zeroCopies = ctx.attrInt("allowzero", 0) == 0;
    Value const shape = ctx.hasAttr("shape") ? Value(ctx.intConstant(ctx.attrInts("shape"))) : ctx.input(1);
    if (shape.rank() != 1)
        ctx.invalid("the shape must be 1-D, it has shape " + describe(shape.dims()));
    if (shape.isTensor()) {
        auto& layer = ctx.added(ctx.network().addShuffle(x));
        layer.setZeroIsPlaceholder(zeroCopies);
        layer.setInput(1, shape.tensor());
        return ctx.setOutput(0, ctx.out(layer));
    }
    std::vector<int64_t> const v = shape.constant().ints();
    ctx.check(v.size() <= size_t(Dims::MAX_DIMS), fmt::format("rank {} is above the highest of the API, 8", v.size()));
    int wildcards = 0;
    for (size_t i = 0; i < v.size(); ++i) {
        wildcards += v[i] == -1;
        if (v[i] < -1 || wildcards > 1 || (v[i] == 0 && zeroCopies && int(i) >= x.getDimensions().nbDims))
            ctx.invalid("shape " + describe(makeDims(v)) + " is not valid for input of shape " +
                        describe(x.getDimensions()));
    }
    auto& layer = ctx.added(ctx.network().addShuffle(x));
    layer.setZeroIsPlaceholder(zeroCopies);
    layer.setReshapeDimensions(makeDims(v));
    ctx.setOutput(0, ctx.out(layer));
}

void importTranspose(ImportContext& ctx)
{
    ITensor& x = ctx.tensor(0);
    int const rank = x.getDimensions().nbDims;
    std::vector<int64_t> reversed;
    for (int i = rank - 1; i >= 0; --i)
        reversed.push_back(i);
    std::vector<int> const perm = ctx.axes(ctx.attrInts("perm", reversed), rank, "perm");
    if (int(perm.size()) != rank)
        ctx.invalid(fmt::format("perm has {} entries for rank {}", perm.size(), rank));
    ctx.setOutput(0, ctx.transpose(x, perm));
}

void importFlatten(ImportContext& ctx)
{
    ITensor& x = ctx.tensor(0);
    int const rank = x.getDimensions().nbDims;
    int64_t const axis = ctx.attrInt("axis", 1);
    int const at = axis == rank ? rank : ctx.axis(axis, rank);
    Sizes const s = ctx.sizesOf(x);
    ctx.setOutput(
        0, ctx.reshape(x, Sizes{ctx.product({s.begin(), s.begin() + at}), ctx.product({s.begin() + at, s.end()})}));
}

// Axes are an attribute up to opset 12, then an input.
std::vector<int64_t> axesOf(ImportContext& ctx)
{
    return ctx.hasAttr("axes") ? ctx.attrInts("axes") : ctx.constantInts(1, "axes");
}

void importSqueeze(ImportContext& ctx)
{
    ITensor& x = ctx.tensor(0);
    Dims const d = x.getDimensions();
    std::vector<int> axes;
    if (ctx.hasAttr("axes") || ctx.hasInput(1)) {
        axes = ctx.axes(axesOf(ctx), d.nbDims);
    } else {
        ctx.check(isStatic(d), "without axes the shape must be known, it is " + describe(d));
        for (int i = 0; i < d.nbDims; ++i)
            if (d.d[i] == 1)
                axes.push_back(i);
    }
    ctx.setOutput(0, ctx.squeeze(x, axes));
}

void importUnsqueeze(ImportContext& ctx)
{
    ITensor& x = ctx.tensor(0);
    std::vector<int64_t> const axes = axesOf(ctx);
    int const rank = x.getDimensions().nbDims + int(axes.size());
    ctx.check(rank <= Dims::MAX_DIMS, fmt::format("rank {} is above the highest of the API, 8", rank));
    ctx.setOutput(0, ctx.unsqueeze(x, ctx.axes(axes, rank)));
}

} // namespace

void register_shuffle(ImporterMap& map)
{
    map.add("Reshape", importReshape);
    map.add("Transpose", importTranspose);
    map.add("Flatten", importFlatten);
    map.add("Squeeze", importSqueeze);
    map.add("Unsqueeze", importUnsqueeze);
}

} // namespace tw::onnx
