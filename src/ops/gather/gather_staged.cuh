// SPDX-License-Identifier: Apache-2.0
// A block for each row of x, which waits in shared memory for its indices.
//   type Element; int kThreads
#pragma once

#include "kernels/cuda/common/prelude.cuh"
#include "ops/gather/gather_params.h"

namespace tw::ops::gather {

constexpr int kPack = 16 / sizeof(Element), kPerStore = 8 / sizeof(Element), kStep = kThreads;
typedef Pack<u32, 4> Whole;
extern __shared__ Whole shared[];
TW_KERNEL __launch_bounds__(kThreads) gather_staged(const __grid_constant__ StagedParams p)
{
    waitForPrevious();
    releaseDependents();
    Element* const s = reinterpret_cast<Element*>(shared);
    Element const* const x = static_cast<Element const*>(p.x) + i64(blockIdx.x) * p.length;
    Element* const y = static_cast<Element*>(p.y) + i64(blockIdx.x) * p.count;
    i32 const* const j = static_cast<i32 const*>(p.j);
    int const length = int(p.length), count = int(p.count),
              aligned = reinterpret_cast<u64>(x) % 16 == 0 ? length / kPack : 0;
    for (int begin = threadIdx.x; begin < aligned; begin += 4 * kStep) {
        Whole v[4];
#pragma unroll
        for (int k = 0; k < 4; ++k)
            if (begin + k * kStep < aligned)
                v[k] = reinterpret_cast<Whole const*>(x)[begin + k * kStep];
#pragma unroll
        for (int k = 0; k < 4; ++k)
            if (begin + k * kStep < aligned)
                shared[begin + k * kStep] = v[k];
    }
#pragma unroll 8
    for (int i = aligned * kPack + threadIdx.x; i < length; i += kStep)
        s[i] = x[i];
    __syncthreads();
    auto taken = [&](i32 index) {
        index = index < 0 ? index + length : index;
        return index >= 0 && index < length ? s[index] : Element{};
    };
    bool const packs = reinterpret_cast<u64>(y) % 8 == 0;
    int const whole = packs ? count / kPerStore : 0;
    for (int begin = threadIdx.x; begin < whole; begin += 2 * kStep) {
        i32 index[2][kPerStore];
#pragma unroll
        for (int k = 0; k < 2; ++k)
#pragma unroll
            for (int e = 0; e < kPerStore; ++e)
                if (begin + k * kStep < whole)
                    index[k][e] = j[(begin + k * kStep) * kPerStore + e];
#pragma unroll
        for (int k = 0; k < 2; ++k) {
            if (begin + k * kStep >= whole)
                break;
            Pack<Element, kPerStore> out;
#pragma unroll
            for (int e = 0; e < kPerStore; ++e)
                out.v[e] = taken(index[k][e]);
            reinterpret_cast<Pack<Element, kPerStore>*>(y)[begin + k * kStep] = out;
        }
    }
#pragma unroll 4
    for (int i = whole * kPerStore + threadIdx.x; i < count; i += kStep)
        y[i] = taken(j[i]);
}

} // namespace tw::ops::gather
