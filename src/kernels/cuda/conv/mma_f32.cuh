// SPDX-License-Identifier: Apache-2.0
// Convolutions of FP32. After mma_f32_tf32.cuh or mma_f32_exact.cuh, which have Sums.
#pragma once

#include "kernels/cuda/conv/mma_f32_tiles.cuh"

namespace tw::cuda::conv_f32 {

constexpr u32 SUMS_BYTES = TILE_M * PITCH * 4; // of a slice

// Four columns of y, or as many as there are.
TW_INLINE float4 takeFour(float const* from, int left)
{
    if constexpr (ALIGNED)
        return *reinterpret_cast<float4 const*>(from);
    float4 v = make_float4(from[0], 0, 0, 0);
    if (left > 1)
        v.y = from[1];
    if (left > 2)
        v.z = from[2];
    if (left > 3)
        v.w = from[3];
    return v;
}
TW_INLINE void putFour(float* to, float4 const& v, int left)
{
    if constexpr (ALIGNED) {
        *reinterpret_cast<float4*>(to) = v;
        return;
    }
    to[0] = v.x;
    if (left > 1)
        to[1] = v.y;
    if (left > 2)
        to[2] = v.z;
    if (left > 3)
        to[3] = v.w;
}
TW_INLINE void putFour(u32 at, float4 const& v)
{
    asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(at), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w)
                 : "memory");
}
TW_INLINE void addFour(float4& v, float4 const& x)
{
    v.x += x.x;
    v.y += x.y;
    v.z += x.z;
    v.w += x.w;
}

TW_KERNEL __launch_bounds__(THREADS, BLOCKS_PER_SM) convolve(const __grid_constant__ Args a)
{
    extern __shared__ __align__(128) u8 raw[];
    u32 const base = sharedAddress(raw);
    int const tid = threadIdx.x, warp = tid / 32, lane = tid % 32;
    int const split = splitCount(), rank = splitRank();
    int const m0 = blockIdx.x / split * TILE_M, n0 = blockIdx.y * TILE_N, group = blockIdx.z;
    int const begin = int(i64(a.stepsK) * rank / split), end = int(i64(a.stepsK) * (rank + 1) / split);
    float const* const x = a.x + i64(group) * a.groupX;
    float const* const filters = a.filters + i64(group) * a.n * a.paddedK;
    releaseDependents();

    // x: each thread has one place in k and PIXELS rows.
    constexpr int PER_ROW = 32 / VECTOR, STEP = VECTOR == 1 ? 0 : THREADS / PER_ROW;
    constexpr int PIXELS = VECTOR == 1 ? 1 : TILE_M / (THREADS / PER_ROW),
                  LOADS = VECTOR == 1 ? TILE_M * 32 / THREADS : 1;
    int const row0 = VECTOR == 1 ? tid % TILE_M : tid / PER_ROW,
              k0 = VECTOR == 1 ? tid / TILE_M * LOADS : tid % PER_ROW * VECTOR;
    Pixel pixel[PIXELS];
#pragma unroll
    for (int i = 0; i < PIXELS; ++i)
        pixel[i] = pixelAt(a, m0 + row0 + i * STEP);
    Taps taps(a, begin * 32 + k0);

    auto loadFilters = [&](int step, u32 to) {
#pragma unroll
        for (int i = 0; i < TILE_N * 8 / THREADS; ++i) {
            int const at = tid + i * THREADS, r = at / 8, u = at % 8;
            copyAsync16(to + unitAt(r, u), filters + i64(n0 + r) * a.paddedK + step * 32 + u * 4, n0 + r < a.n);
        }
    };
    auto copyX = [&](u32 to) {
        if constexpr (VECTOR > 1) {
            Step const step(a, taps);
            float const* const from = x + step.at;
#pragma unroll
            for (int i = 0; i < PIXELS; ++i) {
                bool const inside = step.isInside(a, pixel[i]);
                u32 const at = to + unitAt(row0 + i * STEP, k0 / 4) + k0 % 4 * 4;
                if constexpr (VECTOR == 4)
                    copyAsync16(at, from + pixel[i].at, inside);
                else
                    copyAsync8(at, from + pixel[i].at, inside);
            }
        } else {
            Taps t = taps;
#pragma unroll
            for (int i = 0; i < LOADS; ++i) {
                Step const step(a, t);
                copyAsync4(to + unitAt(row0, (k0 + i) / 4) + (k0 + i) % 4 * 4, x + step.at + pixel[0].at,
                           step.isInside(a, pixel[0]));
                t.next(a);
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
#if TW_TF32
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
        u8 const* const xs = raw + stage * STAGE_BYTES;
        sums.add(xs, xs + X_BYTES, lane);
        if (++stage == STAGES)
            stage = 0;
        if (++ahead == STAGES)
            ahead = 0;
    }
#else
    // Registers are filled while others are multiplied, over the end of a step too: its last part is in registers when
    // all warps meet and the stage is given away.
    int stage = STAGES - 1;
    auto nextStage = [&](int step) { // that of this step is ready
        copyWait<STAGES - 2>();
        __syncthreads();
        if (step + STAGES - 1 < end) {
            u32 const to = base + stage * STAGE_BYTES;
            loadFilters(step + STAGES - 1, to + X_BYTES);
            copyX(to);
        }
        copyCommit();
        if (++stage == STAGES)
            stage = 0;
    };
    Sums::Part even, odd;
    nextStage(begin);
    sums.take(even, raw + stage * STAGE_BYTES, 0);
#pragma unroll 1
    for (int step = begin; step < end; ++step)
#pragma unroll 1
        for (int unit = 0; unit < 8 / SLICES; unit += 2) {
            sums.take(odd, raw + stage * STAGE_BYTES, unit + 1);
            sums.add(even);
            bool const isLast = unit + 2 == 8 / SLICES;
            if (isLast)
                nextStage(step + 1);
            sums.take(even, raw + stage * STAGE_BYTES, isLast ? 0 : unit + 2); // after the last step: not used
            sums.add(odd);
        }
#endif
    copyWait<0>();

    // Each block writes its part of the tile's rows: a thread four columns, of up to four rows at once.
    constexpr int ACROSS = TILE_N / 4, ROWS = THREADS / ACROSS, AT_ONCE = 4;
    int const rows = TILE_M / split, row1 = tid / ACROSS, column = n0 + tid % ACROSS * 4, left = a.n - column;
    int const first = m0 + rank * rows, last = min(first + rows, a.m);
    float4 bias = make_float4(0, 0, 0, 0), add[AT_ONCE];
    if (a.bias && left > 0)
        bias = takeFour(a.bias + group * a.groupBias + column, left);
    i64 const base0 = i64(group / a.groupsAcross) * a.groupRowY + i64(group % a.groupsAcross) * a.groupY + column;
    auto fetch = [&](int m) {
#pragma unroll
        for (int i = 0; i < AT_ONCE; ++i) {
            add[i] = make_float4(0, 0, 0, 0);
            if (m + i * ROWS < last && left > 0)
                add[i] = takeFour(a.residual + base0 + i64(m + i * ROWS) * int(a.ldResidual), left);
        }
    };
#pragma unroll
    for (int i = 0; i < AT_ONCE; ++i)
        add[i] = make_float4(0, 0, 0, 0);
    if (a.residual)
        fetch(first + row1);
    __syncthreads(); // all stages are read
    sums.put(base + warp / WARPS * SUMS_BYTES, lane);
    __syncthreads();
    if (split > 1) {
        // Slices first, in place: what others read is little.
        if constexpr (SLICES > 1) {
            u32 at = base + (row1 * PITCH + tid % ACROSS * 4) * 4;
#pragma unroll 2
            for (int r = row1; r < TILE_M; r += ROWS, at += ROWS * PITCH * 4) {
                float4 v = loadFour(at);
#pragma unroll
                for (int s = 1; s < SLICES; ++s)
                    addFour(v, loadFour(at + s * SUMS_BYTES));
                putFour(at, v);
            }
        }
        splitSync();
    }
    u32 from = base + ((rank * rows + row1) * PITCH + tid % ACROSS * 4) * 4;
#pragma unroll 1
    for (int m = first + row1; m < last; m += ROWS * AT_ONCE, from += ROWS * AT_ONCE * PITCH * 4) {
        float4 v[AT_ONCE];
#pragma unroll
        for (int i = 0; i < AT_ONCE; ++i)
            v[i] = bias;
        if (split > 1) {
#pragma unroll 1
            for (int r = 0; r < split; r += 2) {
                u32 const first = addressIn(from, r), second = addressIn(from, r + 1);
#pragma unroll
                for (int i = 0; i < AT_ONCE; ++i)
                    if (m + i * ROWS < last) {
                        float4 const other = loadFourOf(second + i * ROWS * PITCH * 4);
                        addFour(v[i], loadFourOf(first + i * ROWS * PITCH * 4));
                        addFour(v[i], other);
                    }
            }
        } else {
#pragma unroll
            for (int i = 0; i < AT_ONCE; ++i)
                if (m + i * ROWS < last)
#pragma unroll
                    for (int s = 0; s < SLICES; ++s)
                        addFour(v[i], loadFour(from + i * ROWS * PITCH * 4 + s * SUMS_BYTES));
        }
#pragma unroll
        for (int i = 0; i < AT_ONCE; ++i) {
            int const row = m + i * ROWS;
            if (row >= last || left <= 0)
                continue;
            addFour(v[i], add[i]);
            v[i].x = activate(v[i].x);
            v[i].y = activate(v[i].y);
            v[i].z = activate(v[i].z);
            v[i].w = activate(v[i].w);
            float* to = a.y + base0 + i64(row) * int(a.ldy);
            if (a.gapY)
                to += i64(divide(row, a.outW)) * a.gapY;
            putFour(to, v[i], left);
        }
        if (a.residual)
            fetch(m + ROWS * AT_ONCE);
    }
    __syncwarp();
    if (split > 1)
        splitSync(); // others have read this block's sums
}

} // namespace tw::cuda::conv_f32
