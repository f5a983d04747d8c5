// SPDX-License-Identifier: Apache-2.0
// V channels as they lie in memory, FP32: at most 4.
//   int V
#pragma once

#include "kernels/cuda/common/matrix.cuh"

namespace tw::ops::conv_f16 {

using T = float;
struct alignas(V * 4) Few
{
    float v[V];
};
TW_INLINE void unpack(Few const& f, float (&v)[V])
{
#pragma unroll
    for (int i = 0; i < V; ++i)
        v[i] = f.v[i];
}
TW_INLINE Few packed(float const (&v)[V])
{
    Few out;
#pragma unroll
    for (int i = 0; i < V; ++i)
        out.v[i] = v[i];
    return out;
}

} // namespace tw::ops::conv_f16
