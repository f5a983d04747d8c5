// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/conv/stem.h"

#include <algorithm>

#include "kernels/cuda/common/generate.h"
#include "kernels/cuda/common/hopper.h"

namespace tw::cuda::stem_f16 {

namespace {

constexpr int kThreads = 256;

} // namespace

int64_t Spec::sharedBytes() const
{
    return tileN * (paddedK() * elementBytes() + 16) + 8 * 32 * chunkOf(tileN) + tileN * 4 +
           int64_t(channels) * patchRows() * patchUnits() * 16;
}

std::string Spec::name() const
{
    return std::string(single ? "stem_tf32_" : "stem_f16_") + std::to_string(rows) + "x" +
           std::to_string(columns * 16) + "x" + std::to_string(tileN) + "_c" + std::to_string(channels) + "_" +
           std::to_string(filterH) + "x" + std::to_string(filterW) + "_sm80";
}

char const* unsupported(Spec const& s)
{
    if (s.channels < 1 || s.channels > 8 || s.filterH < 1 || s.filterH > 11 || s.filterW < 1 || s.padW < 0 ||
        s.filterW + s.shift() > 8 || s.padW > 8 || s.strideH < 1 || s.strideH > 4)
        return "1 to 8 channels, filters of at most 11 rows and 8 columns with the tap that aligns them";
    if (s.rows < 1 || s.rows > 32 || s.columns < 1 || s.columns > 16 || (s.tileN != 32 && s.tileN != 64))
        return "1 to 32 rows of 16 to 256 columns and 32 or 64 filters";
    if (s.sharedBytes() > 112 * 1024)
        return "the pixels do not fit into shared memory";
    return nullptr;
}

char const* unsupported(Spec const& s, Shape const& g)
{
    if (char const* const why = unsupported(s))
        return why;
    if (g.w * s.elementBytes() % 16)
        return "rows of x are not in steps of 16 bytes";
    int64_t const blocksH = (g.outH + s.rows - 1) / s.rows;
    if (g.n * blocksH > 65535 || g.k > 65535 || g.h > 1 << 24 || g.w > 1 << 24)
        return "more blocks than a launch has";
    if (s.aligned && g.k % 8)
        return "filters are not in steps of 8";
    return nullptr;
}

std::string source(Spec const& s)
{
    return include("kernels/cuda/common/matrix.cuh") + constant("ROWS", s.rows) + constant("COLUMNS", s.columns) +
           constant("TILE_N", s.tileN) + constant("CHANNELS", s.channels) + constant("FILTER_H", s.filterH) +
           constant("STRIDE_H", s.strideH) + constant("PAD_W", s.padW) + constant("SHIFT", s.shift()) +
           constant("PATCH_UNITS", s.patchUnits()) + epilogueConstants(s, chunkOf(s.tileN)) + rowsSource(s.single) +
           include("kernels/cuda/conv/stem.cuh");
}

Launch launch(Spec const& s, Shape const& g)
{
    Launch l;
    Args& a = l.args;
    a.m = int32_t(g.outW);
    a.n = int32_t(g.k);
    a.ldy = a.ldResidual = g.k;
    a.batchY = g.k * g.outW; // a row of outputs
    a.h = int32_t(g.h);
    a.w = int32_t(g.w);
    a.outH = int32_t(g.outH);
    a.padH = int32_t(g.padH);
    int64_t const columns = int64_t(s.columns) * 16;
    l.geometry.grid = (g.outW + columns - 1) / columns;
    l.geometry.gridY = g.n * ((g.outH + s.rows - 1) / s.rows);
    l.geometry.gridZ = (g.k + s.tileN - 1) / s.tileN;
    l.geometry.block = kThreads;
    l.geometry.sharedBytes = s.sharedBytes();
    return l;
}

} // namespace tw::cuda::stem_f16
