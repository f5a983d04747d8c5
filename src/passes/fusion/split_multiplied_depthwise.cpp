// SPDX-License-Identifier: Apache-2.0
// Makes depthwise convolutions of one that has several filters for each channel:
//   conv(x [N, C, h, w], weights [M C, 1, r, s], groups C)  ->  M times conv(x, weights [C, 1, r, s], groups C)
//     ->  [N, C, M, h', w']  ->  [N, M C, h', w']
// Kernels of groups compute the filters of a group by vectors, of which two or four fill a small part; those of depthwise convolutions
// have channels side by side. What it costs is that results are put between each other: spatial filters over all electrodes of an EEG
// leave one row of many. For CPU builds. Expects Form::kCanonical. Stands before fuse_activation. Leaves alone: weights that are
// computed or integers, more than kMostFilters, small windows whose results are not small beside x.
#include "ops/concatenation/op.h"
#include "ops/convolution/op.h"
#include "ops/shuffle/op.h"
#include "ops/slice/op.h"
#include "passes/list.h"
#include "passes/node_kinds.h"
#include "passes/rewrite.h"
#include "recipe/recipes.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

constexpr int64_t kMostFilters = 4; // of a channel: half of the narrowest vector
constexpr int64_t kLargeWindow = 9; // 64 channels of 28x28, two filters of 3x3 each: 0.20 ms as groups, 0.05 so

// Filters of each channel; 0: it stays as it is.
int64_t filtersOfChannel(ir::Node const& conv)
{
    auto const& a = conv.attrsAs<ops::convolution::Attrs>();
    ir::Value const &x = *conv.inputs[0], &w = *conv.inputs[1], &y = *conv.outputs[0];
    if (x.rank() != 4 || w.rank() != 4 || !w.isConstant() || !isFullFloat(x.type) || !isFullFloat(w.type) ||
        (hasInput(conv, 2) && !conv.inputs[2]->isConstant()) || a.groups < 2 || !w.shape[1].is(1) ||
        !x.shape[1].is(a.groups))
        return 0;
    int64_t const filters = w.shape[0].value() / a.groups;
    if (filters < 2 || filters > kMostFilters)
        return 0;
    int64_t in = 1, out = filters;
    for (size_t i = 2; i < 4; ++i) {
        if (!x.shape[i].isConst() || !y.shape[i].isConst())
            return 0;
        in *= x.shape[i].value();
        out *= y.shape[i].value();
    }
    bool const isLarge = w.shape[2].value() * w.shape[3].value() >= kLargeWindow;
    return isLarge || 4 * out <= in ? filters : 0;
}

// Every `step`-th row of a constant, from `first` on.
Result<ir::Value*> filterRows(ir::Graph& g, ir::Value const& v, int64_t first, int64_t step, recipe::Recipes* recipes)
{
    Extents dims = ir::extentsOf(v.shape);
    dims[0] /= step;
    ops::slice::Attrs a;
    a.start.assign(size_t(dims.rank), 0);
    a.stride.assign(size_t(dims.rank), 1);
    a.size.assign(dims.begin(), dims.end());
    a.start[0] = first;
    a.stride[0] = step;
    recipe::Computation c(recipes);
    TW_ASSIGN(ir::Value * y, c.add(ops::slice::def(), a, {c.take(v)}));
    TW_ASSIGN(BlobPtr data, c.finish(y));
    return constantWith(g, v, v.type, dims, std::move(data));
}

Result<bool> splitFilters(ir::Graph& g, ir::Node& conv, PassContext const& ctx)
{
    int64_t const filters = filtersOfChannel(conv);
    if (filters == 0)
        return false;
    ir::Value* const y = conv.outputs[0];
    int64_t const channels = conv.attrsAs<ops::convolution::Attrs>().groups;
    int64_t const height = y->shape[2].value(), width = y->shape[3].value();
    int position = g.positionOf(&conv);
    auto add = [&](ir::OpDef const& op, ir::AttrsBase const& attrs, std::vector<ir::Value*> inputs,
                   std::string const& name) -> Result<ir::Value*> {
        TW_ASSIGN(ir::Node * n, g.addNode(op, attrs.clone(), std::move(inputs), conv.name + name, {}, position++));
        takePlaceOf(*n, conv);
        n->outputs[0]->name = y->name + name;
        return n->outputs[0];
    };
    ops::shuffle::Attrs apart, joined;
    apart.hasReshape = joined.hasReshape = true;
    apart.reshape = {0, channels, 1, height, width};
    joined.reshape = {0, channels * filters, height, width};
    std::vector<ir::Value*> parts;
    for (int64_t f = 0; f < filters; ++f) {
        std::vector<ir::Value*> in{conv.inputs[0]};
        for (size_t i = 1; i < conv.inputs.size() && conv.inputs[i]; ++i) {
            TW_ASSIGN(ir::Value * rows, filterRows(g, *conv.inputs[i], f, filters, ctx.recipes));
            in.push_back(rows);
        }
        std::string const name = fmt::format(".{}", f);
        TW_ASSIGN(ir::Value * part, add(ops::convolution::def(), *conv.attrs, std::move(in), name));
        TW_ASSIGN(part, add(ops::shuffle::def(), apart, {part}, name + ".apart"));
        parts.push_back(part);
    }
    TW_ASSIGN(ir::Value * all, add(ops::concatenation::def(), ops::concatenation::Attrs(2), std::move(parts), ".all"));
    TW_ASSIGN(ir::Value * last, add(ops::shuffle::def(), joined, {all}, ".channels"));
    last->name = y->name;
    g.replaceAllUses(y, last);
    ctx.log.info("convolution {} has {} filters for each channel: it is as many depthwise ones", conv.name, filters);
    g.eraseNode(&conv);
    return true;
}

} // namespace

Result<bool> splitMultipliedDepthwise(ir::Graph& g, PassContext const& ctx)
{
    if (ctx.target.gpu())
        return false;
    return rewriteEach(g, ops::convolution::isBareForward, [&](ir::Node& n) { return splitFilters(g, n, ctx); });
}

} // namespace tw::passes
