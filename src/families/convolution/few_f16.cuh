// SPDX-License-Identifier: Apache-2.0
// V channels as they lie in memory, FP16: 4 or 8.
//   int V
#pragma once

#include "kernels/cuda/common/matrix.cuh"

namespace tw::ops::conv_f16 {

using T = Narrow;
struct alignas(V * 2) Few
{
    u32 v[V / 2];
};
TW_INLINE void unpack(Few const& h, float (&v)[V])
{
#pragma unroll
    for (int i = 0; i < V / 2; ++i) {
        v[i * 2] = lowHalf(h.v[i]);
        v[i * 2 + 1] = highHalf(h.v[i]);
    }
}
TW_INLINE Few packed(float const (&v)[V])
{
    Few out;
#pragma unroll
    for (int i = 0; i < V / 2; ++i)
        out.v[i] = packHalves(v[i * 2], v[i * 2 + 1]);
    return out;
}

} // namespace tw::ops::conv_f16
