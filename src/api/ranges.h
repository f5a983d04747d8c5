// SPDX-License-Identifier: Apache-2.0
// Dynamic ranges of tensors, as a network is lowered.
#pragma once

#include "api/network.h"
#include "passes/pass.h"

namespace tw::api {

// One step of the INT8 numbers of a tensor that has a dynamic range.
float scaleOf(TensorObject const& t);
// What an INT8 network input with a dynamic range stands for.
std::string inFloatsName(std::string const& input); // its tensor
Result<ir::Value*> inFloats(ir::Graph& g, ir::Value& integers, TensorObject const& t);
// An INT8 network output of numbers; an error without a dynamic range.
Result<ir::Value*> inIntegers(ir::Graph& g, ir::Value& v, TensorObject const& t);
// Removes the ranges of floating values, regions too, and gives them by name. What a plugin reads or makes keeps them:
// plugins are told.
passes::Ranges takeRanges(ir::Graph& g);

} // namespace tw::api
