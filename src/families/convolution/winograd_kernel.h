// SPDX-License-Identifier: Apache-2.0
// The kernel behind the Winograd tactics.
#pragma once

#include <algorithm>
#include <optional>

#include "base/format.h"
#include "base/round.h"
#include "device/cpu.h"
#include "kernels/cpu/jit/emitter.h"
#include "kernels/cpu/jit/sum_end.h"
#include "tactic/packed_constants.h"
#include "tactic/panel_order.h"
#include "tactic/tactic.h"

namespace tw::ops {

// A window over three axes sums over its planes as over further channels: those of the input planes that it meets, planes
// outside being zeros.
struct WinogradDepth
{
    int64_t window = 1, stride = 1, dilation = 1, before = 0;
};

struct WinogradSpec : kernels::jit::SumEnd
{
    kernels::jit::Isa isa = kernels::jit::Isa::kAvx2;
    int m = 4;
    bool shared = false;            // all workers transform the tiles of one block, then take blocks of columns
    bool inPlace = false;           // weights are transformed as they are used
    int64_t tiles = 1, columns = 1; // of a block
    int64_t piece = 64;             // input channels that are summed up at a time
    int threads = 1;
    int64_t c = 1, k = 1;       // c: channels of x times the planes of the window
    int64_t before[2] = {0, 0}; // padding above and to the left
    WinogradDepth depth;

    int64_t positions() const { return int64_t(m + 2) * (m + 2); }
};

// [n d, c, h, w] of a tensor [n, c, d, h, w]; others as they are.
Extents winogradPlanes(Extents const& dims);
// Tiles of an output of this shape [n, k, (d,) h, w].
int64_t winogradTiles(int m, Extents const& y);

// The order in which filters [k, c, 3, 3] are read in place, by kernels of `columns` a block; null where zeros stand
// between.
std::optional<PanelOrder> winogradPanels(kernels::jit::Isa isa, int64_t k, int64_t c, int64_t columns);

// w: [k, c, (d,) 3, 3], not read when `panels` has them in that order, for a spec in place; else copies come from `packed`.
// bias: [k] or null. Inputs of the kernel: x, w, bias, residual (the last three may be absent).
Result<std::unique_ptr<Kernel>> makeWinogradKernel(WinogradSpec const& spec, Blob const& w, float const* bias,
                                                   BlobPtr const& panels, PackedConstants* packed);

// How the Winograd kernel cuts up tiles, columns and input channels, and where the parts lie in its scratch memory.
constexpr int64_t kLineFloats = kCacheLine / int64_t(sizeof(float));

// Floats from row to row: whole lines, and not a multiple of 1 KiB, since those compete for few sets of the cache.
inline int64_t rowStride(int64_t columns)
{
    int64_t const lines = divideUp(columns, kLineFloats);
    return (lines + (lines % 16 == 0)) * kLineFloats;
}
// From position to position: an odd number of lines, so that the lines of one tile lie in different sets.
inline int64_t positionStride(int64_t floats)
{
    int64_t const lines = divideUp(floats, kLineFloats);
    return (lines + (lines % 2 == 0)) * kLineFloats;
}
inline int32_t bytes(int64_t floats)
{
    return int32_t(floats * int64_t(sizeof(float)));
}

// How tiles, columns and input channels are cut up.
struct WinogradLayout
{
    int64_t tilesY = 0, tilesX = 0, tiles = 0;
    int64_t blocks = 0, blockTiles = 0;    // block i: tiles [i * tiles / blocks, (i + 1) * tiles / blocks)
    int64_t pieces = 0, piece = 0;         // the last one of a plane may be shorter
    int64_t channels = 0, planePieces = 0; // of one plane of the window
    int64_t vRow = 0, vPosition = 0, vPiece = 0, mRow = 0, mPosition = 0, uPosition = 0; // floats
    int64_t vFloats = 0, mFloats = 0, uFloats = 0;

    // largest: for blocks as large as they can get, so that sizes grow with every dimension.
    WinogradLayout(WinogradSpec const& s, Extents const& output, bool largest = false)
    {
        Extents const y = winogradPlanes(output);
        tilesY = divideUp(y[2], s.m);
        tilesX = divideUp(y[3], s.m);
        tiles = y[0] * tilesY * tilesX;
        if (tiles == 0)
            return;
        blocks = divideUp(tiles, s.tiles);
        if (!s.shared)
            blocks = std::min(roundUp(blocks, s.threads), tiles);
        blockTiles = largest ? std::min(s.tiles, tiles) : divideUp(tiles, blocks);
        channels = s.c / s.depth.window;
        piece = roundUp(divideUp(channels, divideUp(channels, s.piece)), kLineFloats);
        planePieces = divideUp(channels, piece);
        pieces = planePieces * s.depth.window;
        vRow = rowStride(piece);
        vPosition = positionStride(blockTiles * vRow);
        vPiece = s.positions() * vPosition;
        vFloats = pieces * vPiece;
        int64_t const columns = std::min(s.columns, roundUp(s.k, kLineFloats));
        mRow = rowStride(columns);
        mPosition = positionStride(blockTiles * mRow);
        mFloats = s.positions() * mPosition;
        if (s.inPlace) {
            uPosition = positionStride(piece * columns);
            uFloats = s.positions() * uPosition;
        }
    }
    int64_t blockBegin(int64_t i) const { return i * tiles / blocks; }
    // Where a piece begins in its plane, and in all; how long it is.
    int64_t inPlane(int64_t i) const { return i % planePieces * piece; }
    int64_t begin(int64_t i) const { return i / planePieces * channels + inPlane(i); }
    int64_t count(int64_t i) const { return std::min(piece, channels - inPlane(i)); }
};

} // namespace tw::ops
