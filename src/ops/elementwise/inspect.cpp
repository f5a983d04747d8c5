// SPDX-License-Identifier: Apache-2.0
#include "families/elementwise/layer_facts.h"
#include "ops/elementwise/op.h"

namespace tw::ops {

void inspect_elementwise(LayerFacts& facts)
{
    constexpr char const* kNames[elementwise::kOperationCount] = {
        "Sum", "Prod", "Max", "Min", "Sub", "Div", "Pow", "FloorDiv", "And", "Or", "Xor", "Equal", "Greater", "Less"};
    std::string const name = kNames[int(facts.attrs<elementwise::Attrs>().operation)];
    DataType const type = facts.node.outputs[0]->type;
    if (isFloating(type)) {
        addFunction(facts, name);
    } else { // integers and truth values stay out of expressions
        facts.kind("ElementWise");
        facts.add("Operation", name);
    }
}

} // namespace tw::ops
