// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm/mma_f16.h"

#include <algorithm>

#include "kernels/cuda/gemm/tiles.h"

namespace tw::cuda::gemm_mma_f16 {

namespace {

constexpr int kMostRegisters = 255; // of a thread

bool isPower(int v, int least, int most)
{
    return v >= least && v <= most && (v & (v - 1)) == 0;
}

// Pairs of elements that a thread has on their way in registers.
int heldPairs(Spec const& s)
{
    return ((s.vectorA == 1 ? s.tileM : 0) + (s.vectorB == 1 ? s.tileN : 0)) * kStepK / 2 / s.threads();
}

} // namespace

int64_t Spec::stageBytes() const
{
    return int64_t(tileM + tileN) * kStepK * 2;
}

int Spec::chunk() const
{
    return chunkOf(clusters ? columns() / split : columns());
}

// Stages, where y's rows are staged later; or the sums of the blocks that share k and those rows. Then biases.
int64_t Spec::sharedBytes() const
{
    int64_t const sums = split > 1 && clusters ? tileBytes() : 0;
    return std::max(stages * stageBytes(), sums + stagingBytes()) + biasBytes();
}

int Spec::registers() const
{
    int const sums = rows() * columns() / 32, factors = (rows() + columns()) / 4 * 2;
    return sums + factors + 2 * heldPairs(*this) + 44;
}

int Spec::blocksPerMultiprocessor() const
{
    return gemm_f32::blocksPerMultiprocessor(*this, std::min(registers(), kMostRegisters));
}

std::string Spec::name() const
{
    return "gemm_mma_f16_" + std::to_string(tileM) + "x" + std::to_string(tileN) + "x" + std::to_string(kStepK) + "_" +
           std::to_string(warpsM) + "x" + std::to_string(warpsN) + "_s" + std::to_string(stages) +
           (split > 1 ? (clusters ? "_split" : "_sums") + std::to_string(split) : "") + "_" + (aAlongK ? "t" : "n") +
           (bAlongK ? "t" : "n") + "_v" + std::to_string(vectorA) + "_v" + std::to_string(vectorB);
}

char const* unsupported(Spec const& s)
{
    if (!isPower(s.warpsM, 1, 8) || !isPower(s.warpsN, 1, 8) || !isPower(s.threads(), 64, 512))
        return "2 to 16 warps share a tile";
    if (!isPower(s.tileM, 16, 256) || !isPower(s.tileN, 32, 256) || s.tileM < 16 * s.warpsM || s.tileN < 16 * s.warpsN)
        return "tiles have 16 to 256 rows and 32 to 256 columns, powers of 2, 16 or more for each warp";
    if (!isPower(s.split, 1, 8) || (s.clusters && s.columns() < 8 * s.split))
        return "split is 1, 2, 4 or 8, and leaves 8 of each warp's columns to a cluster's block";
    if (!isPower(s.vectorA, 1, 8) || !isPower(s.vectorB, 1, 8))
        return "copies of 1, 2, 4 or 8 elements";
    int const partsA = (s.aAlongK ? kStepK : s.tileM) / std::max(s.vectorA, 2);
    int const partsB = (s.bAlongK ? kStepK : s.tileN) / std::max(s.vectorB, 2);
    // Through registers two rows at once, or an even number of them.
    if (partsA * (s.vectorA == 1 ? 2 : 1) > s.threads() || partsB * (s.vectorB == 1 ? 2 : 1) > s.threads())
        return "a thread copies one column of a tile";
    if (s.stages < (s.vectorA == 1 || s.vectorB == 1 ? 3 : 2) || s.stages > 8 || s.sharedBytes() > kSharedLimit)
        return "2 to 8 stages that fit into shared memory, 3 where rows come through registers";
    if (s.rows() * s.columns() > 4096 || s.registers() > kMostRegisters)
        return "sums and factors do not fit into a thread's registers";
    return nullptr;
}

char const* unsupported(Spec const& s, Shape const& g)
{
    if (char const* const why = unsupported(s))
        return why;
    constexpr int64_t kLimit = (int64_t(1) << 31) - 1024;
    if (g.m < 1 || g.n < 1 || g.k < 1 || g.batch < 1 || g.m > kLimit || g.n > kLimit || g.k > kLimit / 8 ||
        ceilDiv(g.m, s.tileM) > kLimit / ceilDiv(g.n, s.tileN) / g.batch / s.split)
        return "sizes are positive and count below 2^31";
    auto holds = [](int vector, bool padded, int64_t row, int64_t ld, int64_t batch) {
        return vectorOf(ld ? ld : row, batch) >= vector && (padded || row % vector == 0);
    };
    if (!holds(s.vectorA, s.paddedA, s.aAlongK ? g.k : g.m, g.lda, g.batchA) ||
        !holds(s.vectorB, s.paddedB, s.bAlongK ? g.k : g.n, g.ldb, g.batchB))
        return "rows are not in steps of what is copied at once";
    if (s.aligned && (g.n % s.alignment() || g.ldy % s.alignment() || g.batchY % s.alignment()))
        return "rows of y are not in steps of what is written at once";
    return nullptr;
}

int vectorOf(int64_t ld, int64_t batch)
{
    int v = 8;
    while (v > 1 && (ld | batch) % v)
        v /= 2;
    return v;
}

Launch launch(Spec const& s, Shape const& g)
{
    Launch l;
    Args& a = l.args;
    a.m = int32_t(g.m);
    a.n = int32_t(g.n);
    a.k = int32_t(g.k);
    a.ldy = a.ldResidual = g.ldy ? g.ldy : g.n;
    a.batchY = g.batchY ? g.batchY : a.ldy * g.m;
    a.lda = g.lda ? g.lda : s.aAlongK ? g.k : g.m;
    a.ldb = g.ldb ? g.ldb : s.bAlongK ? g.k : g.n;
    a.batchA = g.batchA;
    a.batchB = g.batchB;
    a.tilesM = int32_t(ceilDiv(g.m, s.tileM));
    a.tilesN = int32_t(ceilDiv(g.n, s.tileN));
    l.geometry.grid = int64_t(a.tilesM) * a.tilesN * g.batch * s.split;
    l.geometry.block = s.threads();
    l.geometry.cluster = s.clusters ? s.split : 1;
    l.geometry.sharedBytes = s.sharedBytes();
    if (s.sumsInMemory()) {
        l.finish.grid = l.geometry.grid / s.split;
        l.finish.block = s.threads();
        l.finish.sharedBytes = s.stagingBytes() + s.biasBytes();
        l.sumsBytes = l.geometry.grid * s.tileBytes();
    }
    return l;
}

double estimateUs(Spec const& s, int64_t m, int64_t n, int64_t k, int64_t batches, int multiprocessors)
{
    constexpr double kFinishUs = 2;
    double const finish =
        s.sumsInMemory() ? kFinishUs + double(m) * double(n) * double(batches) * s.split * 8e-6 : 0; // at 1 TB/s
    return finish + gemm_f32::estimateTiles(s, {m, n, k, batches, multiprocessors}, kStepK, 1000, [&](int64_t atOnce) {
               // 1270 products a clock (of an H200, which does 2048 otherwise); few warps, and few products for each
               // factor that is read, reach less.
               int const warp = s.rows() * s.columns();
               double const share = (warp >= 4096   ? 0.85
                                     : warp >= 2048 ? 0.7
                                     : warp >= 1024 ? 0.5
                                                    : 0.3) *
                                    std::min(1.0, 0.4 + double(atOnce * s.threads()) / 384);
               // Through registers: some instructions for each pair.
               double const held = double(heldPairs(s)) * s.threads() / 32 * 12 / 4;
               return std::max(double(s.tileM) * s.tileN * kStepK / 1270 / share, double(s.stageBytes()) / 40) + held;
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

        s.stages = int(std::min<int64_t>(t.stages, (limit - s.tileN * 4) / s.stageBytes()));
    };
    return gemm_f32::rankTiles(kTiles, base, set, {g.m, g.n, g.k, g.batch, multiprocessors}, kStepK, true, most);
}

} // namespace tw::cuda::gemm_mma_f16
