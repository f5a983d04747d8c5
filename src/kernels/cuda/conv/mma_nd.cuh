// SPDX-License-Identifier: Apache-2.0
// Convolutions over up to three axes, transposed ones phase by phase, by mma.sync.
//   type Element; float activate(float); int TILE_M, TILE_N, STAGES, VECTOR, BLOCKS_PER_SM; bool IS_HALF, TF32X3,
// ALIGNED
#pragma once

#include "kernels/cuda/common/factors.cuh"
#include "kernels/cuda/conv/mma_common.cuh"
#include "kernels/cuda/conv/mma_nd_params.h"

namespace tw::cuda::conv_nd {

constexpr int THREADS = 256, WARPS_M = TILE_M / 32, WARPS_N = 8 / WARPS_M, WARP_N = TILE_N / WARPS_N;
constexpr int BYTES = int(sizeof(Element)), ROW_BYTES = 32 * BYTES;
constexpr u32 X_BYTES = TILE_M * ROW_BYTES, STAGE_BYTES = (TILE_M + TILE_N) * ROW_BYTES;
constexpr int PITCH = TILE_N + 8; // of sums: halves of a warp store 8 bytes each without conflicts
using Args = ArgsOf<Element>;
// Rows of 64 (FP16) or 128 bytes; 8 rows at the same k lie in different banks.
TW_INLINE u32 unitAt(int row, int unit)
{
    return IS_HALF ? row * 64 + (unit ^ (row >> 1 & 3)) * 16 : row * 128 + (unit ^ (row & 7)) * 16;
}
// VECTOR elements, those after the first `bytes` zero; nothing is read when that is 0.
TW_INLINE void copyPart(u32 to, Element const* from, int bytes)
{
    if constexpr (VECTOR * BYTES == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
    else if constexpr (VECTOR * BYTES == 8)
        asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
    else if constexpr (VECTOR * BYTES == 4)
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
    else { // too few bytes for an asynchronous copy
        u16 const v = bytes ? *reinterpret_cast<u16 const*>(from) : u16(0);
        asm volatile("st.shared.b16 [%0], %1;" ::"r"(to), "h"(v) : "memory");
    }
}

// The phase of a block, and how many taps it has along each axis.
struct Phase
{
    int d, h, w, tapsD, tapsH, tapsW;
    TW_INLINE Phase(Args const& a, int phase)
    {
        int const q = phase / a.axes[2].phases;
        w = phase - q * a.axes[2].phases;
        d = q / a.axes[1].phases;
        h = q - d * a.axes[1].phases;
        tapsD = a.axes[0].count[d];
        tapsH = a.axes[1].count[h];
        tapsW = a.axes[2].count[w];
    }
};
// Where k stands.
struct Taps
{
    int inner, d, h, w;
    TW_INLINE Taps(Args const& a, int k)
    {
        int q = k / a.inner;
        inner = k - q * a.inner;
        int const row = q / a.axes[2].taps;
        w = q - row * a.axes[2].taps;
        d = row / a.axes[1].taps;
        h = row - d * a.axes[1].taps;
    }
    TW_INLINE void move(Args const& a, int by)
    {
        inner += by;
        while (inner >= a.inner) {
            inner -= a.inner;
            if (++w < a.axes[2].taps)
                continue;
            w = 0;
            if (++h < a.axes[1].taps)
                continue;
            h = 0;
            ++d;
        }
    }
};
// A row as an image and a position along each axis.
struct Position
{
    int image, d, h, w;
    TW_INLINE Position(Args const& a, int m)
    {
        int const row = divide(m, a.positions[2]), plane = divide(row, a.positions[1]);
        w = m - row * int(a.positions[2].d);
        h = row - plane * int(a.positions[1].d);
        image = divide(plane, a.positions[0]);
        d = plane - image * int(a.positions[0].d);
    }
};
// A position's first tap, which may lie outside.
struct Pixel
{
    i64 at;
    int d, h, w;
    TW_INLINE void set(Args const& a, Phase const& p, int m)
    {
        Position const q(a, m);
        d = q.d * a.axes[0].stride + a.axes[0].begin[p.d];
        h = q.h * a.axes[1].stride + a.axes[1].begin[p.h];
        w = q.w * a.axes[2].stride + a.axes[2].begin[p.w];
        at = i64(q.image) * a.imageX + i64(d) * a.planeX + i64(h) * a.rowX + i64(w) * a.pixelX;
        if (m >= a.m)
            d = -(1 << 28); // zeros
    }
};
// How far a tap is from the first one.
struct Step
{
    i64 at;
    int d, h, w, bytes;
    TW_INLINE Step(Args const& a, Phase const& p, Taps const& t)
    {
        d = t.d * a.axes[0].step;
        h = t.h * a.axes[1].step;
        w = t.w * a.axes[2].step;
        at = i64(d) * a.planeX + i64(h) * a.rowX + i64(w) * a.pixelX + t.inner;
        bytes = t.d < p.tapsD && t.h < p.tapsH && t.w < p.tapsW ? min(VECTOR, a.channels - t.inner) * BYTES : 0;
    }
    TW_INLINE int bytesFor(Args const& a, Pixel const& p) const
    {
        bool const inside =
            u32(p.d + d) < u32(a.axes[0].in) && u32(p.h + h) < u32(a.axes[1].in) && u32(p.w + w) < u32(a.axes[2].in);
        return inside ? bytes : 0;
    }
};

// Each warp has 32 rows; registers are laid out as mma.sync wants them.
struct Sums
{
    float d[2][WARP_N / 8 * 4] = {};
    int row, column; // of this warp in the tile
    TW_INLINE Sums(int warp) : row(warp % WARPS_M * 32), column(warp / WARPS_M * WARP_N) {}
    TW_INLINE void add(u32 xs, u32 fs, int lane)
    {
        if constexpr (IS_HALF) {
#pragma unroll
            for (int k = 0; k < 2; ++k) {
                u32 fx[2][4];
#pragma unroll
                for (int i = 0; i < 2; ++i)
                    loadMatrix4(fx[i], xs + unitAt(row + i * 16 + lane % 16, k * 2 + lane / 16));
#pragma unroll
                for (int j = 0; j < WARP_N / 16; ++j) {
                    u32 b[4];
                    loadMatrix4(b, fs + unitAt(column + j * 16 + lane / 16 * 8 + lane % 8, k * 2 + lane / 8 % 2));
#pragma unroll
                    for (int i = 0; i < 2; ++i) {
                        mma(*reinterpret_cast<float(*)[4]>(&d[i][j * 8]), fx[i], b[0], b[1]);
                        mma(*reinterpret_cast<float(*)[4]>(&d[i][j * 8 + 4]), fx[i], b[2], b[3]);
                    }
                }
            }
        } else {
            float late[TF32X3 ? 2 : 1][TF32X3 ? WARP_N / 8 * 4 : 1] = {}; // tensor cores cut off what long sums lose
#pragma unroll
            for (int k = 0; k < 4; ++k) {
                Factors<4> fx[2];
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    float v[4];
                    loadBlocks(v, xs + unitAt(row + i * 16 + lane % 16, k * 2 + lane / 16));
#pragma unroll
                    for (int e = 0; e < 4; ++e)
                        fx[i].set(e, v[e]);
                }
#pragma unroll
                for (int j = 0; j < WARP_N / 16; ++j) {
                    float v[4];
                    loadBlocks(v, fs + unitAt(column + j * 16 + lane / 16 * 8 + lane % 8, k * 2 + lane / 8 % 2));
#pragma unroll
                    for (int h = 0; h < 2; ++h) {
                        Factors<2> b;
                        b.set(0, v[h * 2]);
                        b.set(1, v[h * 2 + 1]);
#pragma unroll
                        for (int i = 0; i < 2; ++i) {
                            float* const to =
                                TF32X3 ? &late[TF32X3 ? i : 0][TF32X3 ? j * 8 + h * 4 : 0] : &d[i][j * 8 + h * 4];
                            multiply(*reinterpret_cast<float(*)[4]>(to), fx[i], b);
                        }
                    }
                }
            }
            if constexpr (TF32X3) {
#pragma unroll
                for (int i = 0; i < 2; ++i)
#pragma unroll
                    for (int e = 0; e < WARP_N / 2; ++e)
                        d[i][e] += late[i][e];
            }
        }
    }
    TW_INLINE void put(u32 to, int lane) const
    {
#pragma unroll
        for (int i = 0; i < 2; ++i)
#pragma unroll
            for (int j = 0; j < WARP_N / 8; ++j)
#pragma unroll
                for (int h = 0; h < 2; ++h)
                    storeTwo(to + ((row + i * 16 + h * 8 + lane / 4) * PITCH + column + j * 8 + lane % 4 * 2) * 4,
                             d[i][j * 4 + h * 2], d[i][j * 4 + h * 2 + 1]);
    }
};

// Four columns of y, or as many as there are.
TW_INLINE float valueOf(f16 v)
{
    return halfToFloat(v);
}
TW_INLINE float valueOf(float v)
{
    return v;
}
TW_INLINE void addFour(float (&v)[4], Element const* from, int left)
{
    if constexpr (ALIGNED && IS_HALF) {
        uint2 const u = *reinterpret_cast<uint2 const*>(from);
        v[0] += lowHalf(u.x);
        v[1] += highHalf(u.x);
        v[2] += lowHalf(u.y);
        v[3] += highHalf(u.y);
    } else {
#pragma unroll
        for (int e = 0; e < 4; ++e)
            if (ALIGNED || e < left)
                v[e] += valueOf(from[e]);
    }
}
TW_INLINE void putFour(Element* to, float const (&v)[4], int left)
{
    if constexpr (IS_HALF) {
        uint2 const u{packHalves(v[0], v[1]), packHalves(v[2], v[3])};
        if constexpr (ALIGNED) {
            *reinterpret_cast<uint2*>(to) = u;
        } else {
            u32 const both[2] = {u.x, u.y};
#pragma unroll
            for (int e = 0; e < 4; ++e)
                if (e < left)
                    reinterpret_cast<u16*>(to)[e] = u16(both[e / 2] >> e % 2 * 16);
        }
    } else if constexpr (ALIGNED) {
        *reinterpret_cast<float4*>(to) = make_float4(v[0], v[1], v[2], v[3]);
    } else {
#pragma unroll
        for (int e = 0; e < 4; ++e)
            if (e < left)
                reinterpret_cast<float*>(to)[e] = v[e];
    }
}

TW_KERNEL __launch_bounds__(THREADS, BLOCKS_PER_SM) convolve(const __grid_constant__ Args a)
{
    extern __shared__ __align__(128) u8 raw[];
    u32 const base = sharedAddress(raw);
    int const tid = threadIdx.x, warp = tid / 32, lane = tid % 32;
    int const split = splitCount(), rank = splitRank();
    int const m0 = blockIdx.x / split * TILE_M, n0 = blockIdx.y * TILE_N;
    int const phaseNumber = blockIdx.z / a.groups, group = blockIdx.z - phaseNumber * a.groups;
    int const begin = int(i64(a.stepsK) * rank / split), end = int(i64(a.stepsK) * (rank + 1) / split);
    Element const* const x = a.x + i64(group) * a.channels;
    Element const* const filters = a.filters + i64(blockIdx.z) * a.n * a.paddedK;
    Phase const phase(a, phaseNumber);
    releaseDependents();

    // x: each thread has one place in k and PIXELS rows.
    constexpr int PER_ROW = 32 / VECTOR, ROWS_AT_ONCE = VECTOR == 1 ? 0 : THREADS / PER_ROW;
    constexpr int PIXELS = VECTOR == 1 ? 1 : TILE_M / (THREADS / PER_ROW),
                  LOADS = VECTOR == 1 ? TILE_M * 32 / THREADS : 1;
    int const row0 = VECTOR == 1 ? tid % TILE_M : tid / PER_ROW,
              k0 = VECTOR == 1 ? tid / TILE_M * LOADS : tid % PER_ROW * VECTOR;
    Pixel pixel[PIXELS];
#pragma unroll
    for (int i = 0; i < PIXELS; ++i)
        pixel[i].set(a, phase, m0 + row0 + i * ROWS_AT_ONCE);
    Taps taps(a, begin * 32 + k0);

    constexpr int UNITS = ROW_BYTES / 16, UNIT = 16 / BYTES; // of a row of filters
    auto loadFilters = [&](int step, u32 to) {
#pragma unroll
        for (int i = 0; i < (TILE_N * UNITS + THREADS - 1) / THREADS; ++i) {
            int const at = tid + i * THREADS, r = at / UNITS, u = at % UNITS;
            if (TILE_N * UNITS % THREADS == 0 || at < TILE_N * UNITS)
                copyAsync16(to + unitAt(r, u), filters + i64(n0 + r) * a.paddedK + step * 32 + u * UNIT, n0 + r < a.n);
        }
    };
    auto placeIn = [&](int row, int k) { return unitAt(row, k / UNIT) + k % UNIT * BYTES; };
    auto copyX = [&](u32 to) {
        if constexpr (VECTOR > 1) {
            Step const step(a, phase, taps);
            Element const* const from = x + step.at;
#pragma unroll
            for (int i = 0; i < PIXELS; ++i)
                copyPart(to + placeIn(row0 + i * ROWS_AT_ONCE, k0), from + pixel[i].at, step.bytesFor(a, pixel[i]));
        } else {
            Taps t = taps;
#pragma unroll 4
            for (int i = 0; i < LOADS; ++i) {
                Step const step(a, phase, t);
                copyPart(to + placeIn(row0, k0 + i), x + step.at + pixel[0].at, step.bytesFor(a, pixel[0]));
                t.move(a, 1);
            }
        }
        taps.move(a, 32);
    };

    // The first steps; filters are constant, x may belong to the kernel before.
#pragma unroll 1
    for (int s = 0; s < STAGES - 1; ++s)
        if (begin + s < end)
            loadFilters(begin + s, base + s * STAGE_BYTES + X_BYTES);
    waitForPrevious();
#pragma unroll 1
    for (int s = 0; s < STAGES - 1; ++s) {
        if (begin + s < end)
            copyX(base + s * STAGE_BYTES);
        copyCommit();
    }
    Sums sums(warp);
    int stage = 0, ahead = STAGES - 1;
    for (int step = begin; step < end; ++step) {
        copyWait<STAGES - 2>();
        __syncthreads();
        if (step + STAGES - 1 < end) {
            u32 const next = base + ahead * STAGE_BYTES;
            loadFilters(step + STAGES - 1, next + X_BYTES);
            copyX(next);
        }
        copyCommit();
        u32 const xs = base + stage * STAGE_BYTES;
        sums.add(xs, xs + X_BYTES, lane);
        if (++stage == STAGES)
            stage = 0;
        if (++ahead == STAGES)
            ahead = 0;
    }
    copyWait<0>();
    __syncthreads(); // all stages are read
    sums.put(base, lane);
    if (split > 1)
        splitSync();
    else
        __syncthreads();

    // Each block writes its part of the tile's rows: a thread four columns of a row at a time.
    constexpr int ACROSS = TILE_N / 4, ROWS = THREADS / ACROSS;
    int const rows = TILE_M / split, row1 = tid / ACROSS, column = n0 + tid % ACROSS * 4, left = a.n - column;
    int const first = m0 + rank * rows, last = min(first + rows, a.m), filter = group * a.n + column;
    float bias[4] = {};
#pragma unroll
    for (int e = 0; e < 4; ++e)
        if (a.bias && e < left)
            bias[e] = a.bias[filter + e];
#pragma unroll 1
    for (int m = first + row1; m < last; m += ROWS) {
        Position const q(a, m);
        int const d = q.d * a.axes[0].phases + phase.d, h = q.h * a.axes[1].phases + phase.h,
                  w = q.w * a.axes[2].phases + phase.w;
        if (left <= 0 || d >= a.axes[0].out || h >= a.axes[1].out || w >= a.axes[2].out)
            continue;
        i64 const pixelY = ((i64(q.image) * a.axes[0].out + d) * a.axes[1].out + h) * a.axes[2].out + w;
        u32 const from = base + ((m - m0) * PITCH + tid % ACROSS * 4) * 4;
        float v[4] = {bias[0], bias[1], bias[2], bias[3]};
        for (int r = 0; r < split; ++r) {
            float4 const part = split > 1 ? loadFourOf(addressIn(from, r)) : loadFour(from);
            v[0] += part.x;
            v[1] += part.y;
            v[2] += part.z;
            v[3] += part.w;
        }
        if (a.residual)
            addFour(v, a.residual + pixelY * a.pixelResidual + filter, left);
#pragma unroll
        for (int e = 0; e < 4; ++e)
            v[e] = activate(v[e]);
        putFour(a.y + pixelY * a.pixelY + filter, v, left);
    }
    if (split > 1) {
        __syncwarp();
        splitSync(); // others have read this block's sums
    }
}

} // namespace tw::cuda::conv_nd
