// SPDX-License-Identifier: Apache-2.0
// Tiles of a product by wgmma: their order, copies of operands to shared memory and of results from there.
//   int TILE_P, TILE_Q, STAGES, GROUPS, SPLIT, MULTICAST, NORM, THREADS, BLOCKS_PER_SM, BIAS_BYTES, STAGING_BYTES,
// SUMS_BYTES,
//       STEP_K, STEP_BYTES, KEPT_STEPS, TABLE_BYTES, TABLE_AT
//   type Sum: float, or i32 of products of i8
//   bool INTEGERS, TF32X3, GATED, PING_PONG, SWAP, P_ALONG_K, Q_ALONG_K, COPIES, AHEAD, IMAGE, VOLUME, PHASED, REDISTRIBUTE, LATE, EARLY
#pragma once

#include "kernels/cuda/common/epilogue.cuh"
#include "kernels/cuda/common/hopper.cuh"
#include "kernels/cuda/gemm/wgmma_params.h"

namespace tw::cuda::gemm_f16 {

constexpr int ROWS = PING_PONG ? TILE_P : TILE_P / GROUPS, BLOCKS = ROWS / 64; // of a tile, for one group
constexpr u32 COLUMN_END_BYTES = INTEGERS ? 8 : 4; // of shared memory, for a column's bias, or its scale and bias
constexpr u32 P_BYTES = TILE_P * STEP_BYTES, STAGE_BYTES = (TILE_P + TILE_Q) * STEP_BYTES;
constexpr int TILE_Y = GATED && !SWAP ? TILE_Q / 2 : TILE_Q; // of y's columns, where they are Q's
constexpr int COLUMNS = TILE_Q / SPLIT, NEIGHBOURS = NORM ? NORM : SPLIT * MULTICAST; // blocks of a unit
// OWN_SUMS: what a split adds up has room beside the stages.
constexpr bool OWN_SUMS = SUMS_BYTES > 0;
// LATE: no registers are left to hold the residual during the products.
template <bool IS_PHASED>
struct KindOfArgs
{
    using Type = ArgsOf<Element>;
};
template <>
struct KindOfArgs<true>
{
    using Type = PhasedArgsOf<Element>;
};
using Args = KindOfArgs<PHASED>::Type;
struct Tile
{
    int p, q, batch;
}; // first row, first column

// What ends the sums of columns: floats' biases. Of integers see wgmma_integers.cuh.
template <bool INTEGER_SUMS, int COUNT, int OF>
struct ColumnEnds : BiasPart<COUNT, OF>
{};
// The same of a lane's rows, where they are y's columns: n, and n + 8.
template <bool INTEGER_SUMS>
struct RowEnds
{
    float v[2] = {};
    TW_INLINE void take(Args const& a, int n)
    {
        if constexpr (BIAS)
#pragma unroll
            for (int h = 0; h < 2; ++h)
                v[h] = n + h * 8 < a.n ? a.bias[n + h * 8] : 0;
    }
};
// TABLE_BYTES: the table of an i8 end in shared memory, TABLE_AT behind the first stage, once for each lane in a bank of
// its own: entry i of lane l is byte i % 4 of word i / 4 * 32 + l.
TW_INLINE u32 stagesAt()
{
    extern __shared__ u8 raw[];
    return (sharedAddress(raw) + 1023) & ~1023u;
}
TW_INLINE u32 tableAt()
{
    return stagesAt() + TABLE_AT;
}
TW_INLINE void fillTable(Args const& a)
{
    for (int i = threadIdx.x; i < TABLE_BYTES / 4; i += GROUPS * 128)
        storeShared(tableAt() + i * 4, reinterpret_cast<u32 const*>(a.end.table)[i / 32]);
}
// Moves nothing of what follows in front of the instructions that make v.
TW_INLINE void keepBehind(float& v)
{
    asm volatile("" : "+f"(v));
}
TW_INLINE void keepBehind(i32& v)
{
    asm volatile("" : "+r"(v));
}

// Tiles run down bands of rows of tiles, so that those in flight share both operands in L2. Divisions, which take as long
// as a short tile's products, are left out where they can be.
TW_INLINE Tile tileAt(Args const& a, int unit, int rank)
{
    int batch = 0, at = unit;
    if (a.batches > 1) {
        int const each = a.tilesP * a.tilesQ;
        batch = unit / each;
        at -= batch * each;
    }
    if constexpr (NORM)
        return {at * TILE_P, rank * TILE_Q, batch};
    constexpr u32 HIGH = kBandRows / MULTICAST;
    u32 const band = (__umulhi(at, a.band.m) + at) >> a.band.s, first = band * HIGH, rest = at - first * a.tilesQ;
    u32 const high = min(HIGH, a.tilesP - first), column = high == HIGH ? rest / HIGH : rest / high;
    Tile t;
    t.p = int((first + rest - column * high) * MULTICAST + (MULTICAST > 1 ? rank : 0)) * TILE_P;
    t.q = int(column) * TILE_Q;
    t.batch = batch;
    return t;
}

// The phase that a batch is, along either axis.
struct Phase
{
    int h, w;
    template <class A>
    TW_INLINE Phase(A const& a, int batch) : h(batch / a.axisW.phases), w(batch - h * a.axisW.phases)
    {}
    template <class A>
    TW_INLINE int steps(A const& a) const
    {
        return a.axisH.taps[h] * a.axisW.taps[w] * a.stepsC;
    }
};
template <class A>
TW_INLINE RowAt rowAt(PhasedArgsOf<A> const& a, int batch, int row)
{
    Phase const phase(a, batch);
    int const line = row / a.outW, n = line / a.outH;
    int const h = (line - n * a.outH) * a.axisH.phases + phase.h, w = (row - line * a.outW) * a.axisW.phases + phase.w;
    return {((i64(n) * a.axisH.out + h) * a.axisW.out + w) * a.ldy, row < a.m && h < a.axisH.out && w < a.axisW.out};
}
// The steps of a tile's k that this block takes.
struct StepRange
{
    int begin, end;
    TW_INLINE StepRange(int all, int rank)
        : begin(SPLIT > 1 ? all * rank / SPLIT : 0), end(SPLIT > 1 ? all * (rank + 1) / SPLIT : all)
    {}
    template <class A>
    TW_INLINE StepRange(A const& a, StepRange const& ofAll, Tile const& t, int rank) : StepRange(ofAll)
    {
        if constexpr (PHASED)
            *this = StepRange(Phase(a, t.batch).steps(a), rank);
    }
};

// What the copying thread walks along: k, and for an image the tap and where the tile's first pixel begins.
struct Cursor
{
    int k, p, q, zp, zq;         // elements
    int c, tap, r, s, w, h, n;   // TF32X3: tap counts the walks along k
    int z, d;                    // VOLUME: the tap, and where the first pixel begins, along the third axis
    int filterW, shiftH, shiftW; // PHASED: taps of the phase along a row, and how far the first one is
    template <class A>
    TW_INLINE void beginPhase(A const& a, int batch)
    {
        Phase const phase(a, batch);
        filterW = a.axisW.taps[phase.w];
        shiftH = a.axisH.shift[phase.h];
        shiftW = a.axisW.shift[phase.w];
        q += batch * a.filters;
    }
    TW_INLINE void begin(Args const& a, Volume const* v, Tile const& t, int step)
    {
        k = step * STEP_K;
        p = t.p;
        q = t.q;
        zp = t.batch * a.batchP;
        zq = t.batch * a.batchQ;
        if constexpr (TF32X3) {
            tap = step / a.stepsC;
            c = (step - tap * a.stepsC) * STEP_K;
        }
        if constexpr (IMAGE) {
            tap = step / a.stepsC;
            c = (step - tap * a.stepsC) * STEP_K;
            filterW = a.filterW;
            shiftH = shiftW = 0;
            if constexpr (PHASED)
                beginPhase(a, t.batch);
            r = tap / filterW;
            s = tap - r * filterW;
            int const row = t.p / a.outW;
            n = row / a.outH;
            w = (t.p - row * a.outW) * a.strideW - a.padW;
            h = (row - n * a.outH) * a.strideH - a.padH;
            if constexpr (VOLUME) {
                int const plane = n;
                n = plane / v->outD;
                d = (plane - n * v->outD) * v->strideD - v->padD;
                z = r / v->filterH;
                r -= z * v->filterH;
            }
        }
    }
    TW_INLINE void next(Args const& a, Volume const* v)
    {
        k += STEP_K;
        if constexpr (TF32X3) {
            c += STEP_K;
            if (c == a.stepsC * STEP_K) {
                c = 0;
                ++tap;
            }
        }
        if constexpr (IMAGE) {
            c += STEP_K;
            if (c == a.stepsC * STEP_K) {
                c = 0;
                ++tap;
                if (++s == (PHASED ? filterW : a.filterW)) {
                    s = 0;
                    ++r;
                    if constexpr (VOLUME)
                        if (r == v->filterH) {
                            r = 0;
                            ++z;
                        }
                }
            }
        }
    }
};

// Where an operand is read: a's low part in the first walk, b's in the second.
TW_INLINE int columnOf(Args const& a, Cursor const& at, bool isB)
{
    if constexpr (TF32X3)
        return at.c + (at.tap == int(isB) ? a.stepsC * STEP_K : 0);
    return at.k;
}
TW_INLINE void loadP(TensorMap const* map, Args const& a, Volume const* v, u32 to, u32 bar, Cursor const& at)
{
    if constexpr (VOLUME) {
        copyVoxels(to, map, bar, at.c, at.w, at.h, at.d, at.n, u16(at.s * a.dilationW), u16(at.r * a.dilationH),
                   u16(at.z * v->dilationD));
    } else if constexpr (IMAGE) {
        copyPixels(to, map, bar, at.c, at.w, at.h, at.n, u16(at.s * a.dilationW + at.shiftW),
                   u16(at.r * a.dilationH + at.shiftH));
    } else if constexpr (P_ALONG_K) {
        copyTile(to, map, bar, columnOf(a, at, SWAP), at.p, at.zp);
    } else {
#pragma unroll
        for (int i = 0; i < TILE_P / 64; ++i)
            copyTile(to + i * 8192, map, bar, at.p + i * 64, at.k, at.zp);
    }
}
TW_INLINE void loadQ(TensorMap const* map, Args const& a, u32 to, u32 bar, Cursor const& at, int rank)
{
    constexpr u16 ALL = (1 << MULTICAST) - 1;
    if constexpr (Q_ALONG_K) {
        constexpr int PART = TILE_Q / MULTICAST;
        int const first = MULTICAST > 1 ? rank * PART : 0, row = at.q + first;
        int const c0 = IMAGE ? at.c : columnOf(a, at, !SWAP), c1 = IMAGE ? at.tap : row, c2 = IMAGE ? row : at.zq;
        if constexpr (MULTICAST > 1)
            copyTileTo(to + first * STEP_BYTES, map, bar, c0, c1, c2, ALL);
        else
            copyTile(to, map, bar, c0, c1, c2);
    } else {
        constexpr int PART = TILE_Q / 64 / MULTICAST;
#pragma unroll
        for (int i = 0; i < PART; ++i) {
            int const block = MULTICAST > 1 ? rank * PART + i : i;
            if constexpr (MULTICAST > 1)
                copyTileTo(to + block * 8192, map, bar, at.q + block * 64, at.k, at.zq, ALL);
            else
                copyTile(to + block * 8192, map, bar, at.q + block * 64, at.k, at.zq);
        }
    }
}

// COPIES: each warp's part of a tile, chunks of 16 rows of 128 bytes, lies in shared memory as TMA wants
// it. It brings the residual during the products, or (AHEAD) those of the tile before to a second such part, and takes
// y away during those of the next tile.
constexpr int CHUNK_BYTES = 16 * CHUNK * sizeof(Element),
              WARP_BYTES = COPIES ? BLOCKS * (TILE_Y / CHUNK) * CHUNK_BYTES : CHUNK_BYTES;
TW_INLINE void fetchChunks(TensorMap const* map, u32 stage, u32 bar, int row0, int column0, int batch)
{
    bulkWaitRead(); // y of the tile before has left
    barrierExpect(bar, WARP_BYTES);
#pragma unroll
    for (int b = 0; b < BLOCKS; ++b)
#pragma unroll
        for (int c = 0; c < TILE_Q / CHUNK; ++c)
            copyTile(stage + (b * (TILE_Q / CHUNK) + c) * CHUNK_BYTES, map, bar, column0 + c * CHUNK, row0 + b * 64,
                     batch);
}
template <int N>
TW_INLINE void copyRows(TensorMap const* map, float (&v)[N], int row0, int column0, int batch, u32 stage, u32 biases,
                        int lane)
{
    // Four 8 x 8 blocks at once: rows 0 and 8 of unit u, then of unit u + 1; each lane names a row of one.
    u32 const rowAt = (lane / 8 % 2 * 8 + lane % 8) * 128;
    int const t = lane % 4;
#pragma unroll
    for (int chunk = 0; chunk < N * 2 / CHUNK; ++chunk) {
        u32 const to = stage + chunk * CHUNK_BYTES;
        // All at once: loads do not overtake the stores below.
        u32 add[UNITS / 2][4];
        float bias[UNITS][2] = {};
#pragma unroll
        for (int u = 0; u < UNITS; ++u) {
            if constexpr (RESIDUAL)
                if (u % 2 == 0)
                    loadMatrix4(add[u / 2], to + rowAt + ((u + lane / 16) ^ lane % 8) * 16);
            if constexpr (BIAS)
                loadShared(biases + (chunk * CHUNK + u * 8 + t * 2) * 4, bias[u][0], bias[u][1]);
        }
#pragma unroll
        for (int u = 0; u < UNITS; u += 2) {
            u32 const at = to + rowAt + ((u + lane / 16) ^ lane % 8) * 16;
            u32 out[4];
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                int const j = chunk * UNITS + u + i / 2, h = i % 2;
                float x0 = v[j * 4 + h * 2] + bias[u + i / 2][0], x1 = v[j * 4 + h * 2 + 1] + bias[u + i / 2][1];
                float r0 = 0, r1 = 0;
                if constexpr (RESIDUAL) {
                    r0 = lowHalf(add[u / 2][i]);
                    r1 = highHalf(add[u / 2][i]);
                }
                x0 = epilogue(x0, r0);
                x1 = epilogue(x1, r1);
                out[i] = packHalves(x0, x1);
            }
            storeMatrix4(at, out);
        }
        sharedFence();
        __syncwarp();
        if (lane == 0) {
            storeTile(map, to, column0 + chunk * CHUNK, row0, batch);
            bulkCommit();
        }
    }
}

} // namespace tw::cuda::gemm_f16
