// SPDX-License-Identifier: Apache-2.0
// Attention of few queries a head of keys and values, as decoders have it: nothing is packed, parts of the keys go to threads.
#pragma once

#include "kernels/cpu/jit/emitter.h"
#include "ops/attention/op.h"
#include "tactic/tactic.h"

namespace tw::ops::attention {

// Whether it is possible: heads of whole vectors, nothing rounded; and whether it is the way: few queries, keys in INT8, or of several images.
bool mayTakeFewRows(kernels::jit::Isa isa, Attrs const& a);
bool takesFewRows(kernels::jit::Isa isa, Attrs const& a, Geometry const& g, DataType keys);
int64_t fewRowsWorkspace(Attrs const& a, Geometry const& g, int64_t threads);
Result<void> runFewRows(kernels::jit::Isa isa, Attrs const& a, Geometry const& g, int64_t threads, RunArgs& args);

} // namespace tw::ops::attention
