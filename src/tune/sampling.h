// SPDX-License-Identifier: Apache-2.0
// Which elements of large outputs a check compares.
#pragma once

#include <cstdint>
#include <vector>

#include "base/extents.h"
#include "ir/graph.h"

namespace tw::tune {

constexpr int64_t kCompareAll = 4096; // outputs up to this size are compared everywhere

// The first, second, middle, last but one and last index along every dimension, in all combinations, and `random`
// elements in between, in order; every element of small tensors (empty).
std::vector<int64_t> sample(Extents const& dims, int64_t random);

// Whether every element of a body's output needs that element alone of what its first expensive node gives: then the
// others need not be computed.
bool mayBeSampled(ir::Graph const& body);

} // namespace tw::tune
