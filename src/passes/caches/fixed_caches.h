// SPDX-License-Identifier: Apache-2.0
// Caches of keys and values that get longer with each run, as exporters write them, become caches of a capacity N that stay where they are:
//   past [B, H, P, D], an input;  present = concatenation(past, new), an output;  y = attention(q, present of keys, of values, masks)
//     ->  past [B, H, N, D];  present = cache_update(past, new, kv_lengths);  y = attention(q, .., masks, kv_lengths + s)
// kv_lengths, i32 [B], is an input more, the last one: how many rows of each sequence there are before a run of s new ones. The dimension P
// is gone from all shapes, and lengths are data: what the model computes of P (places, masks) is computed of kv_lengths, for each sequence.
// In pages caches are blocks of 16 rows of all sequences together, [blocks, H, 16, D], and kv_pages, i32 [B, N / 16], an input more behind
// kv_lengths, says which block holds rows 16 p to 16 p + 15 of a sequence.
// This is no pass of the pipeline, for inputs and outputs change; it runs the passes up to fuse_attention on the graph.
#pragma once

#include <memory>

#include "passes/pass.h"

namespace tw::passes {

inline constexpr char const* kCacheLengths = "kv_lengths";
inline constexpr char const* kCachePages = "kv_pages";
inline constexpr int64_t kMostCapacity = 1 << 24;

struct CacheSizes
{
    int64_t capacity = 0, blocks = 0; // rows of a sequence; blocks of all, 0: no pages
};

struct FixedCache
{
    std::string past, present; // names of an input and of an output
    int axis = 2;              // of rows
    ir::Dim added;             // new rows of a run
};

// An error names the cache and what reads it, or what is computed of its length, that cannot be rebuilt.
Result<std::vector<FixedCache>> fixCaches(std::unique_ptr<ir::Graph>& g, CacheSizes const& sizes,
                                          PassContext const& ctx);

} // namespace tw::passes
