// SPDX-License-Identifier: Apache-2.0
// The plain matrix product with all that may stand after it, in f32 or f16.
#pragma once

#include "tactic/tactic.h"

namespace tw::ops {

int64_t multiplyPlainWorkspaceBytes(ir::Node const& node, std::span<TensorRef const> in,
                                    std::span<TensorRef const> out);
Result<void> multiplyPlain(ir::Node const& node, RunArgs& args);

} // namespace tw::ops
