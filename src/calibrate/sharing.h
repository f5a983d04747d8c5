// SPDX-License-Identifier: Apache-2.0
// Tensors that have one scale under Entropy2: a concatenation's inputs and output, and the two sides of a pool.
#pragma once

#include <map>
#include <string>

#include "ir/graph.h"

namespace tw::calibrate {

// Thresholds by tensor name. Inputs of a concatenation follow its output, the output of a pool follows its input: the
// threshold of all that hang together is the largest of those that follow nobody. Tensors without a threshold have no
// part in it.
void shareThresholds(ir::Graph const& g, std::map<std::string, double>& thresholds);

} // namespace tw::calibrate
