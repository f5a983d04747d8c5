// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm/simt_f32.h"

#include <algorithm>

#include "kernels/cuda/common/hopper.h"
#include "kernels/cuda/common/prelude.h"
#include "kernels/cuda/gemm/tiles.h"

namespace tw::cuda::gemm_f32 {

namespace {} // namespace

int64_t Spec::sharedBytes() const
{
    return sharedBytesOf(*this, kStepK);
}

int Spec::blocksPerMultiprocessor() const
{
    int const registers = std::min(rows * columns + 4 * (rows + columns) + (rows * columns < 64 ? 56 : 40),
                                   255); // sums, factors, addresses
    return gemm_f32::blocksPerMultiprocessor(*this, registers);
}

std::string Spec::name() const
{
    return "gemm_f32_" + std::to_string(tileM) + "x" + std::to_string(tileN) + "x" + std::to_string(kStepK) + "_" +
           std::to_string(rows) + "x" + std::to_string(columns) + "_s" + std::to_string(stages) +
           (split > 1 ? "_split" + std::to_string(split) : "") + "_" + (aAlongK ? "t" : "n") + (bAlongK ? "t" : "n");
}

char const* unsupported(Spec const& s)
{
    auto isPart = [](int v) { return v == 4 || v == 8; };
    if (!isPart(s.rows) || (!isPart(s.columns) && (s.columns != 16 || s.rows != 8)))
        return "a thread has 4 or 8 rows and columns, or 8 rows of 16 columns";
    if (s.tileM < 16 || s.tileN < 32 || s.tileM > 256 || s.tileN > 256 || s.tileM % (4 * s.rows) ||
        s.tileN % (8 * s.columns))
        return "tiles have 16 to 256 rows and 32 to 256 columns, of whole warps of 4 x 8 threads";
    if ((!s.packsA && !s.aAlongK && s.tileM > s.threads()) || (!s.packsB && !s.bAlongK && s.tileN > s.threads()))
        return "a thread copies one column of a tile";
    if (s.threads() > 512 || s.stages < 2 || s.stages > 8 || s.sharedBytes() > kSharedLimit)
        return "at most 512 threads, 2 to 8 stages that fit into shared memory";
    if ((s.split != 1 && s.split != 2 && s.split != 4 && s.split != 8) || s.tileM % s.split)
        return "split is 1, 2, 4 or 8";
    return nullptr;
}

std::string loaderSource(Operands const& o, int step, int threads, bool skewed)
{
    return o.activation + constant("STEP", step) + constant("THREADS", threads) + flag("SKEWED", skewed) +
           flag("A_ALONG_K", o.aAlongK) + flag("B_ALONG_K", o.bAlongK) + constant("VECTOR_A", o.packsA ? 4 : 1) +
           constant("VECTOR_B", o.packsB ? 4 : 1) + flag("PACKS_Y", o.packsY) + flag("EARLY", o.constantB) +
           flag("BIAS", o.bias) + flag("RESIDUAL", o.residual);
}

std::string source(Spec const& s)
{
    return loaderSource(s, kStepK, s.threads(), false) + constant("TILE_M", s.tileM) + constant("TILE_N", s.tileN) +
           constant("ROWS", s.rows) + constant("COLUMNS", s.columns) + constant("STAGES", s.stages) +
           constant("SPLIT", s.split) + flag("CLUSTERS", s.split > 1) +
           constant("BLOCKS_PER_SM", s.blocksPerMultiprocessor()) + include("kernels/cuda/mma/sums_f32.cuh") +
           include("kernels/cuda/mma/end_f32.cuh") + include("kernels/cuda/mma/gemm.cuh");
}

LaunchGeometry launch(Spec const& s, Params& p, int64_t batches)
{
    return launchTiles(s, p, batches);
}

double estimateUs(Spec const& s, int64_t m, int64_t n, int64_t k, int64_t batches, int multiprocessors)
{
    return estimateTiles(s, {m, n, k, batches, multiprocessors}, kStepK, 700, [&](int64_t atOnce) {
        // 128 products a clock; few warps, and few products for each factor that is read, reach less.
        double const warps = double(atOnce * s.threads()) / 32;
        double const share = (s.rows * s.columns >= 64   ? 0.85
                              : s.rows * s.columns == 32 ? 0.7
                                                         : 0.5) *
                             std::min(1.0, 0.3 + warps / 16);
        return double(s.tileM) * s.tileN * kStepK / 128 / share;
    });
}

std::vector<Spec> candidates(Spec const& base, int64_t m, int64_t n, int64_t k, int64_t batches, int multiprocessors,
                             bool clusters, size_t most)
{
    struct Tile
    {
        int m, n, rows, columns, stages;
    };
    static constexpr Tile kTiles[] = {{128, 128, 8, 16, 4}, {64, 128, 8, 16, 4}, {128, 64, 8, 8, 4},
                                      {64, 64, 8, 8, 4},    {64, 64, 8, 4, 4},   {64, 64, 4, 4, 4},
                                      {64, 32, 4, 4, 5},    {32, 64, 8, 4, 5},   {16, 64, 4, 4, 6}};
    auto set = [](Spec& s, Tile const& t) {
        s.tileM = t.m;
        s.tileN = t.n;
        s.rows = t.rows;
        s.columns = t.columns;
        s.stages = t.stages;
    };
    return rankTiles(kTiles, base, set, {m, n, k, batches, multiprocessors}, kStepK, clusters, most);
}

} // namespace tw::cuda::gemm_f32
