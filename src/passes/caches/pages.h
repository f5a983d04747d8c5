// SPDX-License-Identifier: Apache-2.0
// Caches that stay where they are in the network already (TensorScatter and Attention of ONNX 24, GroupQueryAttention over buffers), in pages:
//   past [B, H, N, D], an input;  present = cache_update(past, new, index), an output;  y = attention(q, present of keys, of values, .., lengths)
//     ->  both [blocks, H, 16, D], and kv_pages, i32 [B, N / 16], an input more, the last one
#pragma once

#include <vector>

#include "passes/caches/fixed_caches.h"

namespace tw::passes {

// What gives the same elements otherwise, so that blocks stay blocks: it may stand between a cache and attention, or an output.
bool keepsBlocks(ir::Node const& n);
// kv_pages [batch, pages], which is an input more; an error where the network has one of that name.
Result<ir::Value*> addPages(ir::Graph& g, ir::Dim const& batch, ir::Dim const& pages);

// What updates an input of four dimensions, whose rows are as many as the network says.
std::vector<ir::Node*> cachesInPlace(ir::Graph& g);
// An error names what else reads a cache, or what is read so that pages do not have it.
Result<std::vector<FixedCache>> pageCaches(ir::Graph& g, std::vector<ir::Node*> const& updates, int64_t blocks);

} // namespace tw::passes
