// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm/gemv_f16.h"

#include <algorithm>

#include "kernels/cuda/common/generate.h"
#include "kernels/cuda/common/prelude.h"

namespace tw::cuda::gemv_f16 {

namespace {

bool isPower(int v, int least, int most)
{
    return v >= least && v <= most && (v & (v - 1)) == 0;
}

int64_t unitsOf(int64_t k)
{
    return ceilDiv(k, 8);
}

// a, then the sums of each warp.
int64_t sharedBytes(Spec const& s, int64_t k)
{
    int64_t const sums = int64_t(s.rows) * s.blockColumns() * (s.alongK ? 1 : s.warps) * 4;
    return s.rows * unitsOf(k) * 16 + sums;
}

// Reads of a thread.
int64_t readsOf(Spec const& s, int64_t k)
{
    return s.alongK ? ceilDiv(unitsOf(k), 32) : ceilDiv(ceilDiv(k, s.split), s.threads() / (s.columns / 8));
}

} // namespace

std::string Spec::name() const
{
    return fmt::format("gemv_f16_{}{}x{}_w{}{}_d{}{}", alongK ? "t" : "", rows, columns, warps,
                       split > 1 ? fmt::format("_s{}", split) : "", depth, packs ? "" : "_bytes");
}

char const* unsupported(Spec const& s)
{
    bool const fits = s.alongK ? isPower(s.columns, 1, 4) && s.split == 1 : isPower(s.columns, 16, 64);
    if (!isPower(s.rows, 1, kMostRows) || !fits || !isPower(s.warps, 4, 16) || !isPower(s.split, 1, 8))
        return "1, 2 or 4 rows, 16 to 64 columns of a block or up to 4 of a warp, 4 to 16 warps, up to 8 blocks";
    if (!isPower(s.depth, 1, 16) || s.depth * (s.alongK ? s.columns : 1) > 16)
        return "up to 16 reads on their way";
    if (s.rows * s.blockColumns() > s.threads() || (s.gated && s.blockColumns() % 16))
        return "a thread writes one number at most, and gated columns come in groups of 16";
    return nullptr;
}

char const* unsupported(Spec const& s, Shape const& z)
{
    constexpr int64_t kLimit = int64_t(1) << 30;
    if (char const* const why = unsupported(s))
        return why;
    if (z.m > s.rows)
        return "at most 4 rows, and no more than the kernel was made for";
    if (z.n < 1 || z.k < 1 || z.n > kLimit || z.k > kLimit || sharedBytes(s, z.k) > kMostShared)
        return "rows of a fit into 96 KiB of shared memory";
    if (s.gated && z.n % 16)
        return "gated columns come in groups of 16";
    if (z.ldb % 8 || (s.packs && (z.k % 8 || z.lda % 8)))
        return "rows are whole 16 bytes";
    return nullptr;
}

std::string source(Spec const& s)
{
    Epilogue end = s; // of what is written
    if (s.gated) {
        end.bias = false;
        end.activation.clear();
    }
    return include("kernels/cuda/common/matrix.cuh") + constant("ROWS", s.rows) + constant("COLUMNS", s.columns) +
           constant("WARPS", s.warps) + constant("SPLIT", s.split) + constant("DEPTH", s.depth) +
           constant("BLOCK_COLUMNS", s.blockColumns()) + flag("ALONG_K", s.alongK) + flag("PACKS", s.packs) +
           flag("GATED", s.gated) + flag("GATE_BIAS", s.gated && s.bias) +
           activationSource(s.gated ? s.activation : std::string(), "activateGate") + epilogueConstants(end, 8) +
           include("kernels/cuda/gemm/gemv_f16.cuh");
}

LaunchGeometry launch(Spec const& s, Shape const& z, Args& a)
{
    a.m = int32_t(z.m);
    a.n = int32_t(z.n / (s.gated ? 2 : 1));
    a.k = int32_t(z.k);
    a.units = int32_t(unitsOf(z.k));
    a.lda = z.lda;
    a.ldb = z.ldb;
    a.ldy = a.ldResidual = a.n;
    LaunchGeometry l;
    l.grid = z.m ? ceilDiv(z.n, s.blockColumns()) * s.split : 0;
    l.block = s.threads();
    l.cluster = s.split;
    l.sharedBytes = sharedBytes(s, z.k);
    return l;
}

double estimateUs(Spec const& s, Shape const& z, int multiprocessors)
{
    // What a multiprocessor and the memory bring in a microsecond, what a block takes besides, and one more round of reads.
    constexpr double kBytesOfOne = 70e3, kBytesOfAll = 4.2e6, kStart = 1.3, kCluster = 0.5, kRound = 0.6;
    int64_t const blocks = ceilDiv(z.n, s.blockColumns()) * s.split;
    double const each = double(s.blockColumns()) * double(ceilDiv(z.k, s.split)) * 2;
    double const turns = double(ceilDiv(blocks, std::max(multiprocessors, 1)));
    int64_t const resident =
        std::max<int64_t>(1, std::min<int64_t>(2048 / s.threads(), kSharedLimit / sharedBytes(s, z.k)));
    double const rounds = double(ceilDiv(readsOf(s, z.k), s.depth)) * std::max(1.0, turns / double(resident));
    return kStart + (s.split > 1 ? kCluster : 0) +
           std::max({turns * each / kBytesOfOne, double(z.n) * double(z.k) * 2 / kBytesOfAll, (rounds - 1) * kRound});
}

std::vector<Spec> candidates(Spec const& base, Shape const& z, int multiprocessors, int capability, size_t most)
{
    std::vector<Guess<Spec>> all;
    auto add = [&](Spec s, int mostDepth) {
        s.depth = 1;
        while (s.depth < mostDepth && s.depth < readsOf(s, z.k))
            s.depth *= 2;
        if (!unsupported(s, z))
            all.push_back({estimateUs(s, z, multiprocessors), s});
    };
    for (int warps : {4, 8, 16}) {
        Spec s = base;
        s.warps = warps;
        if (s.alongK) {
            for (int columns : {4, 2, 1}) {
                s.columns = columns;
                add(s, 8 / columns);
            }
            continue;
        }
        for (int columns : {16, 32, 64})
            for (int split : {1, 2, 4}) {
                s.columns = columns;
                s.split = split;
                if (split == 1 || (capability >= 90 && z.k >= split * 256))
                    add(s, 8);
            }
    }
    return bestOf(std::move(all), most);
}

} // namespace tw::cuda::gemv_f16
