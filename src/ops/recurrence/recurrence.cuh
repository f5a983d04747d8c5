// SPDX-License-Identifier: Apache-2.0
// A block for each sequence and direction: a warp for each hidden unit, one step after the other.
//   type Element; int kCell, kDirections; bool kReverse (of direction 0), kLinear, kInputForget; float kClip (0: none)
//   float functionOf(int direction, int i, float x)
#pragma once

#include "ops/recurrence/recurrence_elements.cuh"
#include "ops/recurrence/recurrence_params.h"

namespace tw::ops::recurrence {

constexpr int kThreads = 256;

// One sequence; rows of the workspace: states of even and odd steps, of cells, and what GRU carries from phase to phase.
struct Sequence
{
    Params const& p;
    i64 d, n;
    float* rows;

    TW_INLINE float* row(int i) const { return rows + i * p.hidden; }
    TW_INLINE i64 state(i64 j) const { return d * p.stateDir + n * p.stateRow + j; }
    TW_INLINE float bias(int which, int gate, i64 j) const
    {
        return p.bias ? at(p.bias, ((d * 2 + which) * kGates + gate) * p.hidden + j) : 0.0f;
    }
    TW_INLINE float peephole(int which, i64 j, float c) const
    {
        return p.peepholes ? at(p.peepholes, (d * 3 + which) * p.hidden + j) * c : 0.0f;
    }
    // Sums of a warp, the same in every lane.
    TW_INLINE float ofX(i64 t, int gate, i64 j) const
    {
        i64 const x = t * p.xStep + n * p.xRow;
        if (!p.w)
            return at(p.x, x + j) + bias(0, gate, j);
        float sum = 0;
        for (i64 e = threadIdx.x & 31; e < p.inputs; e += 32)
            sum += at(p.x, x + e) * at(p.w, ((d * kGates + gate) * p.hidden + j) * p.inputs + e);
        return warpReduce(sum, [](float a, float b) { return a + b; }) + bias(0, gate, j);
    }
    TW_INLINE float ofH(float const* h, int gate, i64 j) const
    {
        float sum = 0;
        for (i64 k = threadIdx.x & 31; k < p.hidden; k += 32)
            sum += h[k] * at(p.r, ((d * kGates + gate) * p.hidden + j) * p.hidden + k);
        return warpReduce(sum, [](float a, float b) { return a + b; }) + bias(1, gate, j);
    }
    TW_INLINE float function(int i, float x) const { return functionOf(int(d), i, clipped(x)); }
    TW_INLINE float gate(i64 t, float const* h, int g, i64 j) const { return ofX(t, g, j) + ofH(h, g, j); }

    TW_INLINE float lstm(i64 t, float const* h, i64 j) const
    {
        float const c = row(2)[j], in = function(0, gate(t, h, 0, j) + peephole(0, j, c));
        float forget = 1.0f - in;
        if (!kInputForget)
            forget = function(0, gate(t, h, 2, j) + peephole(2, j, c));
        float const next = forget * c + in * function(1, gate(t, h, 3, j));
        float const out = function(0, gate(t, h, 1, j) + peephole(1, j, next));
        __syncwarp();
        if ((threadIdx.x & 31) == 0)
            row(2)[j] = next;
        return out * functionOf(int(d), 2, next);
    }
    // Update gate and what the new state gets of x, for the second phase.
    TW_INLINE void resetState(i64 t, float const* h, i64 j) const
    {
        float const z = function(0, gate(t, h, 0, j)), r = function(0, gate(t, h, 1, j)), x = ofX(t, 2, j);
        if ((threadIdx.x & 31) == 0) {
            row(3)[j] = z;
            row(4)[j] = r * h[j];
            row(5)[j] = x;
        }
    }
    TW_INLINE float gru(i64 t, float const* h, i64 j) const
    {
        float z, x;
        if (kLinear) {
            z = function(0, gate(t, h, 0, j));
            x = function(0, gate(t, h, 1, j)) * ofH(h, 2, j) + ofX(t, 2, j);
        } else {
            z = row(3)[j];
            x = row(5)[j] + ofH(row(4), 2, j);
        }
        return (1.0f - z) * function(1, x) + z * h[j];
    }
    TW_INLINE float next(i64 t, float const* h, i64 j) const
    {
        if constexpr (kCell == kLstm)
            return lstm(t, h, j);
        else if constexpr (kCell == kRnn)
            return function(0, gate(t, h, 0, j));
        else
            return gru(t, h, j);
    }
    TW_INLINE void step(i64 t, float const* h, float* to) const
    {
        i64 const first = threadIdx.x >> 5, warps = kThreads / 32;
        if (kGates == 3 && !kLinear) {
            for (i64 j = first; j < p.hidden; j += warps)
                resetState(t, h, j);
            __syncthreads();
        }
        for (i64 j = first; j < p.hidden; j += warps) {
            float const v = next(t, h, j);
            if ((threadIdx.x & 31) == 0) {
                to[j] = v;
                put(p.y, t * p.yStep + n * p.yRow + d * p.hidden + j, v);
            }
        }
        __syncthreads();
    }
    TW_INLINE void run() const
    {
        i64 const length = !p.lengths               ? p.steps
                           : p.lengths[n] < 0       ? 0
                           : p.lengths[n] < p.steps ? p.lengths[n]
                                                    : p.steps;
        for (i64 j = threadIdx.x; j < p.hidden; j += kThreads) {
            row(0)[j] = p.h0 ? at(p.h0, state(j)) : 0.0f;
            row(2)[j] = p.c0 ? at(p.c0, state(j)) : 0.0f;
        }
        __syncthreads();
        bool const reverse = d == 1 || kReverse;
        for (i64 i = 0; i < length; ++i)
            step(reverse ? length - 1 - i : i, row(int(i & 1)), row(int(~i & 1)));
        for (i64 t = length; t < p.steps; ++t)
            for (i64 j = threadIdx.x; j < p.hidden; j += kThreads)
                put(p.y, t * p.yStep + n * p.yRow + d * p.hidden + j, 0.0f);
        for (i64 j = threadIdx.x; j < p.hidden; j += kThreads) {
            put(p.h, state(j), row(int(length & 1))[j]);
            if (kCell == kLstm)
                put(p.c, state(j), row(2)[j]);
        }
    }
};
TW_KERNEL __launch_bounds__(256) recurrence_sequences(const __grid_constant__ Params p)
{
    waitForPrevious();
    releaseDependents();
    i64 const d = i64(blockIdx.x) / p.batch;
    Sequence{p, d, i64(blockIdx.x) - d * p.batch, p.rows + i64(blockIdx.x) * kRows * p.hidden}.run();
}

} // namespace tw::ops::recurrence
