// SPDX-License-Identifier: Apache-2.0
// What products of matrices by mma.sync and on the cores do with a tile: a guess of its time, the choice among several. A Spec
// has tileM, tileN, stages, split, threads(), sharedBytes() and blocksPerMultiprocessor().
#pragma once

#include "kernels/cuda/common/generate.h"

namespace tw::cuda::gemm_f32 {

// What a tile is chosen for.
struct Sizes
{
    int64_t m = 0, n = 0, k = 0, batches = 1;
    int multiprocessors = 1;
};

template <class Spec>
int blocksPerMultiprocessor(Spec const& s, int registers)
{
    int64_t const byShared = kSharedLimit / (s.sharedBytes() + 1024), byRegisters = 65536 / (s.threads() * registers);
    return int(std::clamp<int64_t>(std::min(byShared, byRegisters), 1, 8));
}

// `latency`: clocks until a step's factors are there; clocksOf(n): those of a step's products with n blocks at once on
// a multiprocessor.
template <class Spec, class ClocksOf>
double estimateTiles(Spec const& s, Sizes const& z, int stepK, double latency, ClocksOf const& clocksOf)
{
    constexpr double kClocksPerUs = 1700;
    int64_t const blocks = ceilDiv(z.m, s.tileM) * ceilDiv(z.n, s.tileN) * z.batches * s.split;
    int64_t const each = std::max<int64_t>(ceilDiv(blocks, z.multiprocessors), 1); // of the busiest multiprocessor
    int64_t const atOnce = std::min<int64_t>(each, s.blocksPerMultiprocessor());
    double const steps = double(ceilDiv(ceilDiv(z.k, stepK), s.split)), rounds = double(ceilDiv(each, atOnce));
    double const main = std::max(double(each) * steps * clocksOf(atOnce), rounds * steps * latency / (s.stages - 1));
    double const tail = rounds * (1500 + (s.split > 1 ? 1500 + double(s.tileM) * s.tileN * 4 / 16 : 0));
    return (2400 + main + tail) / kClocksPerUs;
}

// Each of `tiles`, which set(spec, tile) puts into a spec, with every split; the best guesses first.
template <class Spec, class Tiles, class Set>
std::vector<Spec> rankTiles(Tiles const& tiles, Spec const& base, Set const& set, Sizes const& z, int stepK,
                            bool clusters, size_t most)
{
    std::vector<Guess<Spec>> all;
    for (auto const& t : tiles)
        for (int split : {1, 2, 4, 8}) {
            Spec s = base;
            set(s, t);
            s.split = split;
            if ((split > 1 && (!clusters || ceilDiv(z.k, stepK) < 2 * split)) || unsupported(s))
                continue;
            all.push_back({estimateUs(s, z.m, z.n, z.k, z.batches, z.multiprocessors), s});
        }
    return bestOf(std::move(all), most);
}

} // namespace tw::cuda::gemm_f32
