// SPDX-License-Identifier: Apache-2.0
// Rows pieced together in shared memory, which TMA fills and empties (sm_90). A block makes kRows rows.
//   RunPlace kSources[]; int kSourceCount, kSize: bytes of an element, kUnrolledRows
//   int kRows, kAllRows, kLines: rows of a plane, [kLow, kHigh) of them no border, kColumns; kWarps, kOwnRows: of a
// warp
//   int kChunks, kLastBytes: of the last, kIn, kOut, kBarrierBytes: of shared memory; bool kIsFlat: no borders, all
// rows alike
#pragma once

#include "families/copy/copy_params.h"
#include "kernels/cuda/common/prelude.cuh"

namespace tw::ops {

template <int K>
struct SourceOf
{
    static constexpr i64 bytes = kSources[K].bytes, first = kSources[K].first, planeStep = kSources[K].planeStep,
                         lineStep = kSources[K].lineStep;
    static constexpr u32 column = kSources[K].column, length = kSources[K].length, at = kSources[K].at;
};
extern __shared__ unit16 shared[];
TW_INLINE void barrierInit(u32 at)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at) : "memory");
}
TW_INLINE void barrierExpect(u32 at, u32 bytes)
{
    asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(at), "r"(bytes) : "memory");
}
TW_INLINE void barrierArrive(u32 at)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at) : "memory");
}
TW_INLINE void barrierWait(u32 at)
{
    u32 done;
    do {
        asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0;\n"
                     "selp.u32 %0, 1, 0, p;\n}"
                     : "=r"(done)
                     : "r"(at)
                     : "memory");
    } while (!done);
}
TW_INLINE void bring(u32 to, char const* from, u32 bytes, u32 barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
                 "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(barrier)
                 : "memory");
}
TW_INLINE void takeAway(char* to, u32 from, u32 bytes) // and waits until it is read
{
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;\ncp.async.bulk.commit_group;\n"
                 "cp.async.bulk.wait_group.read 0;" ::"l"(__cvta_generic_to_global(to)),
                 "r"(from), "r"(bytes)
                 : "memory");
}
TW_INLINE u32 elementAt(u32 at)
{
    u32 v;
    if constexpr (kSize == 1)
        asm volatile("ld.shared.u8 %0, [%1];" : "=r"(v) : "r"(at));
    else if constexpr (kSize == 4)
        asm volatile("ld.shared.u32 %0, [%1];" : "=r"(v) : "r"(at));
    else
        asm volatile("{\n.reg .u16 h;\nld.shared.u16 h, [%1];\ncvt.u32.u16 %0, h;\n}" : "=r"(v) : "r"(at));
    return v;
}
TW_INLINE void put(u32 at, u32 v)
{
    if constexpr (kSize == 1)
        asm volatile("st.shared.u8 [%0], %1;" ::"r"(at), "r"(v));
    else if constexpr (kSize == 4)
        asm volatile("st.shared.u32 [%0], %1;" ::"r"(at), "r"(v));
    else
        asm volatile("{\n.reg .u16 h;\ncvt.u16.u32 h, %1;\nst.shared.u16 [%0], h;\n}" ::"r"(at), "r"(v));
}
TW_INLINE u32 globalAt(void const* x)
{
    if constexpr (kSize == 1)
        return *static_cast<u8 const*>(x);
    else if constexpr (kSize == 4)
        return *static_cast<u32 const*>(x);
    else
        return *static_cast<unsigned short const*>(x);
}
TW_INLINE void putGlobal(void* y, u32 v)
{
    if constexpr (kSize == 1)
        *static_cast<u8*>(y) = u8(v);
    else if constexpr (kSize == 4)
        *static_cast<u32*>(y) = v;
    else
        *static_cast<unsigned short*>(y) = (unsigned short)v;
}
// Bytes of x that rows of a chunk come from.
struct Run
{
    i64 begin, end;
};
// Where the first row begins, from y's row `row` on, that is no border.
template <class S>
TW_INLINE i64 placeOf(u32 row)
{
    i32 plane = i32(row / kLines), line = i32(row - plane * kLines) - kLow;
    if (line < 0)
        line = 0;
    if (line >= kHigh - kLow)
        line = 0, ++plane;
    return S::first + plane * S::planeStep + line * S::lineStep;
}
template <class S>
TW_INLINE Run runOf(u32 chunk)
{
    u32 const a = chunk * kRows, last = (a + kRows < kAllRows ? a + kRows : kAllRows) - 1;
    if constexpr (kIsFlat)
        return {S::first + i64(a) * S::lineStep, S::first + i64(last) * S::lineStep + S::length * kSize};
    i32 to = i32(last / kLines), end = i32(last - to * kLines) - kLow;
    if (end >= kHigh - kLow)
        end = kHigh - kLow - 1;
    if (end < 0)
        end = kHigh - kLow - 1, --to;
    Run const run = {placeOf<S>(a), S::first + to * S::planeStep + end * S::lineStep + S::length * kSize};
    return run.begin < run.end ? run : Run{0, 0}; // nothing but border
}
// Begins to bring what TMA can, which is not the last word of x where that is not whole.
template <int K>
TW_INLINE void ask(RunParams const& p, u32 chunk, u32 in, u32 barrier)
{
    using S = SourceOf<K>;
    constexpr i64 kWhole = S::bytes & -16;
    Run const run = runOf<S>(chunk);
    i64 const begin = run.begin & -16, up = (run.end + 15) & -16, end = up < kWhole ? up : kWhole;
    if (begin >= end)
        return;
    barrierExpect(barrier, u32(end - begin));
    bring(in + S::at, static_cast<char const*>(p.x[K]) + begin, u32(end - begin), barrier);
}
template <int K = 0>
TW_INLINE void askAll(RunParams const& p, u32 chunk, u32 in, u32 barrier)
{
    ask<K>(p, chunk, in, barrier);
    if constexpr (K + 1 < kSourceCount)
        askAll<K + 1>(p, chunk, in, barrier);
}
// Elements after the last whole word of x, by a warp, where the chunk has them.
template <int K>
TW_INLINE void bringTail(RunParams const& p, u32 chunk, u32 in, u32 lane)
{
    using S = SourceOf<K>;
    constexpr i64 kWhole = S::bytes & -16;
    if constexpr (S::bytes != kWhole) {
        Run const run = runOf<S>(chunk);
        i64 const at = kWhole + lane * kSize;
        if (run.end > kWhole && at < S::bytes)
            put(in + S::at + u32(at - (run.begin & -16)), globalAt(static_cast<char const*>(p.x[K]) + at));
    }
}
template <int K = 0>
TW_INLINE void bringTails(RunParams const& p, u32 chunk, u32 in, u32 lane)
{
    bringTail<K>(p, chunk, in, lane);
    if constexpr (K + 1 < kSourceCount)
        bringTails<K + 1>(p, chunk, in, lane);
}
// A piece of each row, all at places known now. Each warp has kOwnRows, one after the other.
template <class S>
TW_INLINE void placePieces(u32 in, u32 out, u32 warp, u32 lane)
{
    u32 const from = in + S::at + S::first % 16 + warp * (kOwnRows * S::lineStep) + lane * kSize,
              to = out + warp * (kOwnRows * kColumns * kSize) + (S::column + lane) * kSize;
#pragma unroll kUnrolledRows
    for (int r = 0; r < kOwnRows; ++r)
#pragma unroll
        for (int j = 0; j < S::length; j += 32)
            if (j + 32 <= S::length || lane < S::length - j)
                put(to + (r * kColumns + j) * kSize, elementAt(from + r * u32(S::lineStep) + j * kSize));
}
// The same with borders, or planes apart from each other.
template <class S>
TW_INLINE void placeRows(u32 chunk, u32 in, u32 out, u32 warp, u32 lane, u32 fill)
{
    u32 const row = chunk * kRows + warp * kOwnRows;
    i64 const begin = runOf<S>(chunk).begin & -16; // 0 where all is border
    u32 from = in + S::at + u32(placeOf<S>(row) - begin) + (lane - S::column) * kSize,
        to = out + warp * (kOwnRows * kColumns * kSize) + lane * kSize, line = row % kLines;
    u32 rows = kOwnRows;
    if constexpr (kAllRows % kRows != 0) { // after the last row of y would be places that nothing was brought to
        u32 const left = row < kAllRows ? kAllRows - row : 0;
        rows = rows < left ? rows : left;
    }
#pragma unroll 2
    for (u32 r = 0; r < rows; ++r) {
        if (line - kLow < u32(kHigh - kLow)) {
#pragma unroll
            for (int j = 0; j < kColumns; j += 32) {
                u32 v = fill;
                if (j + lane - S::column < S::length)
                    v = elementAt(from + j * kSize);
                if (j + 32 <= kColumns || lane < kColumns - j)
                    put(to + j * kSize, v);
            }
            from += u32(S::lineStep);
        } else {
#pragma unroll
            for (int j = 0; j < kColumns; j += 32)
                if (j + 32 <= kColumns || lane < kColumns - j)
                    put(to + j * kSize, fill);
        }
        to += kColumns * kSize;
        ++line;
        if (line == kHigh)
            from += u32(S::planeStep - (kHigh - kLow) * S::lineStep);
        if (line == kLines)
            line = 0;
    }
}
template <int K = 0>
TW_INLINE void placeAll(u32 chunk, u32 in, u32 out, u32 warp, u32 lane, u32 fill)
{
    if constexpr (kIsFlat)
        placePieces<SourceOf<K>>(in, out, warp, lane);
    else
        placeRows<SourceOf<K>>(chunk, in, out, warp, lane, fill);
    if constexpr (K + 1 < kSourceCount)
        placeAll<K + 1>(chunk, in, out, warp, lane, fill);
}
TW_KERNEL __launch_bounds__(kWarps * 32) copy_segments(const __grid_constant__ RunParams p)
{
    u32 const lane = threadIdx.x & 31, warp = threadIdx.x >> 5, chunk = blockIdx.x,
              barrier = u32(__cvta_generic_to_shared(shared)), in = barrier + kBarrierBytes, out = in + kIn;
    if (threadIdx.x == 0) {
        barrierInit(barrier);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    waitForPrevious();
    releaseDependents();
    if (threadIdx.x == 0) {
        askAll(p, chunk, in, barrier);
        barrierArrive(barrier);
    }
    u32 const fill = p.fill ? globalAt(p.fill) : 0;
    if (warp == 0)
        bringTails(p, chunk, in, lane);
    __syncthreads(); // the barrier is there for all
    barrierWait(barrier);
    placeAll(chunk, in, out, warp, lane, fill);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    u32 const bytes = chunk + 1 < kChunks ? kOut : kLastBytes;
    char* const y = static_cast<char*>(p.y) + i64(chunk) * kOut;
    if (warp == 0 && bytes % 16 != 0) {
        u32 const at = (bytes & -16) + lane * kSize;
        if (at < bytes)
            putGlobal(y + at, elementAt(out + at));
    }
    if (threadIdx.x == 0 && bytes >= 16)
        takeAway(y, out, bytes & -16);
}

} // namespace tw::ops
