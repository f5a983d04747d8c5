// SPDX-License-Identifier: Apache-2.0
// Two decoders in one file, as exporters merge them: a conditional over an input of the graph, of whose regions one has caches
// that get longer, and the other reads tokens without a past.
//   y, presents = conditional(use_cache_branch) { with a past } { without }        ->  what the region with a past does
// Behind no rows it does what the other one does, so that in front of kv_lengths nobody asks which it is. With an encoder the other
// region makes its keys and values, too, which the one with a past reads:
//   crossed = conditional(use_cache_branch) { past } { made of the encoder's states }
// is what is read, and what the graph gives.
#pragma once

#include "passes/caches/images.h"
#include "passes/pass.h"

namespace tw::passes {

// Caches that get longer, and what joins them with new rows.
std::vector<CacheJoin> joinsOf(ir::Graph& g);

// Whether there was such a conditional, which is gone then.
Result<bool> takeDecoderWithPast(ir::Graph& g, PassContext const& ctx);

} // namespace tw::passes
