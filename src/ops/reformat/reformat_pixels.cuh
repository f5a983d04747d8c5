// SPDX-License-Identifier: Apache-2.0
// Planes of elements of 2 bytes to pixels of whole vectors of 8 channels, and back: by squares, or by whole planes.
#pragma once

#include "kernels/cuda/common/prelude.cuh"
#include "ops/reformat/reformat_params.h"

namespace tw::ops::reformat {

typedef Pack<u32, 4> Halves;
// `left`: elements of the row that there are; a multiple of W.
template <int W>
TW_INLINE Halves loadRow(unit2 const* row, i64 left)
{
    Halves v = {};
    if constexpr (W == 8) {
        if (left > 0)
            v = *reinterpret_cast<Halves const*>(row);
    } else if constexpr (W == 1) {
#pragma unroll
        for (int i = 0; i < 8; ++i)
            if (i < left)
                v.v[i / 2] |= u32(row[i].v) << (i % 2 * 16);
    } else {
#pragma unroll
        for (int i = 0; i < 8 / W; ++i)
            if (i * W < left) {
                Pack<u32, W / 2> const part = *reinterpret_cast<Pack<u32, W / 2> const*>(row + i * W);
#pragma unroll
                for (int e = 0; e < W / 2; ++e)
                    v.v[i * (W / 2) + e] = part.v[e];
            }
    }
    return v;
}
template <int W>
TW_INLINE void storeRow(unit2* row, i64 left, Halves const& v)
{
    if constexpr (W == 8) {
        if (left > 0)
            *reinterpret_cast<Halves*>(row) = v;
    } else if constexpr (W == 1) {
#pragma unroll
        for (int i = 0; i < 8; ++i)
            if (i < left)
                row[i].v = (unsigned short)(v.v[i / 2] >> (i % 2 * 16));
    } else {
#pragma unroll
        for (int i = 0; i < 8 / W; ++i)
            if (i * W < left) {
                Pack<u32, W / 2> part;
#pragma unroll
                for (int e = 0; e < W / 2; ++e)
                    part.v[e] = v.v[i * (W / 2) + e];
                *reinterpret_cast<Pack<u32, W / 2>*>(row + i * W) = part;
            }
    }
}
// Row j of the square turned: element j of each row.
TW_INLINE Halves turned(Halves const (&rows)[8], int j)
{
    Halves v;
#pragma unroll
    for (int k = 0; k < 4; ++k)
        v.v[k] = __byte_perm(rows[k * 2].v[j / 2], rows[k * 2 + 1].v[j / 2], j % 2 ? 0x7632 : 0x5410);
    return v;
}
extern __shared__ Halves tile[];
// Squares of 8 channels by 8 pixels, turned in registers. Between them and pixels, 16 bytes at a time go through shared
// memory, so that a warp touches 512 bytes of a plane and whole pixels, or 128 bytes of each, on the other side. Places
// are mixed so that neither side meets in a bank.
TW_INLINE int placeOf(int v)
{
    return v ^ ((v >> 3 ^ v >> 6) & 7);
}
struct Tile
{
    i64 image, c, pixel;
    int groups, own, square, pixels;
}; // own: group of this warp; square: of this thread
// Blocks run along what is dense where they read: caches join what they write.
TW_INLINE Tile tileOf(PixelParams const& p, bool fromNhwc)
{
    Tile t;
    Div const inner = fromNhwc ? p.blocksC : p.blocksP, outer = fromNhwc ? p.blocksP : p.blocksC;
    idx const q = divide(blockIdx.x, inner), n = divide(q, outer);
    i64 const first = i64(blockIdx.x - q * idx(inner.d)), second = i64(q - n * idx(outer.d));
    int const warp = threadIdx.x / 32;
    t.groups = 1 << p.groupShift;
    t.pixels = 2048 >> p.groupShift;
    t.image = n;
    t.c = (fromNhwc ? first : second) * (t.groups * 8);
    t.pixel = (fromNhwc ? second : first) * t.pixels;
    t.own = warp & (t.groups - 1);
    t.square = (warp >> p.groupShift) * 32 + threadIdx.x % 32;
    return t;
}
template <int W>
TW_INLINE void toNhwc(PixelParams const& p)
{
    waitForPrevious();
    releaseDependents();
    Tile const t = tileOf(p, false);
    i64 const c = t.c + t.own * 8, pixel = t.pixel + t.square * 8;
    unit2 const* const x = static_cast<unit2 const*>(p.x) + (t.image * p.channels + c) * p.pixels + pixel;
    Halves rows[8];
#pragma unroll
    for (int k = 0; k < 8; ++k)
        rows[k] = loadRow<W>(x + k * p.pixels, c + k < p.channels ? p.pixels - pixel : 0);
#pragma unroll
    for (int j = 0; j < 8; ++j)
        tile[placeOf((t.square * 8 + j) * t.groups + t.own)] = turned(rows, j);
    __syncthreads();
    unit2* const y = static_cast<unit2*>(p.y) + (t.image * p.pixels + t.pixel) * p.pixel + t.c;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        int const v = i * 256 + threadIdx.x, g = v & (t.groups - 1), at = v >> p.groupShift;
        if (t.c + g * 8 < p.channels && t.pixel + at < p.pixels)
            *reinterpret_cast<Halves*>(y + at * p.pixel + g * 8) = tile[placeOf(v)];
    }
}
template <int W>
TW_INLINE void toPlanes(PixelParams const& p)
{
    waitForPrevious();
    releaseDependents();
    Tile const t = tileOf(p, true);
    unit2 const* const x = static_cast<unit2 const*>(p.x) + (t.image * p.pixels + t.pixel) * p.pixel + t.c;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        int const v = i * 256 + threadIdx.x, g = v & (t.groups - 1), at = v >> p.groupShift;
        if (t.c + g * 8 < p.channels && t.pixel + at < p.pixels)
            tile[placeOf(v)] = *reinterpret_cast<Halves const*>(x + at * p.pixel + g * 8);
    }
    __syncthreads();
    i64 const c = t.c + t.own * 8, pixel = t.pixel + t.square * 8;
    Halves rows[8];
#pragma unroll
    for (int j = 0; j < 8; ++j)
        rows[j] = tile[placeOf((t.square * 8 + j) * t.groups + t.own)];
    unit2* const y = static_cast<unit2*>(p.y) + (t.image * p.channels + c) * p.pixels + pixel;
#pragma unroll
    for (int k = 0; k < 8; ++k)
        if (c + k < p.channels)
            storeRow<W>(y + k * p.pixels, p.pixels - pixel, turned(rows, k));
}
// Planes that fit shared memory whole: the channels of a block are one span of memory, read and written 16 bytes at
// a time whatever the size of a plane. After the planes of 8 channels 16 bytes are left out.
TW_INLINE Tile planesOf(PixelParams const& p, int& valid)
{
    Tile t;
    idx const n = divide(blockIdx.x, p.blocksC);
    t.groups = 1 << p.groupShift;
    t.pixels = int(p.pixels);
    t.image = n;
    t.c = i64(blockIdx.x - n * idx(p.blocksC.d)) * (t.groups * 8);
    i64 const left = p.channels - t.c, all = t.groups * 8;
    valid = int((left < all ? left : all) * p.pixels / 8); // of 16 bytes: a multiple, the host has seen to it
    return t;
}
TW_INLINE void toNhwcByPlanes(PixelParams const& p)
{
    waitForPrevious();
    releaseDependents();
    int valid;
    Tile const t = planesOf(p, valid);
    Halves const* const x =
        reinterpret_cast<Halves const*>(static_cast<unit2 const*>(p.x) + (t.image * p.channels + t.c) * p.pixels);
    for (int begin = threadIdx.x; begin < t.groups * t.pixels; begin += 4 * blockDim.x) {
        Halves part[4]; // in flight together
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            int const v = begin + i * blockDim.x;
            part[i] = v < valid ? x[v] : Halves{};
        }
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            int const v = begin + i * blockDim.x;
            if (v < t.groups * t.pixels)
                tile[v + int(divide(v, p.plane))] = part[i];
        }
    }
    __syncthreads();
    unit2 const* const s = reinterpret_cast<unit2 const*>(tile);
    unit2* const y = static_cast<unit2*>(p.y) + t.image * p.pixels * p.pixel + t.c;
    for (int v = threadIdx.x; v < t.groups * t.pixels; v += blockDim.x) {
        int const g = v & (t.groups - 1), at = v >> p.groupShift;
        if (t.c + g * 8 >= p.channels)
            continue;
        unit2 const* const from = s + g * (t.pixels + 1) * 8 + at;
        Halves out;
#pragma unroll
        for (int k = 0; k < 4; ++k)
            out.v[k] = u32(from[k * 2 * t.pixels].v) | u32(from[(k * 2 + 1) * t.pixels].v) << 16;
        *reinterpret_cast<Halves*>(y + at * p.pixel + g * 8) = out;
    }
}
TW_INLINE void toPlanesByPlanes(PixelParams const& p)
{
    waitForPrevious();
    releaseDependents();
    int valid;
    Tile const t = planesOf(p, valid);
    unit2* const s = reinterpret_cast<unit2*>(tile);
    unit2 const* const x = static_cast<unit2 const*>(p.x) + t.image * p.pixels * p.pixel + t.c;
    for (int begin = threadIdx.x; begin < t.groups * t.pixels; begin += 4 * blockDim.x) {
        Halves part[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            int const v = begin + i * blockDim.x, g = v & (t.groups - 1), at = v >> p.groupShift;
            part[i] = Halves{};
            if (v < t.groups * t.pixels && t.c + g * 8 < p.channels)
                part[i] = *reinterpret_cast<Halves const*>(x + at * p.pixel + g * 8);
        }
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            int const v = begin + i * blockDim.x, g = v & (t.groups - 1), at = v >> p.groupShift;
            if (v >= t.groups * t.pixels)
                continue;
            unit2* const to = s + g * (t.pixels + 1) * 8 + at;
#pragma unroll
            for (int k = 0; k < 8; ++k)
                to[k * t.pixels].v = (unsigned short)(part[i].v[k / 2] >> (k % 2 * 16));
        }
    }
    __syncthreads();
    Halves* const y = reinterpret_cast<Halves*>(static_cast<unit2*>(p.y) + (t.image * p.channels + t.c) * p.pixels);
    for (int v = threadIdx.x; v < valid; v += blockDim.x)
        y[v] = tile[v + int(divide(v, p.plane))];
}

} // namespace tw::ops::reformat
