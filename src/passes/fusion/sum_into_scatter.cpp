// SPDX-License-Identifier: Apache-2.0
// Adds updates to what their sum would be added to.
//   before: x + scatter(zeros, j, u, add)        after: scatter(x, j, u, add)
// Sums over the edges of a graph come so. Expects Form::kCanonical, where zeros are a constant. Leaves alone: scatters that others read,
// zeros that a refit may change, wishes of the user.
#include "ops/elementwise/op.h"
#include "ops/scatter/op.h"
#include "passes/fuse_nodes.h"
#include "passes/list.h"
#include "passes/node_kinds.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

Result<bool> join(ir::Graph& g, ir::Node& sum, PassContext const& ctx)
{
    for (size_t i : {size_t(0), size_t(1)}) {
        ir::Node* const scatter = onlyProducer(g, sum.inputs[i]);
        ir::Value* const x = sum.inputs[1 - i];
        if (!scatter || scatter->op != &ops::scatter::def() || !canJoin(*scatter, sum) ||
            scatter->attrsAs<ops::scatter::Attrs>().reduction != ops::scatter::Reduction::kAdd ||
            numberOf(scatter->inputs[0], ctx.recipes) != 0.0 || !(x->shape == scatter->outputs[0]->shape) ||
            x->type != scatter->outputs[0]->type || x->type != sum.outputs[0]->type)
            continue;
        std::vector<ir::Value*> inputs{x, scatter->inputs[1], scatter->inputs[2]};
        TW_ASSIGN(ir::Node * made, g.addNode(ops::scatter::def(), scatter->attrs->clone(), std::move(inputs), sum.name,
                                             {}, g.positionOf(&sum)));
        joinOrigins(*made, *scatter, sum);
        made->outputs[0]->host = sum.outputs[0]->host;
        if (!replaceValue(g, sum.outputs[0], made->outputs[0])) {
            g.eraseNode(made);
            return false;
        }
        g.eraseNode(&sum);
        g.eraseNode(scatter);
        return true;
    }
    return false;
}

} // namespace

Result<bool> sumIntoScatter(ir::Graph& g, PassContext const& ctx)
{
    return rewriteEach(
        g, [](ir::Node const& n) { return is(&n, ops::elementwise::Operation::kSum); },
        [&](ir::Node& n) { return join(g, n, ctx); });
}

} // namespace tw::passes
