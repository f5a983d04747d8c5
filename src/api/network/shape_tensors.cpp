// SPDX-License-Identifier: Apache-2.0
// Which tensors of a network are shape tensors.
#include <algorithm>

#include "api/control_flow/nesting.h"
#include "api/network/network.h"
#include "ir/shape_values.h"
#include "tactic/registry.h"

namespace tw::api {

bool isScalarOfFill(ir::Graph const& g, ir::Value const* v)
{
    return !v->producer && !v->isConstant() && v->rank() == 0 && v->type == DataType::kInt32 &&
           std::ranges::any_of(g.nodes,
                               [&](auto const& n) { return n->op == &ops::fill::def() && contains(n->inputs, v); });
}

// Of what is lowered, loops and conditionals flat among the rest.
std::set<ir::Value const*> NetworkObject::shapeTensors(InputNames const& given)
{
    // Outputs for shapes count, and what they are computed from.
    graph_.outputs.clear();
    for (TensorObject* s : shapeOutputs) {
        if (auto it = values_.find(s); it != values_.end()) {
            it->second->host = true;
            graph_.outputs.push_back(it->second);
        }
    }
    for (TensorObject const* s : control_flow::shapeInputs(*this, given)) {
        if (auto it = values_.find(s); it != values_.end() && !it->second->host) {
            it->second->host = true;
            graph_.outputs.push_back(it->second);
        }
    }
    auto shapes = ir::shapeValues(graph_);
    for (ir::Value* v : graph_.outputs)
        v->host = false;
    graph_.outputs.clear();
    return shapes;
}

// Inputs that decide counts of loops and nothing else that is known when shapes are.
std::set<TensorObject const*> NetworkObject::countsReadByRun(InputNames const& given)
{
    auto inputsOfCounts = control_flow::readByRun(*this, given);
    if (inputsOfCounts.empty())
        return {};
    auto const shapes = shapeTensors(given);
    std::erase_if(inputsOfCounts, [&](TensorObject const* t) {
        ir::Value const* const v = values_.at(t);
        return shapes.contains(v) || isScalarOfFill(graph_, v);
    });
    return inputsOfCounts;
}

bool NetworkObject::isShapeTensor(TensorObject const& t)
{
    for (auto const& l : layers)
        (void)lowerWithInputs(*l).ok(); // errors are reported when the network is built
    auto const shapes = shapeTensors({});
    auto it = values_.find(&t);
    return t.isShapeOutput ||
           (it != values_.end() && (shapes.contains(it->second) || isScalarOfFill(graph_, it->second)));
}

} // namespace tw::api
