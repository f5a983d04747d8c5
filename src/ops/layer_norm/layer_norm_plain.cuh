// SPDX-License-Identifier: Apache-2.0
// A block for each set, which it reads three times.
#pragma once

#include "ops/layer_norm/layer_norm.cuh"

namespace tw::ops::layer_norm {

TW_KERNEL layer_norm(const __grid_constant__ AnyParams p)
{
    __shared__ float scratch[32];
    off set[2], place[2];
    locate<8>(p.sets, idx(blockIdx.x), set);
    T const* const x = static_cast<T const*>(p.x) + set[0];
    float mean = 0, squares = 0;
    if constexpr (!kRms) {
        for (idx i = threadIdx.x; i < p.n; i += blockDim.x) {
            locate<8>(p.within, i, place);
            mean += load<float>(x[place[0]]);
        }
        mean = blockReduce(mean, 0.0f, scratch, sum) / float(p.n);
    }
    for (idx i = threadIdx.x; i < p.n; i += blockDim.x) {
        locate<8>(p.within, i, place);
        float const v = load<float>(x[place[0]]) - mean;
        squares += v * v;
    }
    Steps const steps = stepsOf(p);
    float const scale = scaleOf(blockReduce(squares, 0.0f, scratch, sum), float(p.n));
    for (idx i = threadIdx.x; i < p.n; i += blockDim.x) {
        locate<8>(p.within, i, place);
        off const weight = set[1] + place[1];
        float const gamma = kGamma ? load<float>(static_cast<T const*>(p.gamma)[weight]) : 1;
        float const beta = kBeta ? load<float>(static_cast<T const*>(p.beta)[weight]) : 0;
        T const y = finished((load<float>(x[place[0]]) - mean) * scale, gamma, beta);
        if constexpr (kFloats)
            static_cast<T*>(p.y)[set[0] + place[0]] = y;
        if constexpr (kIntegers)
            static_cast<i8*>(p.integers)[set[0] + place[0]] = store<i8>(steps(load<float>(y)));
    }
}

} // namespace tw::ops::layer_norm
