// SPDX-License-Identifier: Apache-2.0
// Factors of convolutions: places of x under a window, k over taps and channels as x has them in memory, and filters. After
// places_2d.cuh or places_nd.cuh, which have Args, Element, Phase, Taps, Pixel and Step.
//   int TILE_M, TILE_N, VECTOR; bool SPLITS, HOLDS
#pragma once

#include "kernels/cuda/mma/main_loop.cuh"
#include "kernels/cuda/mma/window_split.cuh"

namespace tw::cuda::product {

constexpr int ROW_BYTES = STEP * BYTES, UNIT = 16 / BYTES; // of a tile; elements of a unit
// Rows of 64 or 128 bytes; 8 rows at the same k lie in different banks.
TW_INLINE u32 unitAt(int row, int unit)
{
    return ROW_BYTES == 64 ? row * 64 + (unit ^ (row >> 1 & 3)) * 16 : row * 128 + (unit ^ (row & 7)) * 16;
}
// In registers: else compilers compute it again in each step.
TW_INLINE u32 kept(u32 v)
{
    asm volatile("" : "+r"(v));
    return v;
}
TW_INLINE Element const* kept(Element const* v)
{
    asm volatile("" : "+l"(v));
    return v;
}
// VECTOR elements, those after the first `bytes` zero; nothing is read when that is 0.
TW_INLINE void copyPart(u32 to, Element const* from, int bytes)
{
    if constexpr (VECTOR * BYTES == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
    else if constexpr (VECTOR * BYTES == 8)
        asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
    else if constexpr (VECTOR * BYTES == 4)
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
    else if constexpr (VECTOR * BYTES == 2) { // too few bytes for an asynchronous copy
        u16 const v = bytes ? *reinterpret_cast<u16 const*>(from) : u16(0);
        asm volatile("st.shared.b16 [%0], %1;" ::"r"(to), "h"(v) : "memory");
    } else {
        u32 const v = bytes ? *reinterpret_cast<u8 const*>(from) : u8(0);
        asm volatile("st.shared.b8 [%0], %1;" ::"r"(to), "r"(v) : "memory");
    }
}

struct Windows
{
    static constexpr int AT_ONCE = 1; // of the first steps' copies: short code
    static constexpr int A_BYTES = TILE_M * ROW_BYTES, STAGE_BYTES = (TILE_M + TILE_N) * ROW_BYTES;
    // x: each thread has one place in k and PIXELS rows, or LOADS places of one row.
    static constexpr int PER_ROW = STEP / VECTOR, APART = VECTOR == 1 ? 0 : THREADS / PER_ROW;
    static constexpr int PIXELS = VECTOR == 1 ? 1 : TILE_M / (THREADS / PER_ROW),
                         LOADS = VECTOR == 1 ? TILE_M * STEP / THREADS : 1;
    Args const& a;
    int const split = SPLITS ? splitCount() : 1, rank = SPLITS ? splitRank() : 0;
    int const m0 = blockIdx.x / split * TILE_M, n0 = blockIdx.y * TILE_N;
    Phase const phase;
    int const first = int(i64(a.stepsK) * rank / split), steps = int(i64(a.stepsK) * (rank + 1) / split) - first;
    int const row0 = VECTOR == 1 ? threadIdx.x % TILE_M : threadIdx.x / PER_ROW,
              k0 = VECTOR == 1 ? threadIdx.x / TILE_M * LOADS : threadIdx.x % PER_ROW * VECTOR;
    static constexpr int UNITS = ROW_BYTES / 16; // of a row
    // Where a thread's first copies go; others go to rows in steps of 8, which lie in the same banks.
    u32 const firstX = kept(placeIn(row0, k0)), firstF = kept(unitAt(threadIdx.x / UNITS, threadIdx.x % UNITS));
    static_assert(APART % 8 == 0 && THREADS / UNITS % 8 == 0);
    Element const *const x, *const filters;
    Pixel pixel[PIXELS];
    Taps taps;
    u32 held[HOLDS ? LOADS / 2 : 1] = {};
    TW_INLINE explicit Windows(Args const& a)
        : a(a), phase(a), x(kept(a.x + phase.offsetX(a))), filters(kept(a.filters + i64(blockIdx.z) * a.n * a.paddedK)),
          taps(a, first * STEP + k0)
    {
#pragma unroll
        for (int i = 0; i < PIXELS; ++i)
            pixel[i].set(a, phase, m0 + row0 + i * APART);
    }
    static TW_INLINE u32 placeIn(int row, int k)
    {
        return unitAt(row, k / UNIT) + k % UNIT * BYTES;
    }
    TW_INLINE void fetchB(int step, u32 to) const
    {
#pragma unroll
        for (int i = 0; i < (TILE_N * UNITS + THREADS - 1) / THREADS; ++i) {
            int const at = threadIdx.x + i * THREADS, r = at / UNITS, u = at % UNITS;
            if (TILE_N * UNITS % THREADS == 0 || at < TILE_N * UNITS)
                copyAsync16(to + firstF + i * (THREADS / UNITS) * ROW_BYTES,
                            filters + i64(n0 + r) * a.paddedK + (first + step) * STEP + u * UNIT, n0 + r < a.n);
        }
    }
    TW_INLINE void putB(u32) const {}
    TW_INLINE void fetch(int step, u32 to)
    {
        fetchB(step, to + A_BYTES);
        fetchA(step, to); // moves `taps` when all copies are on their way
    }
    TW_INLINE void fetchA(int, u32 to)
    {
        if constexpr (VECTOR > 1) {
            Step const step(a, phase, taps);
            Element const* const from = x + step.at;
#pragma unroll
            for (int i = 0; i < PIXELS; ++i)
                copyPart(to + firstX + i * APART * ROW_BYTES, from + pixel[i].at, step.bytesFor(a, pixel[i]));
        } else {
            Taps t = taps;
#pragma unroll(Taps::AT_ONCE)
            for (int i = 0; i < LOADS; ++i) {
                Step const step(a, phase, t);
                Element const* const from = x + step.at + pixel[0].at;
                int const bytes = step.bytesFor(a, pixel[0]);
                if constexpr (HOLDS) { // of FP16: pairs wait in registers
                    u32 const v = bytes ? *reinterpret_cast<u16 const*>(from) : 0;
                    held[i / 2] = i % 2 ? held[i / 2] | v << 16 : v;
                } else {
                    copyPart(to + placeIn(row0, k0 + i), from, bytes);
                }
                if constexpr (HOLDS)
                    t.move(a, 1); // with branches, which cost less here
                else
                    t.next(a);
            }
        }
        taps.move(a, STEP);
    }
    TW_INLINE void putA(u32 to) const
    {
        if constexpr (HOLDS)
#pragma unroll
            for (int i = 0; i < LOADS / 8; ++i)
                storeShared(to + unitAt(row0, k0 / 8 + i),
                            Unit{held[i * 4], held[i * 4 + 1], held[i * 4 + 2], held[i * 4 + 3]});
    }
};

} // namespace tw::cuda::product
