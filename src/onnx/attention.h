// SPDX-License-Identifier: Apache-2.0
// Attention in layers, as exporters write it: a pass makes one node of them (passes/attention/fuse_attention.cpp).
#pragma once

#include <functional>
#include <limits>

#include "onnx/importer.h"

namespace tw::onnx {

inline constexpr double kHidden =
    -std::numeric_limits<double>::infinity(); // what is added to the scores of hidden keys

// [B, S, heads * size] as [B, heads, S, size], and back.
ITensor& apartHeads(ImportContext& ctx, ITensor& x, int64_t heads);
ITensor& joinedHeads(ImportContext& ctx, ITensor& x);

// Behind the keys or values [B, heads, length, size] of earlier calls, which an input may have.
ITensor& behindPast(ImportContext& ctx, int input, ITensor& x);

// a && b; b where there is no a.
ITensor& andAlso(ImportContext& ctx, ITensor* a, ITensor& b);
ITensor& plus(ImportContext& ctx, ITensor* a, ITensor& b);

// x [.., n] of any rank with its last dimension as long as the keys: what is missing has `fill`.
ITensor& asLongAsKeys(ImportContext& ctx, ITensor& x, Size const& keys, double fill);

struct AttentionRule
{
    double scale = 1, softcap = 0; // softcap 0: none
    DataType softmaxType = DataType::kFLOAT;
    // What says which keys a query attends to: where `keep` is false it does not; `added` is a part of the scores.
    ITensor *keep = nullptr, *added = nullptr;
    bool mayHideAll = false;  // all keys of a query: its result is 0
    ITensor* sinks = nullptr; // [heads]: scores of a key whose value is 0
};

// Where the scores can be had as they come about.
enum class ScoreStage
{
    kProducts,
    kCapped,
    kMasked,
    kWeights,
};

// q [B, heads, Si, size], k [B, groups, Sj, size], v [B, groups, Sj, n], heads a multiple of groups: [B, heads, Si, n].
ITensor& attended(ImportContext& ctx, ITensor& q, ITensor& k, ITensor& v, AttentionRule const& rule,
                  std::function<void(ScoreStage, ITensor&)> const& seen = {});

} // namespace tw::onnx
