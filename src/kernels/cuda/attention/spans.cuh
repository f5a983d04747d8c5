// SPDX-License-Identifier: Apache-2.0
// Which queries a block has, and which keys these see.
//   bool SEGMENTS: sequences lie one behind the other, from each of Args::begins on; no block has queries of two
//   bool LENGTHS: an image has Args::lengths keys in place of sk; bool WINDOW: a query sees its Args::window last keys
//   bool PLACES: a query that sees no key gives 0
#pragma once

#include "kernels/cuda/attention/masks.cuh"

namespace tw::cuda {

struct Span
{
    int q0, qEnd;  // queries, up to ROWS of them; none: the block has nothing to do
    int from, end; // keys
    int shift;     // from a query to the key at its place
};

// Each warp finds it by itself, all of them the same: lanes take a sequence each, which ends at the largest begin so far. Begins
// may be anything: what lies outside the rows or is no larger than one in front of it begins nothing.
template <int ROWS>
TW_INLINE Span spanOf(Args const& a)
{
    if constexpr (!SEGMENTS) {
        int const keys = LENGTHS ? max(min(a.lengths[blockIdx.z], a.sk), 0) : a.sk, q0 = int(blockIdx.x) * ROWS,
                  shift = keys - a.sq;
        return {q0, a.sq, WINDOW ? max(q0 + shift + 1 - a.window, 0) / 8 * 8 : 0, keys, shift};
    }
    int const lane = threadIdx.x % 32;
    int before = 0, top = 0; // blocks of the sequences in front, and where the next one begins
    for (int base = 0; base <= a.beginCount; base += 32) {
        int end = max(base + lane < a.beginCount ? min(a.begins[base + lane], a.sq) : a.sq, top);
#pragma unroll
        for (int step = 1; step < 32; step *= 2) {
            int const other = __shfl_up_sync(~0u, end, step);
            end = max(end, lane >= step ? other : end);
        }
        int const left = __shfl_up_sync(~0u, end, 1), begin = lane == 0 ? top : left;
        int const tiles = (end - begin + ROWS - 1) / ROWS;
        int upTo = tiles;
#pragma unroll
        for (int step = 1; step < 32; step *= 2) {
            int const other = __shfl_up_sync(~0u, upTo, step);
            upTo += lane >= step ? other : 0;
        }
        int const tile = int(blockIdx.x) - before;
        if (u32 const found = __ballot_sync(~0u, tile < upTo); found != 0) {
            int const of = __ffs(int(found)) - 1, first = __shfl_sync(~0u, begin, of), last = __shfl_sync(~0u, end, of),
                      inside = tile - __shfl_sync(~0u, upTo - tiles, of);
            return {first + inside * ROWS, last, first, last, 0};
        }
        before += __shfl_sync(~0u, upTo, 31);
        top = __shfl_sync(~0u, end, 31);
    }
    return {0, 0, 0, 0, 0};
}

// Of a step of `keys` keys for the ROWS queries of a block: whether some of them are hidden from some; of one query and one key.
template <int ROWS>
TW_INLINE bool hidesSome(Args const& a, Span const& s, int key0, int keys)
{
    return key0 + keys > s.end || (CAUSAL && key0 + keys > s.q0 + s.shift) ||
           (WINDOW && key0 <= s.q0 + ROWS + s.shift - a.window);
}
TW_INLINE bool hides(Args const& a, Span const& s, int row, int key)
{
    return key >= s.end || (CAUSAL && key > row + s.shift) || (WINDOW && key <= row + s.shift - a.window);
}
TW_INLINE bool seesNone(Args const& a, Span const& s, int row)
{
    if constexpr (!PLACES)
        return a.sk == 0;
    int const place = row + s.shift;
    return max(WINDOW ? place + 1 - a.window : 0, 0) >= (CAUSAL ? min(s.end, place + 1) : s.end);
}

} // namespace tw::cuda
