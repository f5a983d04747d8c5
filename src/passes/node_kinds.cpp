// SPDX-License-Identifier: Apache-2.0
#include "passes/node_kinds.h"

#include "ops/identity/op.h"
#include "ops/shuffle/op.h"
#include "ops/slice/op.h"
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

ir::Value* beforeReshapes(ir::Value* v)
{
    while (isReshape(v->producer))
        v = v->producer->inputs[0];
    return v;
}

ir::Value* beforeCasts(ir::Value* v)
{
    while (isCast(v->producer))
        v = v->producer->inputs[0];
    return v;
}

bool hasInput(ir::Node const& n, size_t i)
{
    return i < n.inputs.size() && n.inputs[i];
}

ir::Value* repeatedBut(ir::Value const* v, size_t axis)
{
    ir::Node const* const n = v->producer;
    if (!n || n->op != &ops::slice::def() || v->rank() < 2)
        return nullptr;
    auto const& a = n->attrsAs<ops::slice::Attrs>();
    ir::Value* const x = n->inputs[0];
    if (a.mode != ops::slice::Mode::kStrict || hasInput(*n, 1) || hasInput(*n, 3) ||
        !(x->shape[axis] == v->shape[axis]))
        return nullptr;
    for (size_t d = 0; d < x->shape.size(); ++d)
        if (a.start[d] != 0 || (d == axis ? a.stride[d] != 1 && !x->shape[d].is(1) : !x->shape[d].is(1)))
            return nullptr;
    return x;
}

ir::Value* otherInput(ir::Node const* n, ir::Value const* v)
{
    return n->inputs[n->inputs[0] == v ? 1 : 0];
}

} // namespace tw::passes
