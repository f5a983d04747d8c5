// SPDX-License-Identifier: Apache-2.0
// A value as a part of another one: what shuffles, slices and gathers of one index leave in place can be read where it
// lies.
#pragma once

#include <optional>
#include <vector>

#include "ir/graph.h"

namespace tw::passes {

struct StridedView
{
    ir::Value* source = nullptr;
    int64_t offset = 0;       // in elements
    ir::Shape sizes, strides; // of the value; strides in elements of the source, 0 where one element is repeated, of no
                              // meaning for sizes of 1
    std::vector<ir::Node*> nodes; // between source and value
};

// Through at most `depth` nodes; with depth 0 the value itself.
StridedView viewOf(ir::Value* v, int depth);
void permute(StridedView& view, std::vector<int64_t> const& permutation); // empty: identity
// The same elements in order under other dimensions; false where no strides can say it (the view is damaged then).
bool reshape(StridedView& view, ir::Shape const& target);

} // namespace tw::passes
