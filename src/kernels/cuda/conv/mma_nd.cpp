// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/conv/mma_nd.h"

#include <algorithm>

#include "kernels/cuda/common/generate.h"
#include "kernels/cuda/common/hopper.h"

namespace tw::cuda::conv_nd {

namespace {

constexpr int kThreads = 256;

} // namespace

int64_t Spec::sharedBytes() const
{
    int64_t const operands = int64_t(stages) * (tileM + tileN) * stepK() * bytes();
    return std::max(operands, int64_t(tileM) * (tileN + 8) * 4);
}

std::string Spec::name() const
{
    return fmt::format("conv_nd_{}{}x{}x{}_s{}_v{}{}{}_sm80",
                       integers ? "i8_"
                       : half   ? "f16_"
                       : tf32x3 ? "f32_"
                                : "tf32_",
                       tileM, tileN, stepK(), stages, vector, aligned ? "" : "_unaligned",
                       integers ? "_" + end.name() : "");
}

char const* unsupported(Spec const& s)
{
    if ((s.tileM != 64 && s.tileM != 128) || (s.tileN != 32 && s.tileN != 64 && s.tileN != 128) ||
        s.tileN / (256 / s.tileM) < 16)
        return "tiles have 64 or 128 positions and 32, 64 or 128 filters, 16 or more for each warp";
    if (s.tf32x3 && s.tileM * s.tileN > 8192)
        return "two sums for each element fit the registers for tiles of at most 128 x 64";
    if (s.stages < 2 || s.stages > 6 || s.sharedBytes() > 160 * 1024)
        return "2 to 6 stages";
    if (s.vector < 1 || s.vector & (s.vector - 1) || s.vector * s.bytes() > 16)
        return "copies of 1, 2, 4, .. elements, of 16 bytes at most";
    if (s.split != 1 && s.split != 2 && s.split != 4 && s.split != 8)
        return "1, 2, 4 or 8 blocks share a tile";
    return nullptr;
}

char const* unsupported(Spec const& s, Shape const& g)
{
    constexpr int64_t kLimit = int64_t(1) << 30, kMostBlocks = 65535;
    if (char const* const why = unsupported(s))
        return why;
    if (g.groups > 1 && g.c / g.groups % s.vector)
        return "channels of a group are not in steps of the copies";
    if (s.aligned && g.k / g.groups % 4)
        return "filters of a group are not in steps of 4";
    for (Axis const& a : g.axes)
        if (a.phases > kMostPhases)
            return "a stride of at most 16";
    if (g.rows() >= kLimit || paddedK(s, g) >= kLimit || g.c >= kLimit || g.k >= kLimit)
        return "counts in 32 bits";
    if (g.phases() * g.groups > kMostBlocks || (g.k / g.groups + s.tileN - 1) / s.tileN > kMostBlocks)
        return "at most 65535 groups, phases and tiles of filters";
    if (s.split > paddedK(s, g) / s.stepK())
        return "k has fewer steps than the blocks that would share them";
    return nullptr;
}

std::string source(Spec const& s)
{
    bool const isLarge = s.tileM * s.tileN * (s.tf32x3 ? 2 : 1) > 8192;
    return include("kernels/cuda/common/matrix.cuh") + (s.integers ? integerEndSource(s.end) : s.epilogue) +
           type("Element", s.integers ? "i8"
                           : s.half   ? "Narrow"
                                      : "float") +
           constant("TILE_M", s.tileM) + constant("TILE_N", s.tileN) + constant("STAGES", s.stages) +
           constant("VECTOR", s.vector) + constant("SLICES", 1) + constant("BLOCKS_PER_SM", isLarge ? 1 : 2) +
           flag("ALIGNED", s.aligned) + flag("EARLY", true) + flag("SPLITS", true) + flag("HOLDS", false) +
           flag("IS_HALF", s.half) + flag("TF32X3", s.tf32x3) + flag("ROUNDED", false) +
           include("kernels/cuda/mma/places_nd.cuh") +
           include(s.integers ? "kernels/cuda/mma/window_sums_i8.cuh" : "kernels/cuda/mma/window_sums_mma.cuh") +
           include(s.integers ? "kernels/cuda/mma/window_finish_i8.cuh" : "kernels/cuda/mma/window_finish_floats.cuh") +
           include("kernels/cuda/mma/window_end_nd.cuh") + include("kernels/cuda/mma/conv.cuh");
}

int64_t innerOf(Spec const& s, Shape const& g)
{
    int64_t const channels = g.c / g.groups;
    return (channels + s.vector - 1) / s.vector * s.vector;
}

int64_t paddedK(Spec const& s, Shape const& g)
{
    return std::max<int64_t>((g.taps() * innerOf(s, g) + s.stepK() - 1) / s.stepK(), 1) * s.stepK();
}

Launch launch(Spec const& s, Shape const& g, int64_t pixelX, int64_t pixelY)
{
    Launch l;
    Args& a = l.args;
    a.pixelX = pixelX;
    a.rowX = a.pixelX * g.axes[2].in;
    a.planeX = a.rowX * g.axes[1].in;
    a.imageX = a.planeX * g.axes[0].in;
    a.pixelY = a.pixelResidual = pixelY;
    a.m = int32_t(g.rows());
    a.n = int32_t(g.k / g.groups);
    a.groups = int32_t(g.groups);
    a.channels = int32_t(g.c / g.groups);
    a.inner = int32_t(innerOf(s, g));
    a.paddedK = int32_t(paddedK(s, g));
    a.stepsK = a.paddedK / s.stepK();
    for (int i = 0; i < 3; ++i) {
        a.axes[i] = g.axes[i];
        a.positions[i] = divBy(g.axes[i].positions());
    }
    l.geometry.grid = (a.m + s.tileM - 1) / s.tileM * s.split;
    l.geometry.gridY = (a.n + s.tileN - 1) / s.tileN;
    l.geometry.gridZ = g.groups * g.phases();
    l.geometry.block = kThreads;
    l.geometry.cluster = s.split;
    l.geometry.sharedBytes = s.sharedBytes();
    return l;
}

double estimateUs(Spec const& s, Shape const& g, int multiprocessors)
{
    // Clocks: products at the rate of mma.sync, 50 bytes of operands, waiting for the step; a block's first operands
    // are 1500 clocks on their way.
    constexpr double kClocksPerUs = 1900, kHalfRate = 1300, kIntegerRate = 2600, kTf32Rate = 650, kBytes = 50,
                     kWait = 60;
    auto tiles = [](int64_t n, int64_t each) { return (n + each - 1) / each; };
    int64_t const steps = tiles(paddedK(s, g) / s.stepK(), s.split);
    int64_t const blocks = tiles(g.rows(), s.tileM) * tiles(g.k / g.groups, s.tileN) * g.groups * g.phases() * s.split;
    double const rate = s.integers ? kIntegerRate : s.half ? kHalfRate : s.tf32x3 ? kTf32Rate / 3 : kTf32Rate;
    double const products = double(s.tileM) * s.tileN * s.stepK() / rate;
    double const bytes = double(s.tileM + s.tileN) * s.stepK() * s.bytes() / kBytes;
    double const step = std::max(products, bytes) + kWait +
                        (s.vector == 1 || s.vector * s.bytes() < 4 ? s.tileM * s.stepK() / (s.vector * 4) : 0);
    double const write = double(s.tileM) * s.tileN / s.split / 4 + 600 + (s.split > 1 ? 1200 + 200 * s.split : 0);
    double const rounds = double(tiles(blocks, std::max(multiprocessors, 1)));
    return (3500 + rounds * (double(steps) * step + write)) / kClocksPerUs;
}

std::vector<Spec> candidates(Spec const& base, Shape const& g, int multiprocessors, bool clusters, size_t most)
{
    constexpr struct
    {
        int m, n;
    } kTiles[] = {{128, 128}, {128, 64}, {64, 64}, {128, 32}};
    std::vector<Guess<Spec>> all;
    for (auto const& t : kTiles)
        for (int split : {1, 2, 4, 8}) {
            if (split > 1 && !clusters)
                continue;
            Spec s = base;
            s.tileM = t.m;
            s.tileN = t.n;
            s.split = split;
            if (!unsupported(s, g))
                all.push_back({estimateUs(s, g, multiprocessors), s});
        }
    return bestOf(std::move(all), most);
}

} // namespace tw::cuda::conv_nd
