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

TW_INLINE float stepOf(Tensors const& p)
{
    if constexpr (kIntegers)
        return __ldg(p.scale);
    else
        return 1;
}
TW_INLINE i8 integerOf(T y, float step)
{
    return store<i8>(stepsOf(load<float>(y), step));
}

} // namespace tw::ops::layer_norm
