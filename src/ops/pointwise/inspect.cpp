// SPDX-License-Identifier: Apache-2.0
#include "families/elementwise/layer_facts.h"
#include "ops/pointwise/op.h"

namespace tw::ops {

void inspect_pointwise(LayerFacts& facts)
{
    using namespace pointwise;
    auto const& a = facts.attrs<Attrs>();
    size_t const inputs = a.inputs.size() / kNumbersOfInput;
    std::vector<std::string> literals;
    std::vector<std::string> const operations = operationsOf(stepsOf(a.steps, a.parameters), inputs, &literals);
    addExpression(facts, inputs, operations, literals);
}

} // namespace tw::ops
