// SPDX-License-Identifier: Apache-2.0
#include "passes/node_kinds.h"

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

bool isReshape(ir::Node const* n)
{
    if (!n || n->op != &ops::shuffle::def() || (n->inputs.size() > 1 && n->inputs[1]))
        return false;
    auto const& a = n->attrsAs<ops::shuffle::Attrs>();
    return a.hasReshape && a.firstTranspose.empty() && a.secondTranspose.empty();
}

} // namespace tw::passes
