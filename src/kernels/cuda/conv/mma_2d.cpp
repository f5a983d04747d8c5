// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/conv/mma_2d.h"

#include <algorithm>

#include "base/types.h"
#include "kernels/cuda/common/generate.h"

namespace tw::cuda::conv_2d {

namespace {

constexpr int kThreads = 256;

} // namespace

int Spec::slices() const
{
    // Of the 8 warps each has 32 x 32 sums (64 with the largest tile), or 64 x 32.
    int const warps = kind == Kind::kTf32 ? std::min(8, tileM / 32 * (tileN / 32)) : tileM / 64 * (tileN / 32);
    return isHalf() ? 1 : 8 / warps;
}

// 64 sums and what they are made of leave room for one block of 8 warps.
bool Spec::isAlone() const
{
    return kind == Kind::kFloat || tileM * tileN > 128 * 64;
}

// Stages, then biases or sums.
int64_t Spec::sharedBytes() const
{
    int64_t const steps = int64_t(stages) * (tileM + tileN) * kConvStepK * (isHalf() ? 2 : 4),
                  sums = int64_t(slices()) * tileM * (tileN + (kind == Kind::kTf32 ? 8 : 4)) * 4;
    return isHalf() ? steps + tileN * 4 : std::max(steps, sums);
}

std::string Spec::name() const
{
    return fmt::format("conv_{}{}x{}x{}_s{}_v{}{}{}_sm80",
                       isHalf()              ? "f16_"
                       : kind == Kind::kTf32 ? "tf32_"
                                             : "f32_",
                       tileM, tileN, kConvStepK, stages, vector, nchw ? "_nchw" : "", aligned ? "" : "_tails");
}

char const* unsupported(Spec const& s)
{
    if ((s.tileM != 64 && s.tileM != 128) || (s.tileN != 32 && s.tileN != 64 && s.tileN != 128) ||
        (s.isHalf() && s.tileN / (256 / s.tileM) < 16))
        return "tiles have 64 or 128 pixels and 32, 64 or 128 filters, 16 or more for each warp";
    if (s.slices() > 4)
        return "more parts of a step than warps can share";
    if (s.stages < 2 || s.stages > 6 || s.sharedBytes() > 160 * 1024)
        return "2 to 6 stages";
    if (s.vector < 1 || s.vector & (s.vector - 1) || s.vector > mostVector(s.kind))
        return "copies of 1, 2, 4, .. elements, of 16 bytes at most";
    if (s.split != 1 && (s.isHalf() || (s.split != 2 && s.split != 4 && s.split != 8)))
        return "1, 2, 4 or 8 blocks share a tile";
    return nullptr;
}

std::string source(Spec const& s)
{
    bool const isHalf = s.isHalf(), isTf32 = s.kind == Kind::kTf32;
    int const warpN = s.tileN / (256 / s.tileM);
    return include("kernels/cuda/common/matrix.cuh") + constant("TILE_M", s.tileM) + constant("TILE_N", s.tileN) +
           constant("STAGES", s.stages) + constant("VECTOR", s.vector) + constant("SLICES", s.slices()) +
           constant("BLOCKS_PER_SM", s.isAlone() ? 1 : 2) + flag("NCHW", s.nchw) + flag("EARLY", s.constantFilters) +
           flag("SPLITS", !isHalf) + flag("HOLDS", isHalf && s.vector == 1) + flag("IS_HALF", isHalf) +
           flag("TF32X3", false) + flag("ROUNDED", isTf32) + type("Stride", isHalf ? "i64" : "i32") +
           (isHalf ? epilogueConstants(s, chunkOf(warpN))
                   : epilogueFunction(s) + flag("ALIGNED", s.aligned) + type("Element", "float")) +
           include("kernels/cuda/mma/places_2d.cuh") +
           include(isHalf || isTf32 ? "kernels/cuda/mma/window_sums_mma.cuh" : "kernels/cuda/mma/window_sums_f32.cuh") +
           include(isHalf ? "kernels/cuda/mma/window_end_rows.cuh" : "kernels/cuda/mma/window_end_2d.cuh") +
           include("kernels/cuda/mma/conv.cuh");
}

void roundAllToTf32(std::string& bytes)
{
    auto* const values = reinterpret_cast<float*>(bytes.data());
    std::transform(values, values + bytes.size() / sizeof(float), values, roundToTf32);
}

char const* unsupported(Spec const& s, ConvShape const& g)
{
    constexpr int64_t kLimit = int64_t(1) << 30;
    if (char const* const why = unsupported(s))
        return why;
    if (char const* const why = unsupportedSizes(g, s.tileN))
        return why;
    if (s.vector > vectorOf(g, s.nchw, mostVector(s.kind)))
        return "x has fewer elements in a row than the copies take";
    int const step = s.isHalf() ? 8 : 4;
    if (s.aligned && (g.k / g.groups % step || (s.isHalf() && g.k % step)))
        return "filters of a group are not in steps of what is written at once";
    if (!s.isHalf() && (g.w * g.c > kLimit || g.h * g.w > kLimit))
        return "a row and a plane of x count below 2^30";
    if (s.split > paddedK(g) / kConvStepK)
        return "k has fewer steps than the blocks that would share them";
    return nullptr;
}

template <class Args>
Launch<Args> launch(Spec const& s, ConvShape const& g)
{
    Launch<Args> l;
    Args& a = l.args;
    using Stride = decltype(a.rowX);
    int64_t const groupC = g.c / g.groups, groupK = g.k / g.groups;
    a.m = int32_t(g.n * g.outH * g.outW);
    a.n = int32_t(groupK);
    a.ldy = a.ldResidual = g.k;
    a.groupX = groupC * (s.nchw ? g.h * g.w : 1);
    a.batchY = a.groupY = groupK; // a group's filters are neighbours
    a.groupsAcross = int32_t(g.groups);
    a.groupBias = int32_t(groupK);
    a.paddedK = int32_t(paddedK(g));
    a.stepsK = a.paddedK / kConvStepK;
    a.inner = int32_t(s.nchw ? g.s : groupC);
    a.middle = int32_t(s.nchw ? g.r : g.s);
    a.outer = int32_t(s.nchw ? groupC : g.r);
    a.imageX = g.h * g.w * g.c;
    a.channelX = Stride(s.nchw ? g.h * g.w : 1);
    a.columnX = Stride(s.nchw ? 1 : g.c);
    a.rowX = Stride(a.columnX * g.w);
    a.h = int32_t(g.h);
    a.w = int32_t(g.w);
    a.outH = divBy(g.outH);
    a.outW = divBy(g.outW);
    a.strideH = g.strideH;
    a.strideW = g.strideW;
    a.padH = g.padH;
    a.padW = g.padW;
    a.dilationH = g.dilationH;
    a.dilationW = g.dilationW;
    l.geometry.grid = ceilDiv(a.m, s.tileM) * s.split;
    l.geometry.gridY = ceilDiv(groupK, s.tileN);
    l.geometry.gridZ = g.groups;
    l.geometry.block = kThreads;
    l.geometry.cluster = s.split;
    l.geometry.sharedBytes = s.sharedBytes();
    return l;
}
template Launch<HalfArgs> launch(Spec const&, ConvShape const&);
template Launch<FloatArgs> launch(Spec const&, ConvShape const&);

double estimateUs(Spec const& s, ConvShape const& g, int multiprocessors)
{
    // Clocks: products at the rate that a multiprocessor reaches (measured on an H200), 50 bytes of operands, waiting
    // for the step.
    constexpr double kClocksPerUs = 1900, kTf32Rate = 650, kRate = 75, kBytes = 50, kWait = 60;
    int64_t const groupK = g.k / g.groups, steps = ceilDiv(paddedK(g) / kConvStepK, s.split);
    int64_t const blocks = ceilDiv(g.n * g.outH * g.outW, s.tileM) * ceilDiv(groupK, s.tileN) * g.groups * s.split;
    double const products = double(s.tileM) * s.tileN * kConvStepK / (s.kind == Kind::kTf32 ? kTf32Rate : kRate);
    double const bytes = double(s.tileM + s.tileN) * kConvStepK * 4 / kBytes;
    double const step = std::max(products, bytes) + kWait + (s.vector < 4 ? s.tileM * 4 : 0);
    double const sums = double(s.tileM) * s.tileN * s.slices() * 4;
    double const write =
        double(s.tileM) * s.tileN / s.split * 4 / 32 + sums / 64 + 600 + (s.split > 1 ? 1200 + 200 * s.split : 0);
    // Blocks of a cluster lie in one part of the GPU; large ones that want a multiprocessor each leave some idle.
    int64_t const usable = s.split == 8 && s.isAlone() ? int64_t(multiprocessors) * 7 / 8 : multiprocessors;
    double const rounds = double(ceilDiv(blocks, std::max<int64_t>(usable, 1)));
    // A block's first operands are 1500 clocks on their way.
    return (2000 + 1500 + rounds * (double(steps) * step + write)) / kClocksPerUs;
}

std::vector<Spec> candidates(Spec const& base, ConvShape const& g, int multiprocessors, bool clusters, size_t most,
                             size_t mostSources)
{
    std::vector<Guess<Spec>> all;
    struct Tile
    {
        int m, n, stages;
    };
    static constexpr Tile kTiles[] = {{128, 128, 4}, {128, 64, 4}, {64, 64, 4}, {64, 32, 4}, {128, 32, 4}};
    for (Tile const& t : kTiles)
        for (int split : {1, 2, 4, 8}) {
            if (split > 1 && !clusters)
                continue;
            Spec s = base;
            s.tileM = t.m;
            s.tileN = t.n;
            s.stages = t.stages;
            s.split = split;
            if (!unsupported(s, g))
                all.push_back({estimateUs(s, g, multiprocessors), s});
        }
    sortGuesses(all);
    std::vector<Spec> list;
    std::vector<std::string> texts;
    for (Guess<Spec> const& c : all) {
        bool const isKnown = std::find(texts.begin(), texts.end(), c.spec.name()) != texts.end();
        if (list.size() >= most || (!isKnown && texts.size() >= mostSources))
            continue;
        if (!isKnown)
            texts.push_back(c.spec.name());
        list.push_back(c.spec);
    }
    return list;
}

} // namespace tw::cuda::conv_2d
