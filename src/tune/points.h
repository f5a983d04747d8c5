// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/extents.h"
#include "base/tensor.h"

namespace tw::tune {

// One input of a region somewhere within the engine's range.
struct InputAt
{
    Extents dims;
    TensorRef contents; // of a shape tensor; null data: the input holds anything
};

// Sizes that an engine may be run with beside its optimum, as they reach one region: its kernels are checked there,
// too.
struct Point
{
    std::string where; // for messages: "at the minimum shapes"
    std::vector<InputAt> inputs;
};

} // namespace tw::tune
