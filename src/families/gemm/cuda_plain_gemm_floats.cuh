// SPDX-License-Identifier: Apache-2.0
// Products of floats: y = f(sum + bias + residual), gated or not.
//   bool GATED; type T; float epilogue(float v, float r)
#pragma once

#include "families/gemm/cuda_plain_gemm_params.h"
#include "kernels/cuda/common/plain_floats.cuh"

namespace tw::ops {

// `sum`: of the element `at` of y, and of its partner among the columns behind the n-th.
template <int HALVES>
TW_INLINE void finish(PlainGemmParams const& p, i64 at, idx column, float const (&sum)[HALVES])
{
    float v = sum[0];
    if (p.bias)
        v += load<float>(static_cast<T const*>(p.bias)[column]);
    if constexpr (HALVES == 2) {
        float u = sum[1];
        if (p.bias)
            u += load<float>(static_cast<T const*>(p.bias)[idx(p.n) + column]);
        static_cast<T*>(p.y)[at] = store<T>(epilogue(v, 0) * u);
    } else {
        float const r = p.residual ? load<float>(static_cast<T const*>(p.residual)[at]) : 0;
        static_cast<T*>(p.y)[at] = store<T>(epilogue(v, r));
    }
}

} // namespace tw::ops
