// SPDX-License-Identifier: Apache-2.0
// Sums of convolutions over two axes to pixels of FP32: slices and blocks that share a tile add up through shared memory.
// After window_sums_*.cuh.
//   bool ALIGNED; float epilogue(float v, float r)
#pragma once

#include "kernels/cuda/mma/windows.cuh"

namespace tw::cuda::product {

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

struct End
{
    u32 base;
    TW_INLINE explicit End(u32 base) : base(base) {}
    TW_INLINE void begin(Args const&, Windows const&) const {}
    TW_INLINE void put() const {}
    TW_INLINE void write(Args const& a, Windows const& source, Sums const& sums, Sums::Values const& values) const
    {
        int const split = source.split, rank = source.rank, m0 = source.m0, n0 = source.n0, group = source.phase.group,
                  tid = threadIdx.x;
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
        sums.put(values, base + sums.slice * SUMS_BYTES);
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
                v[i].x = epilogue(v[i].x, add[i].x);
                v[i].y = epilogue(v[i].y, add[i].y);
                v[i].z = epilogue(v[i].z, add[i].z);
                v[i].w = epilogue(v[i].w, add[i].w);
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
};

} // namespace tw::cuda::product
