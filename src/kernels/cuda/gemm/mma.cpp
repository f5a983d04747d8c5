// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm/mma.h"

#include <algorithm>

#include "kernels/cuda/common/generate.h"
#include "kernels/cuda/common/hopper.h"
#include "kernels/cuda/gemm/tiles.h"

namespace tw::cuda::gemm_mma {

namespace {

constexpr int kMostRegisters = 255; // of a thread

bool isPower(int v, int least, int most)
{
    return v >= least && v <= most && (v & (v - 1)) == 0;
}

// Words that a thread has on their way in registers, each of two.
int heldWords(Spec const& s)
{
    return ((s.vectorA == 1 ? s.tileM : 0) + (s.vectorB == 1 ? s.tileN : 0)) * 128 / 4 / s.threads();
}

bool isVector(Spec const& s, int v)
{
    return v == 1 || isPower(v, 4 / s.bytes(), 16 / s.bytes());
}

// Copies that fill a tile's stored row; of FP16 through registers, rows are two at once, or an even number of them.
int partsOf(Spec const& s, bool alongK, int tile, int vector)
{
    return (alongK ? s.stepK() : tile) / std::max(vector, 4 / s.bytes()) * (vector == 1 && !s.integers ? 2 : 1);
}

} // namespace

int Spec::chunk() const
{
    return chunkOf(clusters ? columns() / split : columns());
}

// Stages, where y's rows are staged later; or the sums of the blocks that share k and those rows. Then biases.
int64_t Spec::sharedBytes() const
{
    int64_t const sums = split > 1 && clusters ? tileBytes() : 0;
    return integers ? std::max(stages * stageBytes(), sums)
                    : std::max(stages * stageBytes(), sums + stagingBytes()) + biasBytes();
}

int Spec::registers() const
{
    int const sums = rows() * columns() / 32, factors = (rows() + columns()) / 4 * 2;
    return sums + factors + 2 * heldWords(*this) + 44;
}

int Spec::blocksPerMultiprocessor() const
{
    return gemm_f32::blocksPerMultiprocessor(*this, std::min(registers(), kMostRegisters));
}

std::string Spec::name() const
{
    return fmt::format("gemm_mma_{}{}x{}x{}_{}x{}_s{}{}_{}{}_v{}_v{}{}", integers ? "i8_" : "f16_", tileM, tileN,
                       stepK(), warpsM, warpsN, stages,
                       split > 1 ? fmt::format("{}{}", clusters ? "_split" : "_sums", split) : "", aAlongK ? "t" : "n",
                       bAlongK ? "t" : "n", vectorA, vectorB, integers ? "_" + integers->name() : "");
}

char const* unsupported(Spec const& s)
{
    if (!isPower(s.warpsM, 1, 8) || !isPower(s.warpsN, 1, 8) || !isPower(s.threads(), 64, 512))
        return "2 to 16 warps share a tile";
    if (!isPower(s.tileM, 16, 256) || !isPower(s.tileN, 32, 256) || s.tileM < 16 * s.warpsM || s.tileN < 16 * s.warpsN)
        return "tiles have 16 to 256 rows and 32 to 256 columns, powers of 2, 16 or more for each warp";
    if (!isPower(s.split, 1, 8) || (s.clusters && s.columns() < (s.integers ? 16 : 8) * s.split) ||
        (s.integers && s.sumsInMemory()))
        return "split is 1, 2, 4 or 8, and leaves 8 (of i8 16) of each warp's columns to a cluster's block";
    if (!isVector(s, s.vectorA) || !isVector(s, s.vectorB))
        return "copies of 16, 8 or 4 bytes or of one element";
    if (partsOf(s, s.aAlongK, s.tileM, s.vectorA) > s.threads() ||
        partsOf(s, s.bAlongK, s.tileN, s.vectorB) > s.threads())
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
    int64_t const least = s.integers ? 0 : 1; // rows and batches: there may be none
    if (g.m < least || g.n < 1 || g.k < 1 || g.batch < least || g.m > kLimit || g.n > kLimit || g.k > kLimit / 8 ||
        g.batch > kLimit ||
        ceilDiv(g.m, s.tileM) > kLimit / ceilDiv(g.n, s.tileN) / std::max<int64_t>(g.batch, 1) / s.split)
        return "sizes are positive and count below 2^31";
    auto holds = [&](int vector, bool padded, int64_t row, int64_t ld, int64_t batch) {
        return vectorOf(s.bytes(), ld ? ld : row, batch) >= vector && (padded || row % vector == 0);
    };
    if (!holds(s.vectorA, s.paddedA, s.aAlongK ? g.k : g.m, g.lda, g.batchA) ||
        !holds(s.vectorB, s.paddedB, s.bAlongK ? g.k : g.n, g.ldb, g.batchB))
        return "rows are not in steps of what is copied at once";
    if (s.aligned && (g.n % s.alignment() || g.ldy % s.alignment() || g.batchY % s.alignment()))
        return "rows of y are not in steps of what is written at once";
    return nullptr;
}

std::string source(Spec const& s)
{
    bool const clusters = s.split > 1 && s.clusters;
    std::string const tile = include("kernels/cuda/common/matrix.cuh") + constant("TILE_M", s.tileM) +
                             constant("TILE_N", s.tileN) + constant("WARPS_M", s.warpsM) +
                             constant("WARPS_N", s.warpsN) + constant("STAGES", s.stages) + constant("SPLIT", s.split) +
                             flag("CLUSTERS", clusters) + constant("STEP", s.stepK()) +
                             constant("THREADS", s.threads()) + constant("BLOCKS_PER_SM", s.blocksPerMultiprocessor()) +
                             constant("VECTOR_A", s.vectorA) + constant("VECTOR_B", s.vectorB) +
                             flag("A_ALONG_K", s.aAlongK) + flag("B_ALONG_K", s.bAlongK) + flag("EARLY", s.constantB);
    if (s.integers)
        return tile + integerEndSource(*s.integers) + flag("ALIGNED", s.aligned) +
               include("kernels/cuda/mma/sums_i8.cuh") + include("kernels/cuda/mma/end_integers.cuh") +
               include("kernels/cuda/mma/gemm.cuh");
    return tile + flag("FINISHES", !s.sumsInMemory()) + constant("BIAS_AT", s.sharedBytes() - s.biasBytes()) +
           (s.sumsInMemory() ? constant("FINISH_BIAS_AT", s.stagingBytes()) : "") +
           constant("STAGING_AT", clusters ? s.tileBytes() : 0) + epilogueConstants(s, s.chunk()) +
           include("kernels/cuda/mma/sums_f16.cuh") + include("kernels/cuda/mma/end_rows.cuh") +
           include("kernels/cuda/mma/gemm.cuh") + (s.sumsInMemory() ? include("kernels/cuda/mma/finish.cuh") : "");
}

int vectorOf(int bytes, int64_t ld, int64_t batch)
{
    int v = 16 / bytes;
    while (v > 1 && (ld | batch) % v)
        v /= 2;
    return v * bytes < 4 ? 1 : v;
}

namespace {

template <class Args>
LaunchOf<Args> launchOf(Spec const& s, Shape const& g)
{
    LaunchOf<Args> l;
    Args& a = l.args;
    a.m = int32_t(g.m);
    a.n = int32_t(g.n);
    a.k = int32_t(g.k);
    a.lda = g.lda ? g.lda : s.aAlongK ? g.k : g.m;
    a.ldb = g.ldb ? g.ldb : s.bAlongK ? g.k : g.n;
    a.tilesM = int32_t(ceilDiv(g.m, s.tileM));
    a.tilesN = int32_t(ceilDiv(g.n, s.tileN));
    l.geometry.grid = int64_t(a.tilesM) * a.tilesN * g.batch * s.split;
    l.geometry.block = s.threads();
    l.geometry.cluster = s.clusters ? s.split : 1;
    l.geometry.sharedBytes = s.sharedBytes();
    return l;
}

} // namespace

Launch launch(Spec const& s, Shape const& g)
{
    Launch l = launchOf<Args>(s, g);
    Args& a = l.args;
    a.ldy = a.ldResidual = g.ldy ? g.ldy : g.n;
    a.batchY = g.batchY ? g.batchY : a.ldy * g.m;
    a.batchA = g.batchA;
    a.batchB = g.batchB;
    if (s.sumsInMemory()) {
        l.finish.grid = l.geometry.grid / s.split;
        l.finish.block = s.threads();
        l.finish.sharedBytes = s.stagingBytes() + s.biasBytes();
        l.sumsBytes = l.geometry.grid * s.tileBytes();
    }
    return l;
}

LaunchOf<IntegerArgs> launchIntegers(Spec const& s, Shape const& g)
{
    auto l = launchOf<IntegerArgs>(s, g);
    l.args.batches = int32_t(g.batch);
    return l;
}

double estimateUs(Spec const& s, int64_t m, int64_t n, int64_t k, int64_t batches, int multiprocessors)
{
    constexpr double kFinishUs = 2;
    double const finish =
        s.sumsInMemory() ? kFinishUs + double(m) * double(n) * double(batches) * s.split * 8e-6 : 0; // at 1 TB/s
    // Products a clock (of an H200, which does 2048 of FP16 otherwise); few warps, and few products for each factor that is
    // read, reach less.
    double const rate = s.integers ? 2500 : 1270;
    gemm_f32::Sizes const sizes{m, n, k, batches, multiprocessors};
    return finish + gemm_f32::estimateTiles(s, sizes, s.stepK(), 1000, [&](int64_t atOnce) {
               int const warp = s.rows() * s.columns();
               double const share = (warp >= 4096   ? 0.85
                                     : warp >= 2048 ? 0.7
                                     : warp >= 1024 ? 0.5
                                                    : 0.3) *
                                    std::min(1.0, 0.4 + double(atOnce * s.threads()) / 384);
               // Some instructions for each word through registers, and of i8 for each register that is sorted by pairs.
               double const held = double(heldWords(s)) * s.threads() / 32 * (s.integers ? 20 : 12) / 4;
               double const sorted =
                   double((s.aAlongK ? 0 : s.tileM * s.warpsN) + (s.bAlongK ? 0 : s.tileN * s.warpsM)) * s.stepK() /
                   512;
               return std::max(double(s.tileM) * s.tileN * s.stepK() / rate / share, double(s.stageBytes()) / 40) +
                      held + (s.integers ? sorted : 0);
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
        s.stages = int(std::min<int64_t>(t.stages, (limit - (s.integers ? 0 : s.biasBytes())) / s.stageBytes()));
    };
    bool const splits = !base.integers || capability >= 90;
    return gemm_f32::rankTiles(kTiles, base, set, {g.m, g.n, g.k, g.batch, multiprocessors}, base.stepK(), splits,
                               most);
}

} // namespace tw::cuda::gemm_mma
