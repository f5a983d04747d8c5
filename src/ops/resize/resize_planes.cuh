// SPDX-License-Identifier: Apache-2.0
// A block makes ROWS rows of PER_BLOCK planes. Their rows of x go to shared memory as they lie in x, as cells: a
// plane's part begins as many cells late as its first element lies after a load's boundary. Rows of an even number of
// elements leave in pairs; others, which begin off every boundary, through shared memory in whole stores.
//   type T, Value: what is computed with, Cell: what stands in shared memory; int THREADS, PAIRS of columns, PER_BLOCK
//   bool IS_KNOWN: bands have code of their own, IN_WARPS: planes have warps of their own, IS_WHOLE: loads end within x
#pragma once

#include "kernels/cuda/common/prelude.cuh"
#include "ops/resize/resize_params.h"
#include "ops/resize/resize_sizes.cuh"

namespace tw::ops::resize {

constexpr int LOAD = 16 / sizeof(T);
constexpr int SLOTS = (WIDE + 1) / 2;                           // pairs of columns: neighbours, or half a row apart
constexpr int TURN = IN_WARPS ? (SLOTS + 31) / 32 * 32 : SLOTS; // threads for a plane's
constexpr int UNITS = (SEEN * WIDE_X + 2 * (LOAD - 1)) / LOAD, PART = UNITS * LOAD; // of a plane's rows of x
constexpr int STORE = LOAD, OUT_UNITS = (ROWS * WIDE + 2 * (STORE - 1)) / STORE;    // of a plane's rows of y
constexpr bool EVEN = WIDE % 2 == 0, STAGED = !EVEN;
// Pairs that lie a whole number of columns of x apart are mixed alike.
constexpr bool REPEATS = EVEN && 2 * TIMES_W % BY_W == 0;
constexpr int APART = EVEN ? 1 : SLOTS;
typedef Pack<u32, 4> Load;
TW_INLINE constexpr int lanesFor(int n)
{
    return n >= THREADS ? THREADS : n <= 1 ? 1 : 2 * lanesFor((n + 1) / 2);
}
constexpr int LANES = lanesFor(OUT_UNITS); // that share a plane's stores
extern __shared__ unit16 shared[];
// Values are what is computed with, cells what stands in shared memory.
template <class C>
TW_INLINE Value valueOf(C c)
{
    if constexpr (kIsNearest)
        return c;
    else
        return load<Value>(c);
}
template <class Of>
TW_INLINE T elementOf(Of v)
{
    if constexpr (kIsNearest)
        return v;
    else
        return store<T>(v);
}
// Of what is moved, not computed with.
template <class Moved>
TW_INLINE Moved mixed(Moved, Moved b, float, bool)
{
    return b;
}
template <class To>
TW_INLINE void putCells(To* to, Load const& l)
{
    if constexpr (sizeof(To) == sizeof(T)) {
        *reinterpret_cast<Load*>(to) = l;
    } else {
        Pack<To, 4> c[2];
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            Narrow h;
            h.bits = (unsigned short)(i % 2 ? l.v[i / 2] >> 16 : l.v[i / 2]);
            c[i / 4].v[i % 4] = halfToFloat(h);
        }
        reinterpret_cast<Pack<To, 4>*>(to)[0] = c[0];
        reinterpret_cast<Pack<To, 4>*>(to)[1] = c[1];
    }
}
template <class Of>
TW_INLINE void putPair(T* to, Of low, Of high)
{
    if constexpr (sizeof(T) == 2 && !kIsNearest) {
        u32 pair;
        asm("cvt.rn." TW_NARROW_PTX "x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
        *reinterpret_cast<u32*>(to) = pair;
    } else {
        Pack<T, 2> p;
        p.v[0] = elementOf(low);
        p.v[1] = elementOf(high);
        *reinterpret_cast<Pack<T, 2>*>(to) = p;
    }
}
struct Where
{
    int plane0, planes, r0, base;
    u32 phase;
}; // base: the row of x that stands first, -1 above the first
TW_INLINE u32 startX(Where const& w, int n)
{
    return u32((w.plane0 + n) * (TALL_X * WIDE_X) + w.base * WIDE_X);
}
TW_INLINE u32 startY(Where const& w, int n)
{
    return u32((w.plane0 + n) * (TALL * WIDE) + w.r0 * WIDE);
}
TW_INLINE u32 wordOf(T const* x, u32 at, u32 last)
{
    if constexpr (sizeof(T) == 4)
        return reinterpret_cast<u32 const*>(x)[min(at, last)];
    unsigned short const* const halves = reinterpret_cast<unsigned short const*>(x);
    return halves[min(at, last)] | u32(halves[min(at + 1, last)]) << 16;
}
TW_INLINE void stage(PlaneParams const& p, Where const& w, Cell* cells)
{
    constexpr int STEPS = (PER_BLOCK * UNITS + THREADS - 1) / THREADS, AHEAD = STEPS < 6 ? STEPS : 4;
    int const first = max(0, -w.base) * WIDE_X, last = min(SEEN, TALL_X - w.base) * WIDE_X; // what there is
    T const* const x = static_cast<T const*>(p.x);
#pragma unroll 1
    for (int s0 = 0; s0 < STEPS; s0 += AHEAD) {
        Load v[AHEAD];
#pragma unroll
        for (int k = 0; k < AHEAD; ++k) {
            u32 const u = threadIdx.x + (s0 + k) * THREADS, n = u / UNITS, start = startX(w, int(n));
            int const late = int(start % LOAD), at = int(u - n * UNITS) * LOAD - late;
            u32 const from = start + u32(at);
            if (int(n) < w.planes && at + LOAD > first && at < last) {
                if (IS_WHOLE || from + LOAD <= p.elements) {
                    v[k] = *reinterpret_cast<Load const*>(x + from);
                } else {
                    u32 const last = u32(p.elements) - 1;
#pragma unroll
                    for (int i = 0; i < 4; ++i)
                        v[k].v[i] = wordOf(x, from + i * LOAD / 4, last);
                }
            }
        }
#pragma unroll
        for (int k = 0; k < AHEAD; ++k) {
            u32 const u = threadIdx.x + (s0 + k) * THREADS;
            if (u >= PER_BLOCK * UNITS)
                break;
            putCells(cells + u * LOAD, v[k]);
        }
    }
    __syncthreads();
    if (w.base >= 0 && w.base + SEEN <= TALL_X)
        return;
    for (int i = threadIdx.x; i < PER_BLOCK * WIDE_X; i += THREADS) { // edges are repeated
        int const n = i / WIDE_X;
        Cell* const column = cells + n * PART + startX(w, n) % LOAD + (i - n * WIDE_X);
        for (int k = 0; k < first; k += WIDE_X)
            column[k] = column[first];
        for (int k = last; k < SEEN * WIDE_X; k += WIDE_X)
            column[k] = column[last - WIDE_X];
    }
    __syncthreads();
}
// The pairs of columns of one thread.
struct Columns
{
    Cell const* at[PAIRS][2][2]; // what is mixed, in the first row of x
    float weight[PAIRS][2];
    T *low[PAIRS], *high[PAIRS]; // in y, or where it is staged; the same one when a column stands alone
    bool works[PAIRS];           // where no pair does, the thread has left
};
TW_INLINE void across(Columns const& c, int row, Value (&v)[PAIRS][2])
{
#pragma unroll
    for (int k = 0; k < PAIRS; ++k)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
            v[k][e] = valueOf(c.at[k][e][0][row * WIDE_X]);
            if constexpr (!kIsNearest)
                v[k][e] = mixed(v[k][e], valueOf(c.at[k][e][1][row * WIDE_X]), c.weight[k][e], REPEATS);
        }
}
TW_INLINE void copy(Value (&to)[PAIRS][2], Value const (&from)[PAIRS][2])
{
#pragma unroll
    for (int k = 0; k < PAIRS; ++k)
        to[k][0] = from[k][0], to[k][1] = from[k][1];
}
// Row r of y from a row of x and the one before.
TW_INLINE void put(Columns const& c, int r, Value const (&a)[PAIRS][2], Value const (&b)[PAIRS][2], float weight,
                   bool isKnown)
{
#pragma unroll
    for (int k = 0; k < PAIRS; ++k) {
        if (PAIRS > 1 && !c.works[k])
            continue;
        Value const low = mixed(a[k][0], b[k][0], weight, isKnown), high = mixed(a[k][1], b[k][1], weight, isKnown);
        if constexpr (EVEN) {
            putPair(c.low[k] + r * WIDE, low, high);
        } else {
            c.low[k][r * WIDE] = elementOf(low);
            c.high[k][r * WIDE] = elementOf(high);
        }
    }
}
// Bands that lie alike, or band K: weights and distances are constants.
template <int K>
TW_INLINE void walkKnown(Columns const& c, int rows)
{
    // How far row r of y lies after a row of x: the one before row i, or (nearest) row i itself.
    constexpr u32 PHASE = (u32(K) * ROWS * TIMES + PLUS) % BY + (kIsNearest ? 0 : BY);
    Value v[2][PAIRS][2]; // of a row of x and of the one before, alternately
#pragma unroll
    for (int i = 0; i < SEEN; ++i) {
        Value(&a)[PAIRS][2] = v[(i + 1) % 2], (&b)[PAIRS][2] = v[i % 2];
        across(c, i, b);
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            u32 const m = u32(r) * TIMES + PHASE, behind = m - u32(i) * BY;
            if (m < u32(i) * BY || behind > LAST || (!kIsNearest && i > 0 && behind == 0))
                continue;
            if (IS_PERIODIC ? TALL % ROWS != 0 && r >= rows : K * ROWS + r >= TALL)
                continue;
            if (!kIsNearest && behind == BY)
                copy(a, b);
            put(c, r, a, b, !kIsNearest && behind == BY ? 0.5f : float(behind) * INVERSE, true);
        }
    }
}
template <int K>
TW_INLINE void walkBand(Columns const& c, int band, int rows)
{
    if (IS_PERIODIC || band == K)
        walkKnown<K>(c, rows);
    else if constexpr (K + 1 < BANDS)
        walkBand<K + 1>(c, band, rows);
}
// Bands of too many kinds. Distances are whole numbers that a float holds.
TW_INLINE void walk(Columns& c, u32 phase, int rows)
{
    constexpr float MOST = float(LAST), STEP = float(TIMES), SPAN = float(BY);
    Value v[2][PAIRS][2];
    float behind = float(phase + (kIsNearest ? 0 : BY));
    int r = 0;
#pragma unroll
    for (int i = 0; i < SEEN; ++i) {
        Value(&a)[PAIRS][2] = v[(i + 1) % 2], (&b)[PAIRS][2] = v[i % 2];
        across(c, i, b);
#pragma unroll 1
        for (; behind <= MOST && r < rows; ++r, behind += STEP) {
            float weight = behind * INVERSE;
            if (!kIsNearest && behind == SPAN)
                copy(a, b), weight = 0.5f;
            put(c, 0, a, b, weight, false);
#pragma unroll
            for (int k = 0; k < PAIRS; ++k)
                c.low[k] += WIDE, c.high[k] += WIDE;
        }
        behind -= SPAN;
    }
}
TW_INLINE void putPart(T* to, Load const& v, int i)
{
    if constexpr (sizeof(T) == 4)
        *reinterpret_cast<u32*>(to) = v.v[i];
    else
        *reinterpret_cast<unsigned short*>(to) = (unsigned short)(v.v[i / 2] >> (i % 2 * 16));
}
TW_INLINE void flush(PlaneParams const& p, Where const& w, T const* staged)
{
    __syncthreads();
    int const length = min(ROWS, TALL - w.r0) * WIDE;
    for (int n = threadIdx.x / LANES; n < w.planes; n += THREADS / LANES) {
        u32 const start = startY(w, n);
        int const late = int(start % STORE);
        T* const to = static_cast<T*>(p.y) + (start - late);
        for (int at = threadIdx.x % LANES * STORE; at < late + length; at += LANES * STORE) {
            Pack<u32, 4> const v = *reinterpret_cast<Pack<u32, 4> const*>(staged + n * (OUT_UNITS * STORE) + at);
            if (at >= late && at + STORE <= late + length) {
                *reinterpret_cast<Pack<u32, 4>*>(to + at) = v;
            } else {
#pragma unroll
                for (int i = 0; i < STORE; ++i)
                    if (at + i >= late && at + i < late + length)
                        putPart(to + at + i, v, i);
            }
        }
    }
}
TW_KERNEL __launch_bounds__(THREADS) resize_planes(const __grid_constant__ PlaneParams p)
{
    Where w;
    bool const isFlat = !IS_KNOWN || IS_PERIODIC;
    int const group = isFlat ? int(blockIdx.x) / BANDS : int(blockIdx.x),
              band = isFlat ? int(blockIdx.x) - group * BANDS : int(blockIdx.y);
    w.plane0 = group * PER_BLOCK;
    w.planes = min(PER_BLOCK, int(p.planes) - w.plane0);
    w.r0 = band * ROWS;
    u32 const n0 = u32(w.r0) * TIMES + PLUS;
    w.base = min(int(n0 / BY) - 1, TALL_X - 1);
    w.phase = n0 % BY;
    int const rows = min(ROWS, TALL - w.r0);
    Cell* const cells = reinterpret_cast<Cell*>(shared);
    T* const staged = reinterpret_cast<T*>(cells + PER_BLOCK * PART);
    waitForPrevious();
    releaseDependents();
    stage(p, w, cells);
#pragma unroll 1
    for (int slot0 = threadIdx.x; slot0 < w.planes * TURN; slot0 += THREADS * PAIRS) {
        Columns c;
        bool any = false;
#pragma unroll
        for (int k = 0; k < PAIRS; ++k) {
            int const slot = slot0 + k * THREADS, plane = slot / TURN, n = min(plane, w.planes - 1),
                      j = min(slot - plane * TURN, SLOTS - 1), column = EVEN ? 2 * j : j;
            c.works[k] = plane < w.planes && slot - plane * TURN < SLOTS;
            any = any || c.works[k];
            int const apart = column + APART < WIDE ? APART : 0;
            Cell const* const x = cells + n * PART + startX(w, n) % LOAD;
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                u32 const m = (REPEATS ? e : column + e * apart) * TIMES_W + PLUS_W;
                int const first = int(m / BY_W) - 1 + (REPEATS ? j * int(2 * TIMES_W / BY_W) : 0);
                c.at[k][e][0] = x + max(min(first, WIDE_X - 1), 0);
                c.at[k][e][1] = m % BY_W == 0 ? c.at[k][e][0] : x + max(min(first + 1, WIDE_X - 1), 0);
                // An element of weight zero takes no part: an infinity times zero were NaN.
                c.weight[k][e] = m % BY_W == 0 ? 0.5f : float(m % BY_W) * INVERSE_W;
            }
            c.low[k] = (STAGED ? staged + n * (OUT_UNITS * STORE) + startY(w, n) % STORE
                               : static_cast<T*>(p.y) + startY(w, n)) +
                       column;
            c.high[k] = c.low[k] + apart;
        }
        if (!any)
            continue;
        if constexpr (IS_KNOWN)
            walkBand<0>(c, band, rows);
        else
            walk(c, w.phase, rows);
    }
    if constexpr (STAGED)
        flush(p, w, staged);
}

} // namespace tw::ops::resize
