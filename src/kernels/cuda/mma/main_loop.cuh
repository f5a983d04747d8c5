// SPDX-License-Identifier: Apache-2.0
// Products of two factors by steps of k, which lie in shared memory in a ring of STAGES: copies of the next steps are on
// their way while one is multiplied.
//   int STAGES; bool EARLY   b may be read before the previous kernel of the stream is done
//
//   Source   where factors come from (matrices.cuh): `steps` of this block, and of a stage A_BYTES of a, then
//            b, STAGE_BYTES in all. fetchA(step, to), fetchB(step, to): copies of the next step's part begin, or loads to
//            registers, which putA(to) and putB(to) take to shared memory.
//   Sums     what products are summed in (sums_*.cuh): add(stage), all of a step; or, where they are AHEAD, take(factors,
//            stage, part) and add(factors) for each of its PARTS: the factors of one part come to registers while those of
//            the part before are multiplied, over the ends of steps, too.
//   End      what becomes of sums (end_*.cuh): begin() before the first copies, put() behind them, write().
#pragma once

#include "kernels/cuda/common/async_copies.cuh"
#include "kernels/cuda/common/dependence.cuh"

namespace tw::cuda::product {

// Where in the ring is multiplied now, and what is filled next.
template <int STAGE_BYTES>
struct Ring
{
    u32 begin, now = begin, next = begin + (STAGES - 1) * STAGE_BYTES;
    TW_INLINE void turn()
    {
        next = now;
        now = now + STAGE_BYTES == begin + STAGES * STAGE_BYTES ? begin : now + STAGE_BYTES;
    }
    // All copies of the next step are there, and all warps have read the one before the last.
    TW_INLINE void wait() const
    {
        copyWait<STAGES - 2>();
        __syncthreads();
    }
};

// The first steps; a may belong to the kernel before. The next one gets room when that one is gone: blocks of three
// launches at a time pile up on some multiprocessors.
template <class Source>
TW_INLINE void fill(Source& source, u32 base)
{
    if constexpr (!EARLY) {
        waitForPrevious();
        releaseDependents();
    }
#pragma unroll(Source::AT_ONCE)
    for (int s = 0; s < STAGES - 1; ++s)
        if (s < source.steps) {
            u32 const to = base + s * Source::STAGE_BYTES + Source::A_BYTES;
            source.fetchB(s, to);
            source.putB(to);
        }
    if constexpr (EARLY) {
        waitForPrevious();
        releaseDependents();
    }
#pragma unroll(Source::AT_ONCE)
    for (int s = 0; s < STAGES - 1; ++s) {
        if (s < source.steps) {
            source.fetchA(s, base + s * Source::STAGE_BYTES);
            source.putA(base + s * Source::STAGE_BYTES);
        }
        copyCommit();
    }
}

// The copies of `step`; to registers, if they go through these.
template <class Source>
TW_INLINE void fetch(Source& source, int step, u32 to)
{
    if (step < source.steps)
        source.fetch(step, to);
    copyCommit();
}

template <class Source, class Sums>
TW_INLINE void multiplyAhead(Source& source, Sums const& sums, typename Sums::Values& values, u32 base)
{
    Ring<Source::STAGE_BYTES> ring{Sums::ADDRESSES ? base : 0};
    typename Sums::Factors f[2];
    ring.wait();
    if constexpr (Sums::FETCHES_FIRST)
        fetch(source, STAGES - 1, base - ring.begin + ring.next);
    sums.take(f[0], ring.now, 0);
    for (int step = 0; step < source.steps; ++step) {
        u32 const to = base - ring.begin + ring.next;
#pragma unroll(Sums::AT_ONCE)
        for (int part = 0; part < Sums::PARTS; part += 2)
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                // The next factors, from the next stage at the end: then all warps have read this one.
                if (part + i == Sums::PARTS - 1) {
                    ring.wait();
                    ring.turn();
                    if constexpr (Sums::FETCHES_FIRST)
                        fetch(source, step + STAGES, base - ring.begin + ring.next);
                }
                sums.take(f[1 - i], ring.now, (part + i + 1) % Sums::PARTS);
                if (!Sums::FETCHES_FIRST && part + i == 0)
                    fetch(source, step + STAGES - 1, to);
                sums.add(values, f[i]);
            }
        if (!Sums::FETCHES_FIRST &&
            step + STAGES - 1 < source.steps) { // through registers: before the next barrier but one
            source.putA(to);
            source.putB(to + Source::A_BYTES);
        }
    }
}

template <class Source, class Sums>
TW_INLINE void multiply(Source& source, Sums const& sums, typename Sums::Values& values, u32 base)
{
    Ring<Source::STAGE_BYTES> ring{Sums::ADDRESSES ? base : 0};
    for (int step = 0; step < source.steps; ++step) {
        bool const more = step + STAGES - 1 < source.steps;
        u32 const stage = ring.now;
        u32 const to = base - ring.begin + ring.next;
        ring.wait();
        fetch(source, step + STAGES - 1, to);
        ring.turn();
        sums.add(values, stage);
        if (more) { // through registers
            source.putA(to);
            source.putB(to + Source::A_BYTES);
        }
    }
}

// What a kernel does.
template <class Source, class Sums, class End, class Args>
TW_INLINE void run(Args const& a, u8* shared)
{
    u32 const base = sharedAddress(shared);
    Source source(a);
    End end(base);
    end.begin(a, source);
    fill(source, base);
    end.put();
    Sums const sums(shared);
    typename Sums::Values values = {};
    if constexpr (Sums::AHEAD)
        multiplyAhead(source, sums, values, base);
    else
        multiply(source, sums, values, base);
    copyWait<0>();
    end.write(a, source, sums, values);
}

} // namespace tw::cuda::product
