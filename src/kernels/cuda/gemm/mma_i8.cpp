// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm/mma_i8.h"

#include <algorithm>

#include "kernels/cuda/common/source.h"
#include "kernels/cuda/gemm/tiles.h"

namespace tw::cuda::gemm_mma_i8 {

namespace {

constexpr int kMostRegisters = 255; // of a thread

bool isPower(int v, int least, int most)
{
    return v >= least && v <= most && (v & (v - 1)) == 0;
}

bool isVector(int v)
{
    return v == 1 || v == 4 || v == 8 || v == 16;
}

// Words that a thread has on their way in registers.
int heldWords(Spec const& s)
{
    return ((s.vectorA == 1 ? s.tileM : 0) + (s.vectorB == 1 ? s.tileN : 0)) * kStepK / 4 / s.threads() * 2;
}

// Copies that fill a tile's stored row.
int partsOf(bool alongK, int tile, int vector)
{
    return (alongK ? kStepK : tile) / std::max(vector, 4);
}

} // namespace

int64_t Spec::stageBytes() const
{
    return int64_t(tileM + tileN) * kStepK;
}

// Stages, or later the sums of the blocks that share k.
int64_t Spec::sharedBytes() const
{
    return std::max(stages * stageBytes(), split > 1 ? int64_t(tileM) * tileN * 4 : 0);
}

int Spec::registers() const
{
    int const sums = rows() * columns() / 32, factors = (rows() + columns()) / 4 * 2;
    return sums + factors + heldWords(*this) + 44;
}

int Spec::blocksPerMultiprocessor() const
{
    return gemm_f32::blocksPerMultiprocessor(*this, std::min(registers(), kMostRegisters));
}

std::string Spec::name() const
{
    return "gemm_mma_i8_" + std::to_string(tileM) + "x" + std::to_string(tileN) + "x" + std::to_string(kStepK) + "_" +
           std::to_string(warpsM) + "x" + std::to_string(warpsN) + "_s" + std::to_string(stages) +
           (split > 1 ? "_split" + std::to_string(split) : "") + "_" + (aAlongK ? "t" : "n") + (bAlongK ? "t" : "n") +
           "_v" + std::to_string(vectorA) + "_v" + std::to_string(vectorB) + "_" + end.name();
}

char const* unsupported(Spec const& s)
{
    if (!isPower(s.warpsM, 1, 8) || !isPower(s.warpsN, 1, 8) || !isPower(s.threads(), 64, 512))
        return "2 to 16 warps share a tile";
    if (!isPower(s.tileM, 16, 256) || !isPower(s.tileN, 32, 256) || s.tileM < 16 * s.warpsM || s.tileN < 16 * s.warpsN)
        return "tiles have 16 to 256 rows and 32 to 256 columns, powers of 2, 16 or more for each warp";
    if (!isPower(s.split, 1, 8) || s.columns() < 16 * s.split)
        return "split is 1, 2, 4 or 8, and leaves 16 of each warp's columns to a cluster's block";
    if (!isVector(s.vectorA) || !isVector(s.vectorB))
        return "copies of 1, 4, 8 or 16 bytes";
    if (partsOf(s.aAlongK, s.tileM, s.vectorA) > s.threads() || partsOf(s.bAlongK, s.tileN, s.vectorB) > s.threads())
        return "a thread copies one column of a tile";
    if (s.stages < (s.vectorA == 1 || s.vectorB == 1 ? 3 : 2) || s.stages > 8 || s.sharedBytes() > kSharedLimit)
        return "2 to 8 stages that fit into shared memory, 3 where rows come through registers";
    if (s.rows() * s.columns() > 4096 || s.registers() > kMostRegisters)
        return "sums and factors do not fit into a thread's registers";
    return nullptr;
}

char const* unsupported(Spec const& s, Shape const& g)
{
    constexpr int64_t kLimit = (int64_t(1) << 31) - 1024;
    if (char const* const why = unsupported(s))
        return why;
    if (g.m < 0 || g.n < 1 || g.k < 1 || g.batches < 0 || g.m > kLimit || g.n > kLimit || g.k > kLimit / 8 ||
        g.batches > kLimit ||
        ceilDiv(g.m, s.tileM) * std::max<int64_t>(g.batches, 1) > kLimit / ceilDiv(g.n, s.tileN) / s.split)
        return "sizes are positive and count below 2^31";
    if (vectorOf(s.aAlongK ? g.k : g.m) < s.vectorA)
        return "rows are not in steps of what is copied at once";
    return s.aligned && g.n % 8 ? "rows of y are not in steps of 8" : nullptr;
}

std::string source(Spec const& s)
{
    return include("kernels/cuda/common/matrix.cuh") + integerEndSource(s.end) + constant("TILE_M", s.tileM) +
           constant("TILE_N", s.tileN) + constant("WARPS_M", s.warpsM) + constant("WARPS_N", s.warpsN) +
           constant("STAGES", s.stages) + constant("SPLIT", s.split) + flag("CLUSTERS", s.split > 1) +
           constant("STEP", kStepK) + constant("THREADS", s.threads()) +
           constant("BLOCKS_PER_SM", s.blocksPerMultiprocessor()) + constant("VECTOR_A", s.vectorA) +
           constant("VECTOR_B", s.vectorB) + flag("A_ALONG_K", s.aAlongK) + flag("B_ALONG_K", s.bAlongK) +
           flag("EARLY", s.constantB) + flag("ALIGNED", s.aligned) + include("kernels/cuda/mma/sums_i8.cuh") +
           include("kernels/cuda/mma/end_integers.cuh") + include("kernels/cuda/mma/gemm.cuh");
}

int vectorOf(int64_t row)
{
    return row % 16 == 0 ? 16 : row % 8 == 0 ? 8 : row % 4 == 0 ? 4 : 1;
}

LaunchGeometry launch(Spec const& s, Shape const& g, Args& a)
{
    a.m = int32_t(g.m);
    a.n = int32_t(g.n);
    a.k = int32_t(g.k);
    a.batches = int32_t(g.batches);
    a.tilesM = int32_t(ceilDiv(g.m, s.tileM));
    a.tilesN = int32_t(ceilDiv(g.n, s.tileN));
    LaunchGeometry l;
    l.grid = int64_t(a.tilesM) * a.tilesN * g.batches * s.split;
    l.block = s.threads();
    l.cluster = s.split;
    l.sharedBytes = s.sharedBytes();
    return l;
}

double estimateUs(Spec const& s, int64_t m, int64_t n, int64_t k, int64_t batches, int multiprocessors)
{
    return gemm_f32::estimateTiles(s, {m, n, k, batches, multiprocessors}, kStepK, 1000, [&](int64_t atOnce) {
        // 2500 products a clock, twice those of FP16; few warps, and few products for each factor that is read, reach
        // less.
        int const warp = s.rows() * s.columns();
        double const share = (warp >= 4096   ? 0.85
                              : warp >= 2048 ? 0.7
                              : warp >= 1024 ? 0.5
                                             : 0.3) *
                             std::min(1.0, 0.4 + double(atOnce * s.threads()) / 384);
        // Some instructions for each word through registers, and for each register that is sorted by pairs.
        double const held = double(heldWords(s)) * s.threads() / 32 * 10 / 4;
        double const sorted =
            double((s.aAlongK ? 0 : s.tileM * s.warpsN) + (s.bAlongK ? 0 : s.tileN * s.warpsM)) * kStepK / 4 / 32 / 4;
        return std::max(double(s.tileM) * s.tileN * kStepK / 2500 / share, double(s.stageBytes()) / 40) + held + sorted;
    });
}

std::vector<Spec> candidates(Spec const& base, Shape const& g, int multiprocessors, int capability, size_t most)
{
    struct Tile
    {
        int m, n, warpsM, warpsN, stages;
    };
    static constexpr Tile kTiles[] = {{128, 256, 2, 4, 4}, {256, 128, 4, 2, 4}, {128, 128, 2, 2, 3},
                                      {128, 128, 2, 4, 4}, {128, 64, 2, 2, 4},  {64, 128, 2, 2, 4},
                                      {64, 64, 2, 2, 4},   {32, 128, 1, 4, 4},  {32, 64, 2, 2, 5},
                                      {64, 32, 2, 2, 5},   {16, 128, 1, 4, 5},  {16, 64, 1, 2, 6}};
    int64_t const limit = sharedLimitOf(capability);
    auto set = [&](Spec& s, Tile const& t) {
        s.tileM = t.m;
        s.tileN = t.n;
        s.warpsM = t.warpsM;
        s.warpsN = t.warpsN;
        s.stages = int(std::min<int64_t>(t.stages, limit / s.stageBytes()));
    };
    return gemm_f32::rankTiles(kTiles, base, set, {g.m, g.n, g.k, g.batches, multiprocessors}, kStepK, capability >= 90,
                               most);
}

} // namespace tw::cuda::gemm_mma_i8
