// SPDX-License-Identifier: Apache-2.0
// Static caches, inputs and outputs of a fixed length that a scatter or an update writes at places of a run, the same for all sequences:
//   present = cache_update(past, new, one place for all), or a scatter to places that are an input;  y = attention(q, present ..)
//     ->  present = cache_update(past, new, kv_lengths);  y = attention(q, .., masks, kv_lengths + s)
// kv_lengths, i32 [B], is an input more: each sequence has rows of its own in front. What said the place before is read no more, but where
// the network gives it out again. A length that the file leaves open is the capacity. Masks stay the model's.
#pragma once

#include "passes/caches/fixed_caches.h"
#include "passes/pass.h"

namespace tw::passes {

// Empty: there are none.
Result<std::vector<FixedCache>> fixStaticCaches(ir::Graph& g, CacheSizes const& sizes, Options const& options,
                                                PassContext const& ctx);

} // namespace tw::passes
