// SPDX-License-Identifier: Apache-2.0
#include "ir/signs.h"

#include <algorithm>

#include "ir/op_def.h"

namespace tw::ir {

bool Signs::isNonNegative(Value const& value)
{
    Node const* const n = value.producer;
    return n && value.producerIndex == 0 && n->op->isNonNegative && left_-- > 0 && n->op->isNonNegative(*n, *this);
}

bool Signs::areNonNegative(Node const& node, size_t count)
{
    for (size_t i = 0; i < std::min(count, node.inputs.size()); ++i)
        if (node.inputs[i] && !isNonNegative(*node.inputs[i]))
            return false;
    return true;
}

bool ofFirstInput(Node const& node, Signs& signs)
{
    return signs.areNonNegative(node, 1);
}

bool ofAllInputs(Node const& node, Signs& signs)
{
    return signs.areNonNegative(node);
}

} // namespace tw::ir
