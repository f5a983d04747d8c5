// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/conv/stem.h"

#include <algorithm>
#include <cstdlib>

#include "kernels/cuda/common/generate.h"
#include "kernels/cuda/common/hopper.h"

namespace tw::cuda::stem_f16 {

int64_t Spec::sharedBytes() const
{
    return tileN * (paddedK() * elementBytes() + 16) + 8 * 32 * chunkOf(tileN) + tileN * 4 +
           int64_t(channels) * patchRows() * patchUnits() * 16;
}

std::string Spec::name() const
{
    return fmt::format("{}{}x{}x{}_c{}_{}x{}_sm80", single ? "stem_tf32_" : "stem_f16_", rows, columns * 16, tileN,
                       channels, filterH, filterW);
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
    if (g.n * ceilDiv(g.outH, s.rows) > 65535 || g.k > 65535 || g.h > 1 << 24 || g.w > 1 << 24)
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
    l.geometry.grid = ceilDiv(g.outW, s.columns * 16);
    l.geometry.gridY = g.n * ceilDiv(g.outH, s.rows);
    l.geometry.gridZ = ceilDiv(g.k, s.tileN);
    l.geometry.block = 256;
    l.geometry.sharedBytes = s.sharedBytes();
    return l;
}

} // namespace tw::cuda::stem_f16

namespace tw::cuda::stem_i8 {

// Filters, their scales and biases, then pixels, of which the kernel's constants say the same.
int64_t Spec::sharedBytes() const
{
    bool const pairs = filterW <= 4;
    int64_t const patchRows = (rows - 1) * strideH + (pairs ? (filterH + 1) / 2 * 2 : filterH);
    int64_t const units = ((columns * 16 - 1) * strideW + (pairs ? 4 : 8) + 3 + 3) / 4;
    return tileN * (filterBytes() + 16 + 8) + patchRows * units * 16;
}

std::string Spec::name() const
{
    return fmt::format("stem_i8_{}x{}x{}_c{}_{}x{}_s{}x{}{}_{}", rows, columns * 16, tileN, channels, filterH, filterW,
                       strideH, strideW, packs ? "" : "_bytes", end.name());
}

char const* unsupported(Spec const& s)
{
    if (s.rows < 1 || s.rows > 16 || s.columns < 1 || s.columns > 16 || (s.tileN != 32 && s.tileN != 64))
        return "blocks have 1 to 16 rows, 16 to 256 columns, 32 or 64 filters";
    if (s.channels < 1 || s.channels > 4 || s.filterH < 1 || s.filterH > 16 || s.filterW < 1 || s.filterW > 8 ||
        s.strideH < 1 || s.strideH > 8 || s.strideW < 1 || s.strideW > 8)
        return "1 to 4 channels, windows of up to 16 x 8, strides up to 8";
    constexpr int64_t kMostShared = 99 * 1024; // what every GPU has
    return s.sharedBytes() > kMostShared ? "pixels and filters do not fit into shared memory" : nullptr;
}

char const* unsupported(Spec const& s, Shape const& g)
{
    constexpr int64_t kLimit = int64_t(1) << 30, kMostBlocks = 65535;
    if (char const* const why = unsupported(s))
        return why;
    if (s.packs && g.w % 4)
        return "rows of x are not whole words";
    if (g.n * ceilDiv(g.outH, s.rows) > kMostBlocks || ceilDiv(g.k, s.tileN) > kMostBlocks)
        return "at most 65535 blocks of rows";
    if (std::max({g.h, g.w, g.outH, g.outW * 8, int64_t(std::abs(g.padH)), int64_t(std::abs(g.padW))}) >= kLimit)
        return "counts in 32 bits";
    return nullptr;
}

std::string source(Spec const& s)
{
    return include("kernels/cuda/common/matrix.cuh") + integerEndSource(s.end) + constant("ROWS", s.rows) +
           constant("COLUMNS", s.columns) + constant("TILE_N", s.tileN) + constant("CHANNELS", s.channels) +
           constant("FILTER_H", s.filterH) + constant("FILTER_W", s.filterW) +
           constant("FILTER_BYTES", s.filterBytes()) + constant("STRIDE_H", s.strideH) +
           constant("STRIDE_W", s.strideW) + flag("PACKS", s.packs) + flag("ALIGNED", true) +
           include("kernels/cuda/conv/stem_i8.cuh");
}

LaunchGeometry launch(Spec const& s, Shape const& g, Args& a)
{
    a.h = int32_t(g.h);
    a.w = int32_t(g.w);
    a.outH = int32_t(g.outH);
    a.outW = int32_t(g.outW);
    a.padH = int32_t(g.padH);
    a.padW = int32_t(g.padW);
    a.k = int32_t(g.k);
    a.filters8 = int32_t(ceilDiv(g.k, 8) * 8);
    LaunchGeometry l;
    l.grid = ceilDiv(g.outW, s.columns * 16);
    l.gridY = g.n * ceilDiv(g.outH, s.rows);
    l.gridZ = ceilDiv(g.k, s.tileN);
    l.block = 256;
    l.sharedBytes = s.sharedBytes();
    return l;
}

} // namespace tw::cuda::stem_i8
