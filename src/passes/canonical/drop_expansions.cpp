// SPDX-License-Identifier: Apache-2.0
// Takes away expansions in front of nodes that broadcast by themselves:
//   before: y = f(x, expand(z))        after: y = f(x, z)
// f is element-wise or a selection, z has size 1 where it is repeated, and y keeps its shape without the expansion (others
// have it too). Exporters write it for x / max(|x|, e), the norm of rows. Any form. Stands with the passes
// that run until nothing changes: simplify_shapes gives expansions their attributes. The expansion stays for others. Leaves
// alone: wishes of the user, expansions whose strides come from elsewhere.
#include "ops/elementwise/op.h"
#include "ops/select/op.h"
#include "ops/slice/op.h"
#include "passes/list.h"
#include "passes/node_kinds.h"
#include "passes/rewrite.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

// What an expansion repeats; null: `n` is none.
ir::Value* expandedBy(ir::Node const* n)
{
    if (!n || n->op != &ops::slice::def() || hasInput(*n, 1) || hasInput(*n, 3) || hasWish(*n))
        return nullptr;
    auto const& a = n->attrsAs<ops::slice::Attrs>();
    ir::Value* x = n->inputs[0];
    ir::Value const& y = *n->outputs[0];
    if (x->type != y.type || x->host != y.host)
        return nullptr;
    for (size_t i = 0; i < x->shape.size(); ++i) {
        bool const repeats = x->shape[i].is(1) && a.stride[i] == 0;
        bool const keeps = x->shape[i] == y.shape[i] && (a.stride[i] == 1 || x->shape[i].is(1));
        if (a.start[i] != 0 || (!repeats && !keeps))
            return nullptr;
    }
    return x;
}

bool broadcasts(ir::Node const& n)
{
    return n.op == &ops::elementwise::def() || n.op == &ops::select::def();
}

Result<bool> drop(ir::Graph& g, ir::Node& n)
{
    bool changed = false;
    for (size_t i = 0; i < n.inputs.size(); ++i) {
        ir::Value* const before = n.inputs[i];
        ir::Value* const x = before ? expandedBy(before->producer) : nullptr;
        if (!x)
            continue;
        ir::Shape const shape = n.outputs[0]->shape;
        n.inputs[i] = x;
        auto const inferred = g.inferNode(n);
        if (inferred.ok() && n.outputs[0]->shape == shape) {
            changed = true;
            continue;
        }
        n.inputs[i] = before;
        TW_TRY(g.inferNode(n));
    }
    return changed;
}

} // namespace

Result<bool> dropExpansions(ir::Graph& g, PassContext const& ctx)
{
    TW_ASSIGN(bool const changed, rewriteEach(g, broadcasts, [&](ir::Node& n) { return drop(g, n); }));
    if (changed)
        TW_TRY(removeDead(g, ctx));
    return changed;
}

} // namespace tw::passes
