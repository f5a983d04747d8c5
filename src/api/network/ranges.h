// SPDX-License-Identifier: Apache-2.0
// Dynamic ranges of tensors, as a network is lowered.
#pragma once

#include "api/network/network.h"
#include "passes/pass.h"

namespace tw::api {

// One step of the INT8 numbers of a tensor that has a dynamic range.
float scaleOf(TensorObject const& t);
// What an INT8 network input stands for. Without a dynamic range its scale is open, as that of an output.
std::string inFloatsName(std::string const& input); // its tensor
Result<ir::Value*> inFloats(ir::Graph& g, ir::Value& integers, TensorObject const& t);
// An INT8 network output of numbers.
Result<ir::Value*> inIntegers(ir::Graph& g, ir::Value& v, TensorObject const& t);
// A scale by the name of its tensor: that of the range, or 1 and open until settleScales().
ir::Value* scaleConstant(ir::Graph& g, std::string const& tensor, float scale);
// Gives the open scales what the ranges say, regions too, and lets plugins know. A tensor without one is an error by name.
Result<void> settleScales(ir::Graph& g, NetworkObject const& n, passes::Ranges& ranges);
// Makes INT8 inputs of open scales FP32 ones: what calibration runs to find these.
void openInputsInFloats(ir::Graph& g, std::set<std::string> const& open);

} // namespace tw::api
