// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/conv/mma_f16.h"

#include <algorithm>

#include "kernels/cuda/common/generate.h"
#include "kernels/cuda/common/hopper.h"

namespace tw::cuda::conv_f16 {

namespace {

constexpr int kThreads = 256;

} // namespace

int64_t Spec::sharedBytes() const
{
    return int64_t(stages) * (tileM + tileN) * 64 + tileN * 4;
}

std::string Spec::name() const
{
    return "conv_f16_" + std::to_string(tileM) + "x" + std::to_string(tileN) + "x" + std::to_string(kConvStepK) + "_s" +
           std::to_string(stages) + "_v" + std::to_string(vector) + (nchw ? "_nchw" : "") + "_sm80";
}

char const* unsupported(Spec const& s)
{
    if ((s.tileM != 64 && s.tileM != 128) || (s.tileN != 32 && s.tileN != 64 && s.tileN != 128) ||
        s.tileN / (256 / s.tileM) < 16)
        return "tiles have 64 or 128 pixels and 32, 64 or 128 filters, 16 or more for each warp";
    if (s.stages < 2 || s.stages > 6 || s.sharedBytes() > 160 * 1024)
        return "2 to 6 stages";
    if (s.vector != 1 && s.vector != 2 && s.vector != 4 && s.vector != 8)
        return "copies of 1, 2, 4 or 8 elements";
    return nullptr;
}

char const* unsupported(Spec const& s, ConvShape const& g)
{
    if (char const* const why = unsupported(s))
        return why;
    if (char const* const why = unsupportedSizes(g, s.tileN))
        return why;
    if (s.vector > vectorOf(g, s.nchw, kMostVector))
        return "x has fewer elements in a row than the copies take";
    if (s.aligned && (g.k % 8 || g.k / g.groups % 8))
        return "filters of a group are not in steps of 8";
    return nullptr;
}

std::string source(Spec const& s)
{
    int const warpN = s.tileN / (256 / s.tileM), sums = 2 * warpN / 2;
    return include("kernels/cuda/common/matrix.cuh") + constant("TILE_M", s.tileM) + constant("TILE_N", s.tileN) +
           constant("STAGES", s.stages) + constant("VECTOR", s.vector) + constant("BLOCKS_PER_SM", sums > 32 ? 1 : 2) +
           flag("NCHW", s.nchw) + epilogueConstants(s, chunkOf(warpN)) + include("kernels/cuda/conv/mma_f16.cuh");
}

Launch launch(Spec const& s, ConvShape const& g)
{
    Launch l;
    Args& a = l.args;
    int64_t const groupC = g.c / g.groups, groupK = g.k / g.groups;
    a.m = int32_t(g.n * g.outH * g.outW);
    a.n = int32_t(groupK);
    a.ldy = a.ldResidual = g.k;
    a.batchY = groupK; // a group's filters are neighbours
    a.paddedK = int32_t(paddedK(g));
    a.stepsK = a.paddedK / kConvStepK;
    a.inner = int32_t(s.nchw ? g.s : groupC);
    a.middle = int32_t(s.nchw ? g.r : g.s);
    a.outer = int32_t(s.nchw ? groupC : g.r);
    a.imageX = g.h * g.w * g.c;
    a.channelX = s.nchw ? g.h * g.w : 1;
    a.columnX = s.nchw ? 1 : g.c;
    a.rowX = a.columnX * g.w;
    a.h = int32_t(g.h);
    a.w = int32_t(g.w);
    a.outH = int32_t(g.outH);
    a.outW = int32_t(g.outW);
    a.strideH = g.strideH;
    a.strideW = g.strideW;
    a.padH = g.padH;
    a.padW = g.padW;
    a.dilationH = g.dilationH;
    a.dilationW = g.dilationW;
    a.groupC = int32_t(groupC);
    l.geometry.grid = (a.m + s.tileM - 1) / s.tileM;
    l.geometry.gridY = (groupK + s.tileN - 1) / s.tileN;
    l.geometry.gridZ = g.groups;
    l.geometry.block = kThreads;
    l.geometry.sharedBytes = s.sharedBytes();
    return l;
}

} // namespace tw::cuda::conv_f16
