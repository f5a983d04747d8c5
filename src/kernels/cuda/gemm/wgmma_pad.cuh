// SPDX-License-Identifier: Apache-2.0
// FP16 rows of whole 16 bytes.
#pragma once

#include "kernels/cuda/common/hopper.cuh"
#include "kernels/cuda/gemm/wgmma_params.h"

namespace tw::cuda::gemm_f16 {

TW_KERNEL __launch_bounds__(256) pad(const __grid_constant__ PadArgs p)
{
    constexpr int COLUMNS = 512, WORDS = COLUMNS / 64;
    i64 const warp = i64(blockIdx.x) * 8 + threadIdx.x / 32, warpsA = p.a.rows * ((p.a.padded + COLUMNS - 1) / COLUMNS);
    bool const isB = warp >= warpsA;
    int const columns = isB ? p.b.columns : p.a.columns, padded = isB ? p.b.padded : p.a.padded;
    int const parts = (padded + COLUMNS - 1) / COLUMNS, lane = threadIdx.x % 32;
    i64 const part = isB ? warp - warpsA : warp, row = part / parts;
    if (row >= (isB ? p.b.rows : p.a.rows))
        return;
    Narrow const* const from = static_cast<Narrow const*>(isB ? p.b.from : p.a.from) + row * columns;
    Narrow* const to = static_cast<Narrow*>(isB ? p.b.to : p.a.to) + row * padded;
    int const column0 = int(part - row * parts) * COLUMNS, odd = int(u64(from) / 2 % 2),
              first = column0 - odd + lane * 2;
    waitForPrevious();
    releaseDependents();
    u32 v[WORDS + 1];
#pragma unroll
    for (int i = 0; i <= WORDS; ++i) {
        int const c = first + i * 64;
        v[i] = c + 1 < columns ? *reinterpret_cast<u32 const*>(from + c) : c < columns ? from[c].bits : 0;
    }
#pragma unroll
    for (int i = 0; i < WORDS; ++i) {
        int const c = column0 + i * 64 + lane * 2;
        u32 const next = __shfl_sync(~0u, lane == 0 ? v[i + 1] : v[i], (lane + 1) % 32);
        if (c < padded)
            *reinterpret_cast<u32*>(to + c) = odd ? v[i] >> 16 | next << 16 : v[i];
    }
}

} // namespace tw::cuda::gemm_f16
