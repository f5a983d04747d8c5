// SPDX-License-Identifier: Apache-2.0
// A constant's elements in other dimensions, as a node of the recipes.
#pragma once

#include "ir/graph.h"
#include "ops/shuffle/op.h"
#include "tactic/registry.h"

namespace tw::recipe {

inline Result<ir::Value*> reshaped(ir::Graph& g, ir::Value* v, Extents const& dims)
{
    if (v->isConstant() && ir::extentsOf(v->shape) == dims)
        return v;
    ops::shuffle::Attrs a;
    a.hasReshape = true;
    a.zeroIsPlaceholder = false;
    a.reshape.assign(dims.begin(), dims.end());
    TW_ASSIGN(ir::Node * n, g.addNode(ops::shuffle::def(), a.clone(), {v}, v->name + ".view"));
    return n->outputs[0];
}

} // namespace tw::recipe
