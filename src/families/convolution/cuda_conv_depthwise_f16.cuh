// SPDX-License-Identifier: Apache-2.0
// Each thread has V channels of COLUMNS outputs of a row. Of a row of x it holds what those need of it.
// After epilogue() and few_f16.cuh or few_f32.cuh.
//   int R, S, STRIDE, DILATION, COLUMNS, V, THREADS; bool RESIDUAL
#pragma once

#include "families/convolution/cuda_conv_depthwise_tile_params.h"
#include "kernels/cuda/common/matrix.cuh"

namespace tw::ops::conv_f16 {

constexpr int SEEN = (COLUMNS - 1) * STRIDE + (S - 1) * DILATION + 1;
TW_INLINE u32 divide(u32 n, Div const& v)
{
    return (__umulhi(n, v.m) + n) >> v.s;
}
TW_INLINE Few take(T const* from)
{
    return *reinterpret_cast<Few const*>(from);
}
TW_KERNEL __launch_bounds__(THREADS) depthwise(const __grid_constant__ RowParams p)
{
    waitForPrevious();
    releaseDependents();
    u32 const i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= p.count)
        return;
    u32 const pixels = divide(i, p.vectors), rows = divide(pixels, p.wide), image = divide(rows, p.tall);
    int const c = int(i - pixels * u32(p.vectors.d)) * V, q0 = int(pixels - rows * u32(p.wide.d)) * COLUMNS;
    int const o = int(rows - image * u32(p.tall.d)), h0 = o * p.strideH - p.padH, w0 = q0 * STRIDE - p.padW;
    T const* const x = static_cast<T const*>(p.x) + i64(image) * p.h * p.w * p.pixelX + c;
    T const* const filters = static_cast<T const*>(p.filters) + c;
    i64 const step = i64(p.vectors.d) * V;
    float4 const* const bias = reinterpret_cast<float4 const*>(static_cast<float const*>(p.bias) + c);
    float sum[COLUMNS][V];
#pragma unroll
    for (int e = 0; e < V; e += 4) {
        float4 const b = bias[e / 4];
#pragma unroll
        for (int j = 0; j < COLUMNS; ++j) {
            sum[j][e] = b.x;
            sum[j][e + 1] = b.y;
            sum[j][e + 2] = b.z;
            sum[j][e + 3] = b.w;
        }
    }
#pragma unroll
    for (int r = 0; r < R; ++r) {
        int const h = h0 + r * p.dilationH;
        bool const inside = u32(h) < u32(p.h);
        T const* const row = x + i64(h) * p.w * p.pixelX;
        Few raw[SEEN];
#pragma unroll
        for (int j = 0; j < SEEN; ++j) {
            raw[j] = Few{};
            if (inside && u32(w0 + j) < u32(p.w))
                raw[j] = take(row + i64(w0 + j) * p.pixelX);
        }
        float seen[SEEN][V];
#pragma unroll
        for (int j = 0; j < SEEN; ++j)
            unpack(raw[j], seen[j]);
#pragma unroll
        for (int s = 0; s < S; ++s) {
            float f[V];
            unpack(take(filters + (r * S + s) * step), f);
#pragma unroll
            for (int j = 0; j < COLUMNS; ++j)
#pragma unroll
                for (int e = 0; e < V; ++e)
                    sum[j][e] = fmaf(seen[j * STRIDE + s * DILATION][e], f[e], sum[j][e]);
        }
    }
    i64 const first = i64(rows) * p.outW + q0;
#pragma unroll
    for (int j = 0; j < COLUMNS; ++j) {
        if (q0 + j >= p.outW)
            break;
        float r[V] = {};
        if constexpr (RESIDUAL)
            unpack(take(static_cast<T const*>(p.residual) + (first + j) * p.pixelResidual + c), r);
#pragma unroll
        for (int e = 0; e < V; ++e)
            sum[j][e] = epilogue(sum[j][e], r[e]);
        *reinterpret_cast<Few*>(static_cast<T*>(p.y) + (first + j) * p.pixelY + c) = packed(sum[j]);
    }
}

} // namespace tw::ops::conv_f16
