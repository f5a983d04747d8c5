// SPDX-License-Identifier: Apache-2.0
// Attention over caches of keys and values, of which each image has its own number of rows.
#pragma once

#include "onnx/importer.h"

namespace tw::onnx {

struct CachedAttention
{
    double scale = 1, softcap = 0; // softcap 0: none
    bool isCausal = true;          // a query sees keys up to its own place
    std::optional<int64_t> left;   // and, where causal, so many in front of that
    ITensor* sinks = nullptr;      // [H]: scores of a key whose value is 0
    int64_t heads = 0;             // of q and the result, where these are [B, s, H * size]
    ITensor* bias = nullptr;       // a part of the scores: [B or 1, H or 1, s or 1, C]
};

// q [B, H, s, size] or [B, s, H * size], keys [B, G, C, size], values [B, G, C, n], H a multiple of G; lengths kINT32 [B]: keys in front of
// that are valid. Query i of s stands at place lengths - s + i, below 0 it sees no key. The result is [B, H, s, n], or
// [B, s, H * n] as q is, 0 where there is no key.
ITensor& cachedAttention(ImportContext& ctx, ITensor& q, ITensor& keys, ITensor& values, ITensor& lengths,
                         CachedAttention const& how);

} // namespace tw::onnx
