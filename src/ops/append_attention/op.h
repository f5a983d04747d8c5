// SPDX-License-Identifier: Apache-2.0
// What a step of a decoder does with its caches, as one node: new rows are written into them, behind a rotation where there is one, and
// attention reads them.
//   k' = cache_update(k, new keys, index)      v' = cache_update(v, new values, index)      y = attention(q, k', v', ..)
// k, v: caches [B, heads of keys, S, size], which k' and v' may share their storage with. New rows lie as cache_update takes them, along axis 2: [B, heads, n, size],
// or with a head stride in columns of [B, n, w]. With a rotary size r the queries and behind them the new keys are heads of input 0, [B, n, w], neighbours from column
// attention.q.offset on, all of which rotary turns first; there is no input 3 then.
// Inputs: 0 queries, 1 k, 2 v, 3 new keys, 4 new values, 5 index (i32 [B]), 6 and 7 cosines and sines [B or 1, n or 1, 1, r or r / 2], where r > 0; from 8 on what attention has
// from 3 on. Outputs: y, k', v'. Made by passes for GPUs.
#pragma once

#include <array>

#include "ops/attention/op.h"
#include "ops/cache_update/op.h"
#include "ops/rotary/op.h"
#include "tactic/reference.h"

namespace tw::ops::append_attention {

enum Input : int
{
    kQueries,
    kKeyCache,
    kValueCache,
    kNewKeys,
    kNewValues,
    kIndex,
    kCosines,
    kSines,
    kOthers, // of attention, from its input 3 on
};
inline constexpr int kAttentionOthers = 3;
inline constexpr int kRowsAxis = 2; // of caches
inline constexpr int kMostInputs = kOthers + 9;

struct Attrs : ir::AttrsOf<Attrs>
{
    attention::Attrs attention;
    int64_t keyOffset = 0, keyHeadStride = 0, valueOffset = 0, valueHeadStride = 0; // of new rows, see cache_update
    int64_t rotarySize = 0;                                                         // 0: nothing is turned
    bool interleaved = false;

    bool isTurned() const { return rotarySize > 0; }
    int64_t turnedHeads() const { return attention.heads + attention.keyHeads(); }
    int64_t turnedWidth() const { return turnedHeads() * attention.size; }
    // Those of the nodes that this one stands for.
    rotary::Attrs rotation() const;
    cache_update::Attrs keyUpdate() const;
    cache_update::Attrs valueUpdate() const;
    attention::Attrs attending() const;

    void visit(ir::AttrVisitor& v) override
    {
        attention.visit(v);
        v.field(101, "key_offset", keyOffset);
        v.field(102, "key_head_stride", keyHeadStride);
        v.field(103, "value_offset", valueOffset);
        v.field(104, "value_head_stride", valueHeadStride);
        v.field(105, "rotary_size", rotarySize);
        v.field(106, "interleaved", interleaved);
    }
};

// The nodes in order. Turned rows are [B, n, turned width] for those that read them.
enum class Part : int
{
    kRotation,
    kKeyUpdate,
    kValueUpdate,
    kAttention,
};
inline constexpr size_t kParts = size_t(Part::kAttention) + 1;
// One of them, without inputs, outputs and name.
ir::Node nodeOf(Attrs const& attrs, Part part);

// What attention reads: rows of queries, caches, and the node's other inputs.
class AttentionInputs
{
public:
    AttentionInputs(TensorRef const& rows, std::span<TensorRef const> in, std::span<TensorRef const> out)
        : all_{rows, out[1], out[2]}
    {
        for (size_t i = kOthers; i < in.size(); ++i)
            all_[count_++] = in[i];
    }
    operator std::span<TensorRef const>() const { return {all_.data(), count_}; }

private:
    std::array<TensorRef, kAttentionOthers + kMostInputs - kOthers> all_;
    size_t count_ = kAttentionOthers;
};

// The tensors of each part, which it gives to f(part, inputs, output); f's result is a Result<void>. `turned`: where turned rows
// go, if there are any.
template <class F>
Result<void> forParts(Attrs const& a, std::span<TensorRef const> in, std::span<TensorRef const> out, void* turned,
                      F const& f)
{
    TensorRef rows = in[kQueries];
    if (a.isTurned()) {
        rows.data = turned;
        rows.dims = {rows.dims[0], rows.dims[1], a.turnedHeads(), a.attention.size};
        TW_TRY(f(Part::kRotation, std::array{in[kQueries], in[kCosines], in[kSines]}, rows));
        rows.dims = {rows.dims[0], rows.dims[1], a.turnedWidth()};
    }
    TW_TRY(f(Part::kKeyUpdate, std::array{in[kKeyCache], a.isTurned() ? rows : in[kNewKeys], in[kIndex]}, out[1]));
    TW_TRY(f(Part::kValueUpdate, std::array{in[kValueCache], in[kNewValues], in[kIndex]}, out[2]));
    AttentionInputs const attended(rows, in, out);
    return f(Part::kAttention, std::span<TensorRef const>(attended), out[0]);
}

} // namespace tw::ops::append_attention
