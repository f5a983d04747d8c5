// SPDX-License-Identifier: Apache-2.0
// Check before choose: random inputs that suit an op, and comparison with its reference.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/tensor.h"
#include "ir/op_def.h"
#include "ops/cases.h"
#include "ops/tactic.h"

namespace tw::tune {

// What input i of the node may hold.
ops::Domain domainOf(ir::Node const& node, int i);
ops::Tolerance toleranceOf(ir::Node const& node, DataType type);
// Deterministic for a seed.
void fillRandom(TensorRef const& t, ops::Domain const& domain, uint64_t seed);
// Empty when equal within the tolerance at the wanted elements (all, when `wanted` is empty), else where and by how
// much.
std::string compare(TensorRef const& got, TensorRef const& want, ops::Tolerance const& tolerance,
                    std::vector<bool> const& wanted = {});

// The tensors in the formats of the specs: copies in `storage` where they differ (without elements, if the tensor has
// no data), else the tensors themselves. An error when memory runs out.
Result<std::vector<TensorRef>> inFormats(std::span<TensorRef const> tensors, std::span<ops::TensorSpec const> specs,
                                         std::vector<Tensor>& storage);

// Runs the kernel on inputs at the problem's optimum and compares with the reference: everywhere on small outputs, at
// sampled elements (corners, tails and random ones) on large ones. Random inputs where the problem knows no contents.
// An error: the kernel is wrong. A text: nothing could be compared (the node refuses random inputs), and why.
Result<std::string> checkKernel(ops::Problem const& problem, ops::Kernel const& kernel, char const* tacticName,
                                Workers& workers);

} // namespace tw::tune
