// SPDX-License-Identifier: Apache-2.0
// What both types share: a block walks over tiles of y with the same channels. The tile of x [IN_H, IN_W, VECTORS] that
// the next one needs is copied meanwhile, zeros outside of x; y leaves through shared memory. Vectors of a pixel change
// places by the pixel's column, so that 8 columns' same vector lie in 8 different groups of banks.
// After epilogue().
//   int HELD, BLOCKS, R, S, STEP_H, STEP_W, DIL_H, DIL_W, ACROSS, ROWS, VECTORS, IN_W, ROW, ROW_Y; type T; bool
//       IS_PAIR, RESIDUAL
#pragma once

#include "families/convolution/cuda_conv_depthwise_tile_params.h"
#include "kernels/cuda/common/matrix.cuh"

namespace tw::ops::conv_f16 {

TW_INLINE u32 divide(u32 n, Div const& v)
{
    return (__umulhi(n, v.m) + n) >> v.s;
}
constexpr int THREADS = VECTORS * 32;
constexpr int TILE_W = ACROSS * 4, TILE_H = 16 / ACROSS * ROWS;     // outputs
constexpr int NEED_W = (TILE_W - 1) * STEP_W + (S - 1) * DIL_W + 1; // columns of x
constexpr int IN_H = (TILE_H - 1) * STEP_H + (R - 1) * DIL_H + 1;
constexpr int LOG = VECTORS == 8 ? 3 : VECTORS == 4 ? 2 : VECTORS == 2 ? 1 : 0; // 0: not a power of two
constexpr int PITCH = LOG ? VECTORS : VECTORS | 1;                              // vectors from column to column
// Columns of x that make one output of each of 4 neighbours, in groups of 4.
constexpr int GROUPS = (3 * STEP_W + (S - 1) * DIL_W + 4) / 4;
// A column's bit that says which of two groups of 4 columns, read at a time, it is in.
template <int STEP>
constexpr int FAR = (STEP >= 4   ? 4
                     : STEP >= 2 ? 3
                                 : 2) +
                    IS_PAIR;
// Bytes after the row's beginning.
template <int STEP>
TW_INLINE constexpr int placeOf(int column, int vector)
{
    if constexpr (LOG == 0)
        return (column * PITCH + (IS_PAIR ? (column >> FAR<STEP>)*4 : 0) + vector) * 16;
    int const turn = (column & 3) | (column >> FAR<STEP> & 1) << 2;
    return (column * VECTORS + (vector ^ (turn >> (3 - LOG)))) * 16;
}
constexpr int TILE = IN_H * ROW;       // bytes of shared memory
constexpr int V = 16 / int(sizeof(T)); // channels of a vector
struct Tile
{
    int image, h0, w0;
}; // of y
TW_INLINE Tile tileOf(TileParams const& p, u32 i)
{
    u32 const row = divide(i, p.tilesW), image = divide(row, p.tilesH);
    return {int(image), int(row - image * u32(p.tilesH.d)) * TILE_H, int(i - row * u32(p.tilesW.d)) * TILE_W};
}
// COUNT columns from FIRST on: each thread has one, in every STEPth row.
template <int FIRST, int COUNT>
TW_INLINE void takeColumns(TileParams const& p, Tile const& t, u32 to, int vector0)
{
    constexpr int STEP = 32 / COUNT;
    int const vector = threadIdx.x % VECTORS, i = threadIdx.x / VECTORS, column = FIRST + i % COUNT;
    if (COUNT * STEP < 32 && i >= COUNT * STEP)
        return;
    int const h0 = t.h0 * STEP_H - p.padH + i / COUNT, w = t.w0 * STEP_W - p.padW + column;
    bool const isColumn = column < NEED_W && u32(w) < u32(p.w) && vector0 + vector < p.vectors;
    T const* x = static_cast<T const*>(p.x) + ((i64(t.image) * p.h + h0) * p.w + w) * p.pixelX + (vector0 + vector) * V;
    i64 const step = i64(STEP) * p.w * p.pixelX;
    to += i / COUNT * ROW + placeOf<STEP_W>(column, vector);
#pragma unroll 6
    for (int row = 0; row < IN_H; row += STEP) {
        if (IN_H % STEP == 0 || row + i / COUNT < IN_H) {
            bool const valid = isColumn && u32(h0 + row) < u32(p.h);
            copyAsync16(to + row * ROW, x, valid);
        }
        x += step;
    }
}
TW_INLINE void takeTile(TileParams const& p, Tile const& t, u32 to, int vector0)
{
    if constexpr (IN_W <= 32)
        takeColumns<0, IN_W>(p, t, to, vector0);
    else {
        takeColumns<0, 32>(p, t, to, vector0);
        takeColumns<32, (IN_W > 32 ? IN_W - 32 : 32)>(p, t, to, vector0);
    }
}
TW_INLINE Unit residualAt(TileParams const& p, Tile const& t, int h, int w, int vector)
{
    if (t.h0 + h >= p.outH || t.w0 + w >= p.outW || vector >= p.vectors)
        return Unit{};
    i64 const pixel = (i64(t.image) * p.outH + t.h0 + h) * p.outW + t.w0 + w;
    return *reinterpret_cast<Unit const*>(static_cast<T const*>(p.residual) + pixel * p.pixelResidual + vector * V);
}
// A plain store after the first of an unrolled loop becomes four, of a word each.
TW_INLINE void storeWhole(T* to, Unit const& v)
{
    asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(v.v[0]), "r"(v.v[1]), "r"(v.v[2]),
                 "r"(v.v[3])
                 : "memory");
}
TW_INLINE void putTile(TileParams const& p, Tile const& t, u32 from, int vector0)
{
    constexpr int STEP = 32 / TILE_W;
    int const vector = threadIdx.x % VECTORS, i = threadIdx.x / VECTORS, column = i % TILE_W;
    int const h0 = t.h0 + i / TILE_W, w = t.w0 + column;
    if (w >= p.outW || vector0 + vector >= p.vectors)
        return;
    T* y = static_cast<T*>(p.y) + ((i64(t.image) * p.outH + h0) * p.outW + w) * p.pixelY + (vector0 + vector) * V;
    i64 const step = i64(STEP) * p.outW * p.pixelY;
    from += i / TILE_W * ROW_Y + placeOf<1>(column, vector);
    constexpr int COUNT = TILE_H / STEP; // 2 ROWS
    Unit v[COUNT];
#pragma unroll
    for (int k = 0; k < COUNT; ++k)
        v[k] = loadSharedUnit(from + k * STEP * ROW_Y);
#pragma unroll
    for (int k = 0; k < COUNT; ++k) {
        if (h0 + k * STEP < p.outH)
            storeWhole(y, v[k]);
        y += step;
    }
}

} // namespace tw::ops::conv_f16
