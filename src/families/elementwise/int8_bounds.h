// SPDX-License-Identifier: Apache-2.0
// What is certain of the numbers that an epilogue of integer sums rounds to i8.
#pragma once

#include "families/elementwise/epilogue.h"
#include "tactic/tactic.h"

namespace tw::ops {

// Whether they are no NaN and lie within 2^30, whatever the factors are: said by constant scales and bias. `k`: how many
// factors each sum has at most.
bool staysBounded(Problem const& problem, Epilogue const& epilogue, double k);

} // namespace tw::ops
