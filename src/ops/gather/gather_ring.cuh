// SPDX-License-Identifier: Apache-2.0
// TMA brings rows of x into a ring of shared memory, while elements of the row before are taken; registers
// hold a block's indices.
//   type Element; int kThreads, kOwn: columns of y for a block, kRing: bytes, kBarriers: a row each
#pragma once

#include "kernels/cuda/common/prelude.cuh"
#include "ops/gather/gather_params.h"

namespace tw::ops::gather {

typedef Pack<u32, 4> Whole;
constexpr int kSize = sizeof(Element), kSide = 4 / kSize, kPack = 16 / kSize, kSlots = kOwn / kThreads / kPack;
extern __shared__ Whole shared[];
TW_INLINE u32 barrierAt(u32 n)
{
    return u32(__cvta_generic_to_shared(shared)) + kRing + n % kBarriers * 8;
}
TW_INLINE void barrierInit(u32 n)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrierAt(n)) : "memory");
}
TW_INLINE void barrierExpect(u32 n, u32 bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrierAt(n)), "r"(bytes) : "memory");
}
TW_INLINE void barrierWait(u32 n)
{
    u32 done;
    do {
        asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, p;\n}"
                     : "=r"(done)
                     : "r"(barrierAt(n)), "r"(n / kBarriers & 1)
                     : "memory");
    } while (!done);
}
TW_INLINE void copyPart(u32 to, char const* from, u32 bytes, u32 n)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     u32(__cvta_generic_to_shared(shared)) + to),
                 "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(barrierAt(n))
                 : "memory");
}
TW_INLINE void storeWhole(void* to, Whole const& v) // the compiler makes four stores of an assignment here
{
    asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(v.v[0]), "r"(v.v[1]), "r"(v.v[2]),
                 "r"(v.v[3])
                 : "memory");
}
// The next byte to be asked for: of row n of this block, at `in` there, going to `to`; `room`: bytes free in the ring.
struct Asked
{
    u32 n, in, to, room;
};
TW_INLINE void ask(RingParams const& p, i64 first, u32 rowBytes, u32 rows, Asked& asked)
{
    while (asked.n < rows && asked.room > 0) {
        u32 bytes = rowBytes - asked.in;
        bytes = bytes < asked.room ? bytes : asked.room;
        bytes = bytes < kRing - asked.to ? bytes : kRing - asked.to;
        if (asked.in == 0)
            barrierExpect(asked.n, rowBytes);
        copyPart(asked.to, static_cast<char const*>(p.x) + (first + i64(asked.n) * p.step) * rowBytes + asked.in, bytes,
                 asked.n);
        asked.room -= bytes;
        asked.to = asked.to + bytes == kRing ? 0 : asked.to + bytes;
        asked.in += bytes;
        if (asked.in == rowBytes)
            asked.in = 0, ++asked.n;
    }
}
TW_KERNEL __launch_bounds__(kThreads) gather_ring(const __grid_constant__ RingParams p)
{
    i64 const first = int(blockIdx.x) / p.chunks;
    u32 const rowBytes = u32(p.length) * kSize, rows = u32((p.rows - first + p.step - 1) / p.step);
    Asked asked = {0, 0, 0, kRing};
    if (threadIdx.x == 0) {
        for (u32 n = 0; n < kBarriers; ++n)
            barrierInit(n);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    waitForPrevious();
    releaseDependents();
    if (threadIdx.x == 0)
        ask(p, first, rowBytes, rows, asked);
    int const length = int(p.length), chunk = int(blockIdx.x) % p.chunks;
    i64 const column = i64(chunk) * kOwn, left = p.count - column;
    i32 const* const j = static_cast<i32 const*>(p.j) + column;
    // Two to a word; what lies outside is marked.
    u32 at[kSlots][kPack / 2], outside = 0;
#pragma unroll
    for (int s = 0; s < kSlots; ++s) {
        i64 const to = i64(s * kThreads + threadIdx.x) * kPack;
#pragma unroll
        for (int e = 0; e < kPack; e += 4) {
            Pack<i32, 4> index = {};
            if (to + e < left)
                index = *reinterpret_cast<Pack<i32, 4> const*>(j + to + e);
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                i32 const v = index.v[i] < 0 ? index.v[i] + length : index.v[i];
                bool const isInside = v >= 0 && v < length;
                u32 const word = isInside ? u32(v) : 0;
                if (!isInside)
                    outside |= 1u << ((s * kPack + e + i) & 31);
                at[s][(e + i) / 2] = i % 2 ? at[s][(e + i) / 2] | word << 16 : word;
            }
        }
    }
    Element const* const elements = reinterpret_cast<Element const*>(shared);
    u32 base = 0; // of the row, in elements
#pragma unroll 1
    for (u32 n = 0; n < rows; ++n) {
#pragma unroll
        for (int s = 0; s < kSlots; ++s)
#pragma unroll
            for (int e = 0; e < kPack / 2; ++e)
                asm volatile("" : "+r"(at[s][e])); // or each index gets a register
        barrierWait(n);
        Element* const y = static_cast<Element*>(p.y) + (first + i64(n) * p.step) * p.count + column;
#pragma unroll
        for (int s = 0; s < kSlots; ++s) {
            int const to = (s * kThreads + int(threadIdx.x)) * kPack;
            Whole out = {};
            u32 v[kPack];
#pragma unroll
            for (int e = 0; e < kPack; ++e) {
                u32 const i = base + (e % 2 ? at[s][e / 2] >> 16 : at[s][e / 2] & 0xffff), wrapped = i - kRing / kSize;
                v[e] = elements[i < wrapped ? i : wrapped].v;
            }
            if (outside != 0)
#pragma unroll
                for (int e = 0; e < kPack; ++e)
                    if (outside >> ((s * kPack + e) & 31) & 1)
                        v[e] = 0;
#pragma unroll
            for (int e = 0; e < kPack; e += kSide) {
                u32 word = v[e];
                if constexpr (kSide == 2)
                    word = __byte_perm(v[e], v[e + 1], 0x5410);
                if constexpr (kSide == 4)
                    word = __byte_perm(__byte_perm(v[e], v[e + 1], 0x0040), __byte_perm(v[e + 2], v[e + 3], 0x0040),
                                       0x5410);
                out.v[e / kSide] = word;
            }
            if (to < left)
                storeWhole(y + to, out);
        }
        __syncthreads();
        base += u32(length);
        base -= base >= kRing / kSize ? kRing / kSize : 0;
        if (threadIdx.x == 0) {
            asked.room += rowBytes;
            ask(p, first, rowBytes, rows, asked);
        }
    }
}

} // namespace tw::ops::gather
