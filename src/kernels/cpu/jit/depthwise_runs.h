// SPDX-License-Identifier: Apache-2.0
// How kernels of depthwise convolutions cut a row of outputs into tiles. Includes Xbyak: for .cpp files only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/round.h"
#include "kernels/cpu/jit/depthwise.h"
#include "kernels/cpu/jit/vector_code.h"

namespace tw::kernels::jit {

// A run of equal tiles without taps that fall off, or one tile with some.
struct DepthwiseRun
{
    int64_t first = 0; // output column
    int width = 0;     // outputs of each tile
    int64_t tiles = 1;
    bool inside = true;
};

// Tiles of `most` outputs at most.
inline std::vector<DepthwiseRun> depthwiseRuns(int64_t most, DepthwiseRow const& s)
{
    std::vector<DepthwiseRun> runs;
    int64_t const tiles = divideUp(s.outWidth, most);
    int64_t at = 0;
    for (int64_t t = 0; t < tiles; ++t) {
        int const width = int(s.outWidth / tiles + (t < s.outWidth % tiles ? 1 : 0)); // as even as can be
        int64_t const begin = at * s.stride - s.before;
        int64_t const end = (at + width - 1) * s.stride - s.before + (s.taps - 1) * s.dilation;
        bool const inside = begin >= 0 && end < s.inWidth;
        if (inside && !runs.empty() && runs.back().inside && runs.back().width == width)
            ++runs.back().tiles;
        else
            runs.push_back({at, width, 1, inside});
        at += width;
    }
    return runs;
}

// Which outputs of a tile use column j, counted from the tile's first tap, and by which tap.
struct ColumnUse
{
    int output, tap;
};
inline std::vector<ColumnUse> usesOf(DepthwiseRow const& s, int width, int64_t j)
{
    std::vector<ColumnUse> uses;
    for (int tap = 0; tap < s.taps; ++tap) {
        int64_t const at = j - tap * s.dilation;
        if (at >= 0 && at % s.stride == 0 && at / s.stride < width)
            uses.push_back({int(at / s.stride), tap});
    }
    return uses;
}

// Whether instructions and additions reach all of a row, with room.
inline bool reachesRows(DepthwiseRow const& s)
{
    constexpr int64_t kFarthest = int64_t(1) << 30; // bytes
    int64_t const columns = s.outWidth * s.stride + s.taps * s.dilation + s.before;
    int64_t const pixelBytes = std::max({s.xPixelBytes, s.yPixelBytes, s.residualPixelBytes, int64_t(1)});
    return columns < kFarthest && columns <= kFarthest / pixelBytes;
}
inline constexpr char kFarRows[] = "rows of up to 1 GiB are taken";

// tile() once, or in a loop that counts `count` down, with advance() behind it.
template <class Tile, class Advance>
void emitRun(VectorCode& c, DepthwiseRun const& run, Xbyak::Reg64 const& count, Tile const& tile,
             Advance const& advance)
{
    if (run.tiles == 1)
        return tile();
    Xbyak::Label again;
    c.mov(count.cvt32(), uint32_t(run.tiles));
    c.align(16);
    c.L(again);
    tile();
    advance();
    c.dec(count.cvt32());
    c.jnz(again, c.T_NEAR);
}

} // namespace tw::kernels::jit
