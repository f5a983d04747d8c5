// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm/gemv_f16.h"

#include <algorithm>
#include <iterator>

#include "kernels/cuda/common/generate.h"
#include "kernels/cuda/common/prelude.h"

namespace tw::cuda::gemv_f16 {

namespace {

constexpr int kStep = 32, kMostUnits = 16, kTiles[] = {1, 2, 4}, kWarps[] = {2, 4, 8, 16};

int64_t blocksOf(Spec const& s, int64_t n)
{
    return ceilDiv(n, int64_t(s.tiles) * 8);
}

} // namespace

char const* unsupported(Spec const& s)
{
    auto const isOne = [](auto const& of, int v) { return std::find(std::begin(of), std::end(of), v) != std::end(of); };
    if ((s.rows != 8 && s.rows != 16) || !isOne(kTiles, s.tiles) || !isOne(kWarps, s.warps) || s.firstNorm < 0 ||
        s.firstNorm > 2)
        return "8 or 16 rows, 1, 2 or 4 tiles of columns, 2, 4, 8 or 16 warps";
    if (s.units < 1 || s.units * s.tiles > kMostUnits)
        return "a thread has up to 16 units at once";
    if (s.gated && (s.tiles == 1 || s.residual || !s.end.empty()))
        return "gates are beside what they let through, and nothing follows them";
    return nullptr;
}

char const* unsupported(Spec const& s, int64_t m, int64_t n, int64_t k)
{
    constexpr int64_t kLimit = int64_t(1) << 30;
    if (char const* const why = unsupported(s))
        return why;
    if (m > s.rows)
        return "at most 16 rows, and no more than the kernel was made for";
    if (n < 1 || k < 1 || n > kLimit || k > kLimit)
        return "rows and columns of up to 2^30 numbers, and none that are empty";
    if (s.gated && n % 16)
        return "gated columns come in steps of 8";
    return k % 8 ? "rows of a are not whole 16 bytes" : nullptr;
}

std::string source(Spec const& s)
{
    Epilogue plain = s; // of gated sums the activation is the gates'
    if (s.gated)
        plain.activation.clear();
    std::string const end =
        epilogueFunction(plain) + activationSource(s.gated ? s.activation : std::string(), "activateGate");
    return include("kernels/cuda/common/matrix.cuh") + end + constant("ROWS", s.rows) + constant("TILES", s.tiles) +
           constant("WARPS", s.warps) + constant("UNITS", s.units) + constant("FIRST_NORM", s.firstNorm) +
           flag("GATED", s.gated) + flag("BIAS", s.bias) + flag("RESIDUAL", s.residual) +
           include("kernels/cuda/gemm/gemv_f16.cuh");
}

LaunchGeometry launch(Spec const& s, int64_t m, int64_t n, int64_t k, Args& a)
{
    a.m = int32_t(m);
    a.n = int32_t(n);
    a.k = int32_t(k);
    LaunchGeometry l;
    l.grid = m ? blocksOf(s, n) : 0;
    l.block = s.warps * 32;
    return l;
}

double estimateUs(Spec const& s, int64_t n, int64_t k, int multiprocessors)
{
    // 20 bytes of b a clock on a multiprocessor where enough are on their way, which take 1000 clocks.
    constexpr double kClocksPerUs = 1700, kBytes = 20, kWait = 1000, kBegin = 2500;
    constexpr int64_t kMostThreads = 1024;
    int64_t const threads = s.warps * 32, blocks = blocksOf(s, n), each = ceilDiv(blocks, std::max(multiprocessors, 1));
    int64_t const atOnce = std::min(each, kMostThreads / threads);
    double const ofBlock = double(s.tiles * 8) * double(k) * 2;
    double const turns = double(ceilDiv(ceilDiv(k, kStep), int64_t(s.warps) * s.units));
    double const end = 20.0 * s.warps * s.tiles; // of a block: sums of all warps
    return (kBegin + double(each) * std::max(ofBlock / kBytes + end, turns * kWait / double(atOnce))) / kClocksPerUs;
}

std::vector<Spec> candidates(Spec const& base, int64_t n, int64_t k, int multiprocessors, size_t most)
{
    std::vector<Guess<Spec>> all;
    for (int tiles : kTiles)
        for (int warps : kWarps) {
            Spec s = base;
            s.tiles = tiles;
            s.warps = warps;
            int64_t const turns = ceilDiv(ceilDiv(k, kStep), warps), room = kMostUnits / tiles;
            // Few enough that all turns are alike.
            s.units = int(ceilDiv(turns, ceilDiv(turns, room)));
            if (turns > 0 && !unsupported(s))
                all.push_back({estimateUs(s, n, k, multiprocessors), s});
        }
    return bestOf(std::move(all), most);
}

} // namespace tw::cuda::gemv_f16
