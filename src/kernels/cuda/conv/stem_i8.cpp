// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/common/generate.h"
#include "kernels/cuda/conv/stem.h"

namespace tw::cuda::stem_i8 {

namespace {

constexpr int64_t kMostShared = 99 * 1024; // what every GPU has

} // namespace

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
    return "stem_i8_" + std::to_string(rows) + "x" + std::to_string(columns * 16) + "x" + std::to_string(tileN) + "_c" +
           std::to_string(channels) + "_" + std::to_string(filterH) + "x" + std::to_string(filterW) + "_s" +
           std::to_string(strideH) + "x" + std::to_string(strideW) + (packs ? "" : "_bytes") + "_" + end.name();
}

char const* unsupported(Spec const& s)
{
    if (s.rows < 1 || s.rows > 16 || s.columns < 1 || s.columns > 16 || (s.tileN != 32 && s.tileN != 64))
        return "blocks have 1 to 16 rows, 16 to 256 columns, 32 or 64 filters";
    if (s.channels < 1 || s.channels > 4 || s.filterH < 1 || s.filterH > 16 || s.filterW < 1 || s.filterW > 8 ||
        s.strideH < 1 || s.strideH > 8 || s.strideW < 1 || s.strideW > 8)
        return "1 to 4 channels, windows of up to 16 x 8, strides up to 8";
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
    if (g.h >= kLimit || g.w >= kLimit || g.outH >= kLimit || g.outW >= kLimit / 8 || g.padH >= kLimit ||
        g.padW >= kLimit || g.padH <= -kLimit || g.padW <= -kLimit)
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
