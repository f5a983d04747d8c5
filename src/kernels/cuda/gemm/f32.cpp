// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm/f32.h"

#include <algorithm>
#include <span>

#include "kernels/cuda/gemm/tiles.h"

namespace tw::cuda::gemm_f32 {

namespace {

char const* unsupportedOnCores(Spec const& s)
{
    auto isPart = [](int v) { return v == 4 || v == 8; };
    if (!isPart(s.shareM) || (!isPart(s.shareN) && (s.shareN != 16 || s.shareM != 8)))
        return "a thread has 4 or 8 rows and columns, or 8 rows of 16 columns";
    if (s.tileM < 16 || s.tileN < 32 || s.tileM > 256 || s.tileN > 256 || s.tileM % (4 * s.shareM) ||
        s.tileN % (8 * s.shareN))
        return "tiles have 16 to 256 rows and 32 to 256 columns, of whole warps of 4 x 8 threads";
    if ((!s.packsA && !s.aAlongK && s.tileM > s.threads()) || (!s.packsB && !s.bAlongK && s.tileN > s.threads()))
        return "a thread copies one column of a tile";
    return nullptr;
}

char const* unsupportedOnTensorCores(Spec const& s)
{
    auto isCount = [](int v) { return v == 1 || v == 2 || v == 4; };
    if (!isCount(s.shareM) || !isCount(s.shareN) || s.threads() < 64)
        return "2 to 16 warps share a tile";
    if (s.tileM < 32 || s.tileN < 32 || s.tileM > 256 || s.tileN > 256 || s.tileM % 32 || s.tileN % 32 ||
        s.tileM % (16 * s.shareM) || s.tileN % (16 * s.shareN))
        return "tiles have 32 to 256 rows and columns in steps of 32, 16 for each warp";
    if (s.tileM > s.threads() || s.tileN > s.threads())
        return "a thread copies one column of a tile";
    if (s.tileM / s.shareM * (s.tileN / s.shareN) > 2048)
        return "64 sums for each thread";
    return nullptr;
}

} // namespace

// Stages of factors, then the sums of the blocks that share k.
int64_t Spec::sharedBytes() const
{
    int64_t const factors = int64_t(stages) * (tileM + tileN) * stepK() * 4;
    return split > 1 ? std::max(factors, int64_t(tileM) * tileN * 4) : factors;
}

int Spec::blocksPerMultiprocessor() const
{
    // Sums, factors, addresses.
    int const rows = onCores() ? shareM : tileM / shareM, columns = onCores() ? shareN : tileN / shareN,
              numbers = sums == Sums::kTf32x3 ? 2 : 1;
    int const registers = onCores()
                              ? std::min(rows * columns + 4 * (rows + columns) + (rows * columns < 64 ? 56 : 40), 255)
                              : rows * columns / 32 * numbers + rows / 4 * numbers + 64;
    return gemm_f32::blocksPerMultiprocessor(*this, registers);
}

std::string Spec::name() const
{
    return fmt::format("{}{}x{}x{}_{}x{}_s{}{}_{}{}",
                       onCores()               ? "gemm_f32_"
                       : sums == Sums::kTf32x3 ? "gemm_mma_f32_"
                                               : "gemm_mma_tf32_",
                       tileM, tileN, stepK(), shareM, shareN, stages, split > 1 ? fmt::format("_split{}", split) : "",
                       aAlongK ? "t" : "n", bAlongK ? "t" : "n");
}

char const* unsupported(Spec const& s)
{
    if (char const* const why = s.onCores() ? unsupportedOnCores(s) : unsupportedOnTensorCores(s))
        return why;
    if (s.threads() > 512 || s.stages < 2 || s.stages > 8 || s.sharedBytes() > kSharedLimit)
        return "at most 512 threads, 2 to 8 stages that fit into shared memory";
    if ((s.split != 1 && s.split != 2 && s.split != 4 && s.split != 8) || s.tileM % s.split)
        return "split is 1, 2, 4 or 8";
    return nullptr;
}

std::string source(Spec const& s)
{
    bool const onCores = s.onCores();
    return s.epilogue + constant("STEP", s.stepK()) + constant("THREADS", s.threads()) + flag("SKEWED", !onCores) +
           flag("A_ALONG_K", s.aAlongK) + flag("B_ALONG_K", s.bAlongK) + constant("VECTOR_A", s.packsA ? 4 : 1) +
           constant("VECTOR_B", s.packsB ? 4 : 1) + flag("PACKS_Y", s.packsY) + flag("EARLY", s.constantB) +
           flag("BIAS", s.bias) + flag("RESIDUAL", s.residual) +
           (onCores ? "" : flag("TF32X3", s.sums == Sums::kTf32x3)) + constant("TILE_M", s.tileM) +
           constant("TILE_N", s.tileN) + constant(onCores ? "ROWS" : "WARPS_M", s.shareM) +
           constant(onCores ? "COLUMNS" : "WARPS_N", s.shareN) + constant("STAGES", s.stages) +
           constant("SPLIT", s.split) + flag("CLUSTERS", s.split > 1) +
           constant("BLOCKS_PER_SM", s.blocksPerMultiprocessor()) +
           include(onCores ? "kernels/cuda/mma/sums_f32.cuh" : "kernels/cuda/mma/sums_tf32.cuh") +
           include("kernels/cuda/mma/end_f32.cuh") + include("kernels/cuda/mma/gemm.cuh");
}

LaunchGeometry launch(Spec const& s, Params& p, int64_t batches)
{
    int64_t const tilesM = ceilDiv(p.m, s.tileM), tilesN = ceilDiv(p.n, s.tileN);
    p.tilesM = divBy(tilesM);
    p.tilesN = divBy(tilesN);
    LaunchGeometry g;
    g.grid = tilesM * tilesN * batches * s.split;
    g.block = s.threads();
    g.cluster = s.split;
    g.sharedBytes = s.sharedBytes();
    return g;
}

double estimateUs(Spec const& s, int64_t m, int64_t n, int64_t k, int64_t batches, int multiprocessors)
{
    return estimateTiles(
        s, {m, n, k, batches, multiprocessors}, s.stepK(), s.onCores() ? 700 : 900, [&](int64_t atOnce) {
            // 128 products a clock on the cores, 512 on tensor cores; few warps, and few products for
            // each factor that is read, reach less.
            int const sums = s.shareM * s.shareN, tile = s.tileM * s.tileN;
            double const threads = double(atOnce * s.threads());
            if (s.onCores()) {
                double const share = (sums >= 64   ? 0.85
                                      : sums == 32 ? 0.7
                                                   : 0.5) *
                                     std::min(1.0, 0.3 + threads / 32 / 16);
                return double(s.tileM) * s.tileN * s.stepK() / 128 / share;
            }
            double const share = (tile >= 8192 ? 0.8 : tile >= 4096 ? 0.7 : 0.6) * std::min(1.0, 0.4 + threads / 320);
            return double(s.tileM) * s.tileN * s.stepK() / 512 / share * (s.sums == Sums::kTf32x3 ? 3 : 1);
        });
}

std::vector<Spec> candidates(Spec const& base, int64_t m, int64_t n, int64_t k, int64_t batches, int multiprocessors,
                             bool clusters, size_t most)
{
    struct Tile
    {
        int m, n, shareM, shareN, stages;
    };
    static constexpr Tile kCores[] = {{128, 128, 8, 16, 4}, {64, 128, 8, 16, 4}, {128, 64, 8, 8, 4},
                                      {64, 64, 8, 8, 4},    {64, 64, 8, 4, 4},   {64, 64, 4, 4, 4},
                                      {64, 32, 4, 4, 5},    {32, 64, 8, 4, 5},   {16, 64, 4, 4, 6}};
    static constexpr Tile kTensorCores[] = {{128, 128, 2, 4, 3}, {128, 64, 2, 2, 4}, {64, 128, 2, 2, 4},
                                            {64, 64, 2, 2, 4},   {64, 32, 2, 1, 5},  {32, 64, 1, 4, 5},
                                            {32, 32, 1, 2, 6}};
    auto set = [](Spec& s, Tile const& t) {
        s.tileM = t.m;
        s.tileN = t.n;
        s.shareM = t.shareM;
        s.shareN = t.shareN;
        s.stages = t.stages;
    };
    std::span<Tile const> const tiles = base.onCores() ? std::span<Tile const>(kCores) : kTensorCores;
    return rankTiles(tiles, base, set, {m, n, k, batches, multiprocessors}, base.stepK(), clusters, most);
}

} // namespace tw::cuda::gemm_f32
