// SPDX-License-Identifier: Apache-2.0
#include "passes/lifted_nodes.h"

#include "passes/fuse_nodes.h"
#include "passes/list.h"
#include "passes/rewrite.h"

namespace tw::passes {

Result<ir::Value*> liftNode(ir::Graph& g, ir::Node* n, std::unique_ptr<ir::AttrsBase> attrs,
                            std::vector<ir::Value*> const& inputs, std::string const& suffix)
{
    ir::Value* const y = n->outputs[0];
    TW_ASSIGN(ir::Node * moved, g.addNode(*n->op, std::move(attrs), inputs, n->name, {}, g.positionOf(n)));
    takePlaceOf(*moved, *n);
    ir::Value* const lifted = moved->outputs[0];
    TW_ASSIGN(ir::Value * reshaped, addReshape(g, lifted, y->shape, g.positionOf(n)));
    if (!reshaped || reshaped->type != y->type) {
        if (reshaped)
            g.eraseNode(reshaped->producer);
        g.eraseNode(moved);
        return static_cast<ir::Value*>(nullptr);
    }
    bool const isOutput = g.isOutput(y);
    lifted->name = isOutput ? y->name + suffix : y->name;
    reshaped->name = isOutput ? y->name : y->name + ".reshaped";
    g.replaceAllUses(y, reshaped);
    g.eraseNode(n);
    return lifted;
}

Result<bool> liftEach(ir::Graph& g, PassContext const& ctx, std::function<Result<bool>(ir::Node*)> const& lift)
{
    bool changed = false;
    for (size_t i = 0; i < g.nodes.size(); ++i) {
        TW_ASSIGN(bool const wasLifted, lift(g.nodes[i].get()));
        changed = changed || wasLifted; // its reshape stands at i + 1 now
    }
    if (!changed)
        return false;
    g.eraseUnusedValues();
    TW_TRY(removeDead(g, ctx));
    TW_TRY(removeIdentities(g, ctx));
    return true;
}

} // namespace tw::passes
