// SPDX-License-Identifier: Apache-2.0
// What kernels of norms share: gamma, beta and the end.
//   type T; bool kGamma, kBeta, kRms, kFloats, kIntegers (what is stored); float kEpsilon; T activate(T)
#pragma once

#include "kernels/cuda/common/prelude.cuh"
#include "kernels/cuda/common/steps.cuh"
#include "ops/layer_norm/layer_norm_params.h"

namespace tw::ops::layer_norm {

TW_INLINE float sum(float a, float b)
{
    return a + b;
}
TW_INLINE float scaleOf(float squares, float n)
{
    return 1 / sqrt(squares / n + kEpsilon);
}
TW_INLINE T finished(float normal, float gamma, float beta)
{
    float v = normal;
    if constexpr (kGamma)
        v *= gamma;
    if constexpr (kBeta)
        v += beta;
    return store<T>(activate(v));
}

TW_INLINE Steps stepsOf(Tensors const& p)
{
    return Steps(kIntegers ? __ldg(p.scale) : 1.0f);
}

} // namespace tw::ops::layer_norm
