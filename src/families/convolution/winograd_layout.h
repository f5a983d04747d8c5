// SPDX-License-Identifier: Apache-2.0
// How the Winograd kernel cuts up tiles, columns and input channels, and where the parts lie in its scratch memory.
#pragma once

#include <algorithm>

#include "base/format.h"
#include "base/round.h"
#include "device/cpu.h"
#include "families/convolution/winograd_kernel.h"

namespace tw::ops {

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
