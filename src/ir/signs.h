// SPDX-License-Identifier: Apache-2.0
// What a graph tells of the signs of its numbers: kernels of i8 multiply numbers without a sign faster.
#pragma once

#include "ir/graph.h"

namespace tw::ir {

// Asks the ops (OpDef::isNonNegative) upwards from a value, a limited number of nodes.
class Signs
{
public:
    // Whether it is known that no element is below 0; NaN may be among them.
    bool isNonNegative(Value const& value);
    // Of the first `count` inputs that are there.
    bool areNonNegative(Node const& node, size_t count = SIZE_MAX);

private:
    int left_ = 64; // nodes
};

// An op that moves, or chooses among, the elements of input 0, or of all inputs.
bool ofFirstInput(Node const& node, Signs& signs);
bool ofAllInputs(Node const& node, Signs& signs);

} // namespace tw::ir
