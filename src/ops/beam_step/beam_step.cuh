// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "families/decoding/block.cuh"
#include "ops/beam_step/beam_step_params.h"

namespace tw::ops::beam_step {

using decoding::isNever, decoding::mostOfBlock;

// A beam a block: its best 2 b tokens. Each thread knows the best of its own tokens that is left; who had the best of all
// looks for its next one.
TW_KERNEL beam_best(const __grid_constant__ Params p)
{
    i64 const row = blockIdx.x, n = row / p.beams;
    i32 const room = 2 * p.beams;
    u64* keys = p.keys + row * room;
    float const sum = decoding::scoreOf(p.sums[row]);
    bool const isEmpty = isNever(sum) || isOver(p, rowOf(p, n), n);
    float const* scores = p.scores + row * p.vocabulary;
    auto const bestBelow = [&](u64 limit) {
        u64 best = 0;
        for (i32 t = threadIdx.x; t < p.vocabulary; t += blockDim.x) {
            u64 const key = keyOf(sum, decoding::scoreOf(scores[t]), u32(t));
            best = key < limit && key > best ? key : best;
        }
        return best;
    };
    u64 mine = isEmpty ? 0 : bestBelow(~u64(0));
    for (i32 k = 0; k < room; ++k) {
        u64 const best = mostOfBlock(mine);
        if (threadIdx.x == 0)
            keys[k] = best;
        if (best != 0 && best == mine)
            mine = bestBelow(best);
    }
}

// A row a block, a beam a thread where they are merged: keys of equal sums of two beams are told apart by the beam.
TW_KERNEL beam_step(const __grid_constant__ Params p)
{
    __shared__ Made next[kBeams], ends[kBeams];
    __shared__ Candidate best[2 * kBeams];
    __shared__ State state;
    i64 const n = blockIdx.x;
    Row const r = rowOf(p, n);
    if (threadIdx.x == 0) {
        state.next = next;
        state.ends = ends;
        begin(p, r, n, state);
    }
    __syncthreads();
    if (!state.isDone) {
        i32 const room = 2 * p.beams, beam = i32(threadIdx.x);
        u64 const* keys = p.keys + (n * p.beams + beam) * room;
        i32 head = 0, count = 0;
        for (; count < room; ++count) {
            u64 const key = beam < p.beams && head < room ? keys[head] : 0;
            u64 const mine = key ? (key & 0xffffffff00000000ull) | (0xffffffffu - u32(beam)) : 0;
            u64 const most = mostOfBlock(mine);
            if (most == 0)
                break;
            if (most == mine) {
                best[count] = candidateOf(key, beam);
                ++head;
            }
        }
        __syncthreads();
        if (threadIdx.x == 0)
            advance(r, p.ends, best, count, state);
        __syncthreads();
    }
    for (i32 j = threadIdx.x; j < p.beams; j += blockDim.x)
        writeNumbers(p, r, n, state, j);
    for (i32 j = 0; j < p.beams; ++j)
        for (i32 i = threadIdx.x; i < p.capacity; i += blockDim.x)
            writePosition(p, r, n, state, j, i);
}

} // namespace tw::ops::beam_step
