// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm/mma_tf32.h"

#include <algorithm>

#include "kernels/cuda/common/hopper.h"
#include "kernels/cuda/gemm/tiles.h"

namespace tw::cuda::gemm_mma_f32 {

namespace {} // namespace

int64_t Spec::sharedBytes() const
{
    return gemm_f32::sharedBytesOf(*this, kStepK);
}

int Spec::blocksPerMultiprocessor() const
{
    int const rows = tileM / warpsM, columns = tileN / warpsN;
    int const registers = rows * columns / 32 * (tf32x3 ? 2 : 1) + rows / 4 * (tf32x3 ? 2 : 1) + 64;
    return gemm_f32::blocksPerMultiprocessor(*this, registers);
}

std::string Spec::name() const
{
    return std::string("gemm_mma_") + (tf32x3 ? "f32_" : "tf32_") + std::to_string(tileM) + "x" +
           std::to_string(tileN) + "x" + std::to_string(kStepK) + "_" + std::to_string(warpsM) + "x" +
           std::to_string(warpsN) + "_s" + std::to_string(stages) +
           (split > 1 ? "_split" + std::to_string(split) : "") + "_" + (aAlongK ? "t" : "n") + (bAlongK ? "t" : "n");
}

char const* unsupported(Spec const& s)
{
    auto isCount = [](int v) { return v == 1 || v == 2 || v == 4; };
    if (!isCount(s.warpsM) || !isCount(s.warpsN) || s.threads() < 64)
        return "2 to 16 warps share a tile";
    if (s.tileM < 32 || s.tileN < 32 || s.tileM > 256 || s.tileN > 256 || s.tileM % 32 || s.tileN % 32 ||
        s.tileM % (16 * s.warpsM) || s.tileN % (16 * s.warpsN) || s.threads() % 32)
        return "tiles have 32 to 256 rows and columns in steps of 32, 16 for each warp";
    if (s.tileM > s.threads() || s.tileN > s.threads())
        return "a thread copies one column of a tile";
    if (s.tileM / s.warpsM * (s.tileN / s.warpsN) > 2048 || s.stages < 2 || s.stages > 8 ||
        s.sharedBytes() > kSharedLimit)
        return "64 sums for each thread, 2 to 8 stages that fit into shared memory";
    if ((s.split != 1 && s.split != 2 && s.split != 4 && s.split != 8) || s.tileM % s.split)
        return "split is 1, 2, 4 or 8";
    return nullptr;
}

std::string source(Spec const& s)
{
    return gemm_f32::loaderSource(s, kStepK, s.threads(), true) + flag("TF32X3", s.tf32x3) +
           constant("TILE_M", s.tileM) + constant("TILE_N", s.tileN) + constant("WARPS_M", s.warpsM) +
           constant("WARPS_N", s.warpsN) + constant("STAGES", s.stages) + constant("SPLIT", s.split) +
           flag("CLUSTERS", s.split > 1) + constant("BLOCKS_PER_SM", s.blocksPerMultiprocessor()) +
           include("kernels/cuda/mma/sums_tf32.cuh") + include("kernels/cuda/mma/end_f32.cuh") +
           include("kernels/cuda/mma/gemm.cuh");
}

LaunchGeometry launch(Spec const& s, Params& p, int64_t batches)
{
    return gemm_f32::launchTiles(s, p, batches);
}

double estimateUs(Spec const& s, int64_t m, int64_t n, int64_t k, int64_t batches, int multiprocessors)
{
    return gemm_f32::estimateTiles(s, {m, n, k, batches, multiprocessors}, kStepK, 900, [&](int64_t atOnce) {
        // 512 products a clock; few warps reach less.
        int const tile = s.tileM * s.tileN;
        double const share = (tile >= 8192   ? 0.8
                              : tile >= 4096 ? 0.7
                                             : 0.6) *
                             std::min(1.0, 0.4 + double(atOnce * s.threads()) / 320);
        return double(s.tileM) * s.tileN * kStepK / 512 / share * (s.tf32x3 ? 3 : 1);
    });
}

std::vector<Spec> candidates(Spec const& base, int64_t m, int64_t n, int64_t k, int64_t batches, int multiprocessors,
                             bool clusters, size_t most)
{
    struct Tile
    {
        int m, n, warpsM, warpsN, stages;
    };
    static constexpr Tile kTiles[] = {{128, 128, 2, 4, 3}, {128, 64, 2, 2, 4}, {64, 128, 2, 2, 4}, {64, 64, 2, 2, 4},
                                      {64, 32, 2, 1, 5},   {32, 64, 1, 4, 5},  {32, 32, 1, 2, 6}};
    auto set = [](Spec& s, Tile const& t) {
        s.tileM = t.m;
        s.tileN = t.n;
        s.warpsM = t.warpsM;
        s.warpsN = t.warpsN;
        s.stages = t.stages;
    };
    return gemm_f32::rankTiles(kTiles, base, set, {m, n, k, batches, multiprocessors}, kStepK, clusters, most);
}

} // namespace tw::cuda::gemm_mma_f32
