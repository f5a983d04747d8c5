// SPDX-License-Identifier: Apache-2.0
// What leaves a tile of products of i8: sums through the end that they have (kernels/cuda/common/integer_end.cuh), as
// i8, FP16 or FP32. Takes the place of writeRows() and writeColumns() of floats; after integerEndSource().
#pragma once

#include "kernels/cuda/common/integer_end.cuh"
#include "kernels/cuda/gemm/wgmma_tiles.cuh"

namespace tw::cuda::gemm_f16 {

// Scales and biases, as pairs, of COUNT columns from column0 on: thread t of OF takes its part before the products and
// puts it to shared memory after them.
template <int COUNT, int OF>
struct ColumnEnds<true, COUNT, OF>
{
    static constexpr int EACH = (COUNT + OF - 1) / OF;
    float scale[EACH], bias[EACH];
    TW_INLINE void take(Args const& a, int column0, int t)
    {
#pragma unroll
        for (int i = 0; i < EACH; ++i) {
            int const c = t + i * OF;
            bool const known = c < COUNT && column0 + c < a.channels;
            scale[i] = known ? endScale(a.end, column0 + c) : 0;
            bias[i] = known ? endBias(a.end, column0 + c) : 0;
        }
    }
    TW_INLINE void put(u32 to, int t) const
    {
#pragma unroll
        for (int i = 0; i < EACH; ++i)
            if (t + i * OF < COUNT)
                asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(to + (t + i * OF) * COLUMN_END_BYTES),
                             "f"(scale[i]), "f"(bias[i])
                             : "memory");
    }
};
template <>
struct RowEnds<true>
{
    float v[4] = {}; // scale and bias of n, then of n + 8
    TW_INLINE void take(Args const& a, int n)
    {
#pragma unroll
        for (int h = 0; h < 2; ++h)
            if (n + h * 8 < a.channels) {
                v[h * 2] = endScale(a.end, n + h * 8);
                v[h * 2 + 1] = endBias(a.end, n + h * 8);
            }
    }
};

TW_INLINE void storeCluster(u32 at, i32 a, i32 b, i32 c, i32 d)
{
    asm volatile("st.shared::cluster.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(a), "r"(b), "r"(c), "r"(d)
                 : "memory");
}
TW_INLINE void loadShared(i32 (&v)[4], u32 at)
{
    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3])
                 : "r"(at)
                 : "memory");
}

// Two neighbours of a row, as one word in shared memory or, where rows of y are ALIGNED, in the residual.
template <class T>
struct alignas(2 * sizeof(T)) Pair
{
    T v[2];
};
TW_INLINE void loadPair(Pair<i8>& p, u32 at)
{
    u16 v;
    asm volatile("ld.shared.u16 %0, [%1];" : "=h"(v) : "r"(at) : "memory");
    p.v[0] = i8(v);
    p.v[1] = i8(v >> 8);
}
TW_INLINE void loadPair(Pair<f16>& p, u32 at)
{
    u32 const v = tw::cuda::loadShared(at);
    p.v[0].bits = u16(v);
    p.v[1].bits = u16(v >> 16);
}
TW_INLINE void loadPair(Pair<float>& p, u32 at)
{
    tw::cuda::loadShared(at, p.v[0], p.v[1]);
}
// Entry i of a table; `table`: this lane's part of fillTable(), where there is one.
TW_INLINE u32 tableByte(Args const& a, u32 i, u32 table)
{
    if constexpr (TABLE_BYTES > 0) {
        u32 y;
        asm("ld.shared.u8 %0, [%1];" : "=r"(y) : "r"(table + (i / 4 * 128 + i % 4)));
        return y;
    } else {
        return u8(__ldg(a.end.table + i));
    }
}
// Of i8 the upper half is nobody's.
TW_INLINE u32 packPair(Args const& a, float x0, float x1, u32 table, i8)
{
    u32 const y = toBytes(x0, x1);
    if constexpr (!END_TABLE)
        return y;
    u32 const i = y ^ 0x8080;
    return tableByte(a, i & 255, table) | tableByte(a, i >> 8 & 255, table) << 8;
}
TW_INLINE u32 packPair(Args const&, float x0, float x1, u32, f16)
{
    return packHalves(x0, x1);
}
TW_INLINE Pair<float> packPair(Args const&, float x0, float x1, u32, float)
{
    return {x0, x1};
}
TW_INLINE void storePair(u32 at, u32 v, i8)
{
    asm volatile("st.shared.u16 [%0], %1;" ::"r"(at), "r"(v) : "memory");
}
TW_INLINE void storePair(u32 at, u32 v, f16)
{
    storeShared(at, v);
}
TW_INLINE void storePair(u32 at, Pair<float> const& v, float)
{
    asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(at), "f"(v.v[0]), "f"(v.v[1]) : "memory");
}
template <class T>
TW_INLINE void residualFloats(Pair<T> const& p, float& v0, float& v1)
{
    if constexpr (!END_RESIDUAL) {
        v0 = v1 = 0;
    } else if constexpr (sizeof(T) == 1) {
        bytesToFloats(u32(u8(p.v[0])) | u32(u8(p.v[1])) << 8, v0, v1);
    } else {
        v0 = endFloat(p.v[0]);
        v1 = endFloat(p.v[1]);
    }
}
TW_INLINE i8 loadElement(u32 at, i8)
{
    u16 v;
    asm volatile("ld.shared.u8 %0, [%1];" : "=h"(v) : "r"(at) : "memory");
    return i8(v);
}
TW_INLINE f16 loadElement(u32 at, f16)
{
    f16 v;
    asm volatile("ld.shared.u16 %0, [%1];" : "=h"(v.bits) : "r"(at) : "memory");
    return v;
}
TW_INLINE float loadElement(u32 at, float)
{
    return __uint_as_float(tw::cuda::loadShared(at));
}

// A chunk, 16 rows and CHUNK columns, lies in the warp's part of shared memory as units of 16 bytes, those of a row
// turned round by its number: with rows of 128 bytes as TMA has it. Swapped tiles have none.
constexpr int ROW_UNITS = SWAP ? 1 : CHUNK * sizeof(Element) / 16, UNIT_COLUMNS = 16 / sizeof(Element);
constexpr int END_PER_LANE = (16 * ROW_UNITS + 31) / 32;
TW_INLINE u32 unitAt(u32 stage, int row, int unit)
{
    return stage + (row * ROW_UNITS + (unit ^ (row & (ROW_UNITS - 1)))) * 16;
}
TW_INLINE u32 columnAt(u32 stage, int row, int column)
{
    int const byte = column * int(sizeof(Element));
    return unitAt(stage, row, byte / 16) + byte % 16;
}
// The same of column `column` and more and row g, or g + 8 (h), from columnAt(stage, g, pair), pair < 8: `column`, a
// multiple of 8, and h are known when the kernel is compiled, and units of all columns are one instruction apart since
// parts begin at multiples of a row's size.
TW_INLINE u32 columnFrom(u32 at, int column, int h)
{
    int const byte = column * int(sizeof(Element));
    return (at ^ (byte & ~15)) + byte % 16 + h * 8 * ROW_UNITS * 16;
}

// A residual of y's type on its way: of 16 rows and CHUNK columns, as lanes write y. Others come as sums lie.
constexpr bool STAGED_RESIDUAL = RESIDUAL && ALIGNED && !COPIES && !SWAP;
struct Ahead
{
    Unit x[STAGED_RESIDUAL ? END_PER_LANE : 1];
};
// f(i, row, column, address in shared memory) of the units that lanes read and write of a chunk, with those that are
// beyond its 16 rows left out.
template <class F>
TW_INLINE void eachUnit(int row0, int column0, u32 stage, int lane, F const& f)
{
#pragma unroll
    for (int i = 0; i < END_PER_LANE; ++i) {
        int const at = lane + i * 32, r = at / ROW_UNITS, u = at % ROW_UNITS;
        if (16 * ROW_UNITS >= 32 || r < 16)
            f(i, row0 + r, column0 + u * UNIT_COLUMNS, unitAt(stage, r, u));
    }
}
TW_INLINE void fetchResidual(Args const& a, Ahead& ahead, int row0, int column0, int batch, int lane)
{
    if constexpr (STAGED_RESIDUAL)
        eachUnit(row0, column0, 0, lane, [&](int i, int row, int column, u32) {
            Unit x = {};
            if (row < a.m && column < a.n)
                x = *reinterpret_cast<Unit const*>(static_cast<Element const*>(a.end.residual) + i64(batch) * a.batchY +
                                                   i64(row) * a.ldResidual + column);
            ahead.x[i] = x;
        });
}

// One chunk of y to shared memory, of a warp's sums: v[4 j ..] holds rows g and g + 8 (g = lane / 4) of columns
// 8 j + 2 (lane % 4) and the next. `ends`: pairs of ColumnEnds. STAGED: the residual lies where y comes to lie, else
// it is read from memory. All that is loaded of AHEAD blocks of columns is loaded at once, then all is stored: neither
// overtakes the other.
template <bool STAGED, int N>
TW_INLINE void endChunk(Args const& a, EndNumbers const& numbers, i32 const (&v)[N], int chunk, int row0, int column0,
                        int batch, u32 stage, u32 ends, int lane)
{
    constexpr int BLOCKS_Q = CHUNK / 8, AHEAD = divisorUpTo(8, BLOCKS_Q);
    int const g = lane / 4, pair = lane % 4 * 2;
    i64 const from = i64(batch) * a.batchY + i64(row0 + g) * a.ldResidual;
    u32 const own = columnAt(stage, g, pair);
    u32 const table = tableAt() + lane * 4;
#pragma unroll
    for (int first = 0; first < BLOCKS_Q; first += AHEAD) {
        Pair<EndResidual> add[AHEAD][2] = {};
        float e[AHEAD][4]; // scale, bias, of either column
        decltype(packPair(a, 0, 0, table, Element())) y[AHEAD][2];
#pragma unroll
        for (int j = 0; j < AHEAD; ++j) {
            int const c = (first + j) * 8 + pair;
            tw::cuda::loadShared(e[j], ends + (chunk * CHUNK + c) * COLUMN_END_BYTES);
            if constexpr (END_RESIDUAL) {
#pragma unroll
                for (int h = 0; h < 2; ++h) {
                    int const column = column0 + chunk * CHUNK + c;
                    if constexpr (STAGED) {
                        loadPair(add[j][h], columnFrom(own, (first + j) * 8, h));
                    } else if (row0 + g + h * 8 < a.m && column < a.channels) {
                        EndResidual const* const at =
                            static_cast<EndResidual const*>(a.end.residual) + from + h * 8 * a.ldResidual + column;
                        if constexpr (ALIGNED)
                            add[j][h] = *reinterpret_cast<Pair<EndResidual> const*>(at);
                        else {
                            add[j][h].v[0] = at[0];
                            if (column + 1 < a.channels)
                                add[j][h].v[1] = at[1];
                        }
                    }
                }
            }
        }
#pragma unroll
        for (int j = 0; j < AHEAD; ++j)
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                int const at = (chunk * BLOCKS_Q + first + j) * 4 + h * 2;
                float r0, r1;
                residualFloats(add[j][h], r0, r1);
                y[j][h] = packPair(a, endOf(v[at], e[j][0], e[j][1], r0, numbers),
                                   endOf(v[at + 1], e[j][2], e[j][3], r1, numbers), table, Element());
            }
#pragma unroll
        for (int j = 0; j < AHEAD; ++j)
#pragma unroll
            for (int h = 0; h < 2; ++h)
                storePair(columnFrom(own, (first + j) * 8, h), y[j][h], Element());
    }
}

// 16 rows and 2 N columns of y; as those of floats.
template <int N>
TW_INLINE void leaveByRows(Args const& a, i32 (&v)[N], int row0, int column0, int batch, u32 stage, u32 ends,
                           Ahead& ahead, int nextRow, int lane)
{
    constexpr int CHUNKS = N * 2 / CHUNK;
    EndNumbers const numbers = endNumbers(a.end);
    i64 const base = i64(batch) * a.batchY;
#pragma unroll
    for (int chunk = 0; chunk < CHUNKS; ++chunk) {
        int const c0 = column0 + chunk * CHUNK;
        if constexpr (STAGED_RESIDUAL) {
            eachUnit(row0, c0, stage, lane, [&](int i, int, int, u32 at) { storeShared(at, ahead.x[i]); });
            __syncwarp();
            if (chunk + 1 < CHUNKS)
                fetchResidual(a, ahead, row0, c0 + CHUNK, batch, lane);
            else if (nextRow >= 0)
                fetchResidual(a, ahead, nextRow, column0, batch, lane);
        }
        endChunk<STAGED_RESIDUAL>(a, numbers, v, chunk, row0, column0, batch, stage, ends, lane);
        __syncwarp();
        if constexpr (ALIGNED) {
            eachUnit(row0, c0, stage, lane, [&](int, int row, int column, u32 at) {
                if (row < a.m && column < a.n)
                    *reinterpret_cast<Unit*>(a.y + base + i64(row) * a.ldy + column) = loadSharedUnit(at);
            });
        } else { // an element a lane, so that a row's neighbours leave together
#pragma unroll 4
            for (int i = 0; i < CHUNK / 2; ++i) {
                int const at = lane + i * 32, r = at / CHUNK, c = at % CHUNK, row = row0 + r, column = c0 + c;
                Element const y = loadElement(columnAt(stage, r, c), Element());
                if (row < a.m && column < a.n)
                    a.y[base + i64(row) * a.ldy + column] = y;
            }
        }
        __syncwarp();
    }
}
// The same by TMA, from a part of shared memory that each chunk has for itself; there the residual came to lie.
template <int N>
TW_INLINE void leaveByCopies(Args const& a, TensorMap const* map, i32 (&v)[N], int row0, int column0, int batch,
                             u32 stage, u32 ends, int lane)
{
    EndNumbers const numbers = endNumbers(a.end);
#pragma unroll
    for (int chunk = 0; chunk < N * 2 / CHUNK; ++chunk) {
        u32 const to = stage + chunk * CHUNK_BYTES;
        endChunk<RESIDUAL>(a, numbers, v, chunk, row0, column0, batch, to, ends, lane);
        sharedFence();
        __syncwarp();
        if (lane == 0) {
            storeTile(map, to, column0 + chunk * CHUNK, row0, batch);
            bulkCommit();
        }
    }
}

// Swapped: rows are y's columns. v[4 j ..] holds n = row0 + g, + 8 of m = column0 + 8 j + 2 (lane % 4) and the next;
// `ends`: scale and bias of those n.
template <int N>
TW_INLINE void writeColumns(Args const& a, i32 (&v)[N], float const (&ends)[4], int row0, int column0, int batch,
                            int lane)
{
    constexpr int BLOCKS_Q = N / 4, AHEAD = divisorUpTo(8, BLOCKS_Q);
    EndNumbers const numbers = endNumbers(a.end);
    int const n = row0 + lane / 4, m = column0 + lane % 4 * 2;
    i64 const base = i64(batch) * a.batchY + n;
#pragma unroll
    for (int first = 0; first < BLOCKS_Q; first += AHEAD) {
        EndResidual add[AHEAD][4] = {};
        if constexpr (END_RESIDUAL) {
#pragma unroll
            for (int j = 0; j < AHEAD; ++j)
#pragma unroll
                for (int e = 0; e < 4; ++e) {
                    int const row = m + (first + j) * 8 + e % 2, h = e / 2 * 8;
                    if (row < a.m && n + h < a.channels)
                        add[j][e] = static_cast<EndResidual const*>(a.end.residual)[base + i64(row) * a.ldResidual + h];
                }
        }
#pragma unroll
        for (int j = 0; j < AHEAD; ++j)
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                int const row = m + (first + j) * 8 + e % 2, h = e / 2 * 8, i = e / 2 * 2;
                float const x = endOf(v[(first + j) * 4 + e], ends[i], ends[i + 1], add[j][e], numbers);
                if (row < a.m && n + h < a.n)
                    endStore(a.y + base + i64(row) * a.ldy + h, x, a.end.table);
            }
    }
}

} // namespace tw::cuda::gemm_f16
