// SPDX-License-Identifier: Apache-2.0
// Indices that count, as frameworks compute them of ranges: what gathers and scatters with them read and write lies one behind the other.
#pragma once

#include <optional>
#include <vector>

#include "ir/graph.h"

namespace tw::passes {

// Of integers: first + sum over d of steps[d] I[d].
struct Counting
{
    ir::Dim first;
    std::vector<ir::Dim> steps;
};

// Of constants, ranges, repetitions and sums; none: nobody knows.
std::optional<Counting> countingOf(ir::Value const* v);

// Of each dimension of the data that a gather or scatter indexes, over the dimensions of the indices. Empty: nobody knows.
std::vector<Counting> countingsOf(ir::Node const& n, bool isTuples);

// Whether the indices count through dimensions `read` of the data, the last one fastest, over dimensions `over`.
bool countThrough(std::vector<Counting> const& indices, ir::Shape const& read, ir::Shape const& over);

} // namespace tw::passes
