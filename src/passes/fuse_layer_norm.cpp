// SPDX-License-Identifier: Apache-2.0
// Makes one layer_norm of the nodes that exporters write for a norm:
//   m = mean(x), d = x - m, v = mean(d^2), y = d / sqrt(v + e) * gamma + beta               (PyTorch)
//   m = mean(x), v = mean((x - m)^2), r = 1 / sqrt(v + e) * gamma, y = x r + (beta - m r)   (TensorFlow)
//   v = mean(x^2) - mean(x)^2, or the larger of that and 0                                  (Flax)
//   v = mean(x^2), y = x / sqrt(v + e) * gamma                                              (RMS norm)
// and of an activation after them. d^2 may be a power or a product, 1 / sqrt a division or a reciprocal, d may be
// computed twice; gamma and beta may be missing. A network in FP16 may compute this in f32 between two conversions,
// with gamma and beta before or after the second, and e may have become nothing; the node then reads and makes f16.
// Means are over any dimensions; gamma and beta are constants with a number for each place of a set, or for each
// position in one dimension. A group norm reshapes x to this and back, with gamma and beta inside or after. Expects
// Form::kCanonical. Stands in front of the fusions that would take single nodes of the pattern. Leaves alone: values
// inside that others read, wishes of the user that differ.
#include <algorithm>

#include "passes/fuse_nodes.h"
#include "passes/list.h"
#include "passes/norm_pattern.h"
#include "passes/rewrite.h"
#include "recipe/recipes.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

// Gamma or beta in the node's type; null when that would change its numbers, or a refit could.
ir::Value* weightVector(ir::Graph& g, ir::Value& row, DataType type, PassContext const& ctx)
{
    ir::Value* v = asVector(g, row);
    if (row.type == type)
        return v;
    if (ctx.recipes && ctx.recipes->reaches(row))
        return nullptr;
    TensorRef const from = constantOf(v);
    Tensor to(type, from.dims);
    for (int64_t i = 0; i < from.count(); ++i) {
        to.ref().set(i, from.get(i));
        if (to.ref().get(i) != from.get(i))
            return nullptr;
    }
    auto c = std::make_shared<ir::Constant>(*row.constant);
    c->data = Blob::copy(to.data(), size_t(to.ref().sizeBytes()));
    return g.addConstant(row.name, type, from.dims, std::move(c));
}

// With the conversions on both sides, or between them.
Result<bool> fuse(ir::Graph& g, NormPattern& m, PassContext const& ctx)
{
    sortNodes(g, m.nodes);
    bool const ends = isCast(m.nodes.back(), DataType::kFloat, DataType::kHalf);
    for (bool outside : {true, false}) {
        if (!outside && ends)
            m.nodes.pop_back();
        else if (!outside)
            break;
        ir::Value const& y = *m.nodes.back()->outputs[0];
        ir::Value* x = m.x;
        if (isNarrowFloat(y.type) && isCast(x->producer, y.type, DataType::kFloat))
            x = x->producer->inputs[0];
        if (!canFuse(g, m.nodes) || y.type != x->type || !(y.shape == x->shape))
            continue;
        std::vector<FusedInput> inputs{{x, m.x}};
        for (ir::Value* row : {m.gamma, m.beta})
            if (row)
                inputs.push_back({weightVector(g, *row, x->type, ctx), row});
        if (std::any_of(inputs.begin(), inputs.end(), [](FusedInput const& in) { return !in.value; }))
            continue;
        m.attrs.hasGamma = m.gamma != nullptr;
        m.attrs.hasBeta = m.beta != nullptr;
        ir::Node* cast = x != m.x ? m.x->producer : nullptr;
        TW_ASSIGN(ir::Node * n, fuseNodes(g, m.nodes, ops::layer_norm::def(), m.attrs.clone(), inputs));
        if (n && cast && g.useCount(cast->outputs[0]) == 0)
            g.eraseNode(cast);
        return n != nullptr;
    }
    return false;
}

} // namespace

Result<bool> fuseLayerNorm(ir::Graph& g, PassContext const& ctx)
{
    return rewriteEach(g, isRoot, [&](ir::Node& root) {
        NormPattern m(g, ctx.recipes);
        return m.from(&root) ? fuse(g, m, ctx) : Result<bool>(false);
    });
}

} // namespace tw::passes
