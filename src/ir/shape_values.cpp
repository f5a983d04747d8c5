// SPDX-License-Identifier: Apache-2.0
#include "ir/shape_values.h"

#include <algorithm>

#include "ir/op_def.h"

namespace tw::ir {

bool isShapeInput(Node const& node, size_t i)
{
    return i < 32 && node.op->shapeInputs && (node.op->shapeInputs(node) >> i & 1) != 0;
}

std::set<Value const*> shapeValues(Graph const& g)
{
    std::set<Value const*> needed;
    for (Value const* v : g.outputs)
        if (v->host)
            needed.insert(v);
    for (auto n = g.nodes.rbegin(); n != g.nodes.rend(); ++n) {
        Node const& node = **n;
        bool const makesNeeded =
            std::any_of(node.outputs.begin(), node.outputs.end(), [&](Value const* v) { return needed.contains(v); });
        bool const readsElements = !node.op->readsDimsOnly;
        for (size_t i = 0; i < node.inputs.size(); ++i)
            if (node.inputs[i] && ((makesNeeded && readsElements) || isShapeInput(node, i)))
                needed.insert(node.inputs[i]);
    }
    return needed;
}

} // namespace tw::ir
