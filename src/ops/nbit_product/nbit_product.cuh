// SPDX-License-Identifier: Apache-2.0
// A warp for each number of y.
//   type T (x, bias, y), S (scales, zeros); number kBits
#pragma once

#include "kernels/cuda/common/prelude.cuh"
#include "ops/nbit_product/nbit_product_params.h"

namespace tw::ops::nbit_product {

TW_KERNEL product(const __grid_constant__ Params p)
{
    waitForPrevious();
    releaseDependents();
    idx const warp = threadIndex() / 32, lane = threadIdx.x % 32;
    if (warp >= p.rows * p.n) // all of a warp or none
        return;
    idx const row = warp / idx(p.n), j = warp - row * idx(p.n);
    T const* const x = static_cast<T const*>(p.x) + row * idx(p.k);
    float sum = 0;
    for (idx at = lane; at < idx(p.k); at += 32) {
        idx const block = at / idx(p.block), in = (at - block * idx(p.block)) * kBits;
        u32 const word = p.w[(j * idx(p.blocks) + block) * idx(p.words) + in / 32];
        float const q = float(word >> (in % 32) & ((1U << kBits) - 1));
        idx group = block;
        if (p.groups) {
            i32 const g = p.groups[at];
            group = g < 0 ? 0 : idx(g) < idx(p.blocks) ? idx(g) : idx(p.blocks) - 1;
        }
        group += j * idx(p.blocks);
        float const zero = p.zeros ? load<float>(static_cast<S const*>(p.zeros)[group]) : float(1 << (kBits - 1));
        sum += load<float>(x[at]) * (load<float>(static_cast<S const*>(p.scales)[group]) * (q - zero));
    }
    for (int apart = 16; apart > 0; apart /= 2)
        sum += __shfl_xor_sync(0xffffffffU, sum, apart);
    if (lane == 0)
        static_cast<T*>(p.y)[warp] = store<T>(sum + (p.bias ? load<float>(static_cast<T const*>(p.bias)[j]) : 0.F));
}

} // namespace tw::ops::nbit_product
