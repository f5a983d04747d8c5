// SPDX-License-Identifier: Apache-2.0
// The rows of y that a block makes follow each other through all planes: what it writes is one piece that begins on a
// boundary, and what it reads is one piece too. A lane makes a row; PARTS warps share it.
//   type T: f16, f32; int PARTS, EDGE: elements, at most, that are read before the first row of x
//   int CELLS: floats of shared memory for x
#pragma once

#include "kernels/cuda/common/prelude.cuh"
#include "ops/resize/resize_params.h"
#include "ops/resize/resize_sizes.cuh"

namespace tw::ops::resize {

typedef Pack<T, 4> Load; // four cells, so that neighbours write to neighbouring banks
typedef Pack<u32, 4> Store;
constexpr int AHEAD = 8; // columns of x that are read before they are needed
constexpr int THREADS = ROWS * PARTS, LOAD = 4, STORE = 16 / sizeof(T);
constexpr int UNITS = (SEEN * WIDE_X + EDGE + LOAD - 2) / LOAD; // of x, for a block
extern __shared__ unit16 shared[];
TW_INLINE constexpr int within(int i, int size)
{
    return i < 0 ? 0 : i < size ? i : size - 1;
}
// Column o of y: the columns of x that make it, the same one twice where it stands alone.
TW_INLINE constexpr u32 placeOf(int o)
{
    return u32(o) * TIMES_W + PLUS_W;
}
TW_INLINE constexpr int firstOf(int o)
{
    return within(int(placeOf(o) / BY_W) - 1, WIDE_X);
}
TW_INLINE constexpr int secondOf(int o)
{
    return placeOf(o) % BY_W == 0 ? firstOf(o) : within(int(placeOf(o) / BY_W), WIDE_X);
}
TW_INLINE float weightOf(int o)
{
    return float(placeOf(o) % BY_W) * INVERSE_W;
}
// Rows of x, counted through all planes, that make a row of y.
struct Taps
{
    u32 first, second;
    float weight;
};
TW_INLINE Taps tapsOf(u32 row)
{
    u32 const plane = row / TALL, m = (row - plane * TALL) * TIMES + PLUS, q = m / BY, rest = m - q * BY;
    Taps t;
    t.first = plane * TALL_X + within(int(q) - 1, TALL_X);
    t.second = rest == 0 ? t.first : plane * TALL_X + within(int(q), TALL_X);
    // An element of weight zero takes no part: an infinity times zero were NaN.
    t.weight = rest == 0 ? 0.5f : float(rest) * INVERSE;
    return t;
}
TW_INLINE u32 pairOf(float low, float high)
{
    u32 pair;
    asm("cvt.rn." TW_NARROW_PTX "x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}
// A row of y on its way out. MORE: columns that a part makes for its last word.
constexpr bool IS_HALF = sizeof(T) == 2;
constexpr int WORDS = IS_HALF ? WIDE / 2 : WIDE, MORE = IS_HALF ? 1 : 0;
TW_INLINE constexpr int columnsBefore(int word)
{
    return IS_HALF ? 2 * word : word;
}
template <class Element>
struct Out
{
    Element* row;
    TW_INLINE Out(Element* at, int start) : row(at + start) {}
    TW_INLINE void put(int o, int, int, float v) { row[o] = v; }
};
// Elements leave in words: a row that begins within one puts its first element alone, another its last.
template <>
struct Out<Narrow>
{
    Narrow* row;
    u32* words;
    u32 shift, last;
    float low;
    TW_INLINE Out(Narrow* at, int start)
        : row(at + start), words(reinterpret_cast<u32*>(at + start + start % 2)), shift(start % 2 * 16), last(0), low(0)
    {}
    TW_INLINE void put(int o, int begin, int end, float v)
    {
        if (o % 2 == 0)
            low = v;
        if (o % 2 == 0 && o < end)
            return;
        u32 const pair = pairOf(low, v);
        if (o / 2 * 2 > begin)
            words[o / 2 - 1] = __funnelshift_r(last, pair, shift);
        last = pair;
        if (shift != 0 ? o < 2 : o == WIDE - 1)
            row[o / 2 * 2].bits = (unsigned short)(pair);
    }
};
// SEEN rows of x, as cells that stand as many late as the first element lies after a boundary.
TW_INLINE void stage(LaneParams const& p, u32 start, float* cells)
{
    constexpr int STEPS = (UNITS + THREADS - 1) / THREADS, ONCE = STEPS < 8 ? STEPS : 4;
    u32 const late = start % EDGE, left = u32(p.elements) - (start - late);
    T const* const x = static_cast<T const*>(p.x) + (start - late);
    int const units = int(min(left / LOAD, u32(UNITS))); // x may end before
#pragma unroll 1
    for (int s0 = 0; s0 < STEPS; s0 += ONCE) {
        Load v[ONCE];
#pragma unroll
        for (int k = 0; k < ONCE; ++k) {
            int const u = threadIdx.x + (s0 + k) * THREADS;
            if (u < units)
                v[k] = *reinterpret_cast<Load const*>(x + u * LOAD);
        }
#pragma unroll
        for (int k = 0; k < ONCE; ++k) {
            int const u = threadIdx.x + (s0 + k) * THREADS;
            if (u >= units)
                continue;
            Pack<float, LOAD> c;
#pragma unroll
            for (int i = 0; i < LOAD; ++i)
                c.v[i] = load<float>(v[k].v[i]);
            *reinterpret_cast<Pack<float, LOAD>*>(cells + u * LOAD) = c;
        }
    }
    u32 const rest = units * LOAD + threadIdx.x;
    if (units < UNITS && rest < left)
        cells[rest] = load<float>(x[rest]);
    __syncthreads();
}
// Columns of one row: rows of x are mixed first, which all columns share.
template <int PART>
TW_INLINE void makePart(float const* a, float const* b, float weight, Out<T> out)
{
    constexpr int BEGIN = columnsBefore(PART * WORDS / PARTS), END = columnsBefore((PART + 1) * WORDS / PARTS);
    constexpr int MOST = TIMES_W / BY_W + 2; // columns of x between neighbours
    constexpr int LAST = secondOf(END + MORE - 1);
    float const rest = 1.0f - weight;
    float rawA[WIDE_X], rawB[WIDE_X], v[WIDE_X];
#pragma unroll
    for (int o = BEGIN; o < END + MORE; ++o) {
        int const from = o == BEGIN ? firstOf(o) : secondOf(o - 1) + 1, first = firstOf(o), second = secondOf(o);
        // Loads go ahead: after a store the compiler leaves them where they are.
#pragma unroll
        for (int k = 0; k < AHEAD + MOST; ++k) {
            int const i = o == BEGIN ? from + k : from + AHEAD + k;
            if (i <= LAST && i <= second + AHEAD)
                rawA[i] = a[i], rawB[i] = b[i];
        }
#pragma unroll
        for (int k = 0; k < MOST; ++k)
            if (from + k <= second)
                v[from + k] = fmaf(rawB[from + k], weight, rawA[from + k] * rest);
        out.put(o, BEGIN, END, first == second ? v[first] : mixed(v[first], v[second], weightOf(o), true));
    }
}
template <int PART>
TW_INLINE void make(int part, float const* a, float const* b, float weight, Out<T> const& out)
{
    if (part == PART)
        makePart<PART>(a, b, weight, out);
    else if constexpr (PART + 1 < PARTS)
        make<PART + 1>(part, a, b, weight, out);
}
TW_KERNEL __launch_bounds__(THREADS) resize_lanes(const __grid_constant__ LaneParams p)
{
    float* const cells = reinterpret_cast<float*>(shared);
    T* const staged = reinterpret_cast<T*>(cells + CELLS);
    u32 const row0 = blockIdx.x * ROWS, rows = min(u32(ROWS), u32(p.rows) - row0), own = threadIdx.x % ROWS;
    u32 const from = tapsOf(row0).first, start = from * WIDE_X;
    Taps const t = tapsOf(row0 + min(own, rows - 1));
    waitForPrevious();
    releaseDependents();
    stage(p, start, cells);
    float const* const x = cells + start % EDGE;
    make<0>(int(threadIdx.x / ROWS), x + (t.first - from) * WIDE_X, x + (t.second - from) * WIDE_X, t.weight,
            Out<T>(staged, int(own * WIDE)));
    T* const y = static_cast<T*>(p.y) + row0 * WIDE;
#if __CUDA_ARCH__ >= 900
    if (rows == ROWS) {
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
        if (threadIdx.x != 0)
            return;
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(y),
                     "r"(u32(__cvta_generic_to_shared(staged))), "r"(u32(ROWS * WIDE * sizeof(T)))
                     : "memory");
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
        return;
    }
#endif
    __syncthreads();
    u32 const length = rows * WIDE, units = length / STORE;
#pragma unroll 4
    for (u32 u = threadIdx.x; u < units; u += THREADS)
        reinterpret_cast<Store*>(y)[u] = reinterpret_cast<Store const*>(staged)[u];
    for (u32 i = units * STORE + threadIdx.x; i < length; i += THREADS)
        y[i] = staged[i];
}

} // namespace tw::ops::resize
