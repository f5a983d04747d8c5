// SPDX-License-Identifier: Apache-2.0
#include "passes/node_kinds.h"

#include "ops/identity/op.h"
#include "ops/shuffle/op.h"
#include "tactic/registry.h"

namespace tw::passes {

bool is(ir::Node const* n, ops::elementwise::Operation operation)
{
    return n && n->op == &ops::elementwise::def() && n->attrsAs<ops::elementwise::Attrs>().operation == operation;
}

bool is(ir::Node const* n, ops::unary::Operation operation)
{
    return n && n->op == &ops::unary::def() && n->attrsAs<ops::unary::Attrs>().operation == operation;
}

bool isShuffle(ir::Node const* n)
{
    return n && n->op == &ops::shuffle::def() && !hasInput(*n, 1);
}

bool isReshape(ir::Node const* n)
{
    if (!isShuffle(n))
        return false;
    auto const& a = n->attrsAs<ops::shuffle::Attrs>();
    return a.hasReshape && a.firstTranspose.empty() && a.secondTranspose.empty();
}

bool isCast(ir::Node const* n)
{
    return n && n->op == &ops::identity::def() && isFloating(n->inputs[0]->type) && isFloating(n->outputs[0]->type);
}

bool hasInput(ir::Node const& n, size_t i)
{
    return i < n.inputs.size() && n.inputs[i];
}

ir::Value* otherInput(ir::Node const* n, ir::Value const* v)
{
    return n->inputs[n->inputs[0] == v ? 1 : 0];
}

} // namespace tw::passes
