// SPDX-License-Identifier: Apache-2.0
// One thread a slice where neighbours lie beside each other (inner > 1), else a warp or a block.
//   type T; bool LOG: of the result
#pragma once

#include "kernels/cuda/common/prelude.cuh"
#include "ops/softmax/softmax_params.h"
#include "ops/softmax/softmax_steps.cuh"

namespace tw::ops::softmax {

TW_INLINE off begin(Params const& p, idx slice)
{
    idx const o = divide(slice, p.inner);
    return off(o * idx(p.n) * idx(p.inner.d) + (slice - o * idx(p.inner.d)));
}
TW_INLINE float finished(float d, float s)
{
    return LOG ? d - logf(s) : exp(d) / s;
}
TW_KERNEL softmax_threads(const __grid_constant__ Params p)
{
    idx const slice = threadIndex();
    if (slice >= p.slices)
        return;
    off const step = off(p.inner.d);
    T const* const x = static_cast<T const*>(p.x) + begin(p, slice);
    T* const y = static_cast<T*>(p.y) + begin(p, slice);
    float m = lowest(), s = 0;
    for (idx j = 0; j < p.n; ++j)
        m = larger(m, load<float>(x[j * step]));
    for (idx j = 0; j < p.n; ++j)
        s += exp(load<float>(x[j * step]) - m);
    for (idx j = 0; j < p.n; ++j)
        y[j * step] = store<T>(finished(load<float>(x[j * step]) - m, s));
}
TW_KERNEL softmax_warps(const __grid_constant__ Params p)
{
    idx const slice = threadIndex() / 32;
    if (slice >= p.slices)
        return;
    off const step = off(p.inner.d);
    T const* const x = static_cast<T const*>(p.x) + begin(p, slice);
    T* const y = static_cast<T*>(p.y) + begin(p, slice);
    idx const lane = threadIdx.x & 31;
    float m = lowest(), s = 0;
    for (idx j = lane; j < p.n; j += 32)
        m = larger(m, load<float>(x[j * step]));
    m = warpReduce(m, larger);
    for (idx j = lane; j < p.n; j += 32)
        s += exp(load<float>(x[j * step]) - m);
    s = warpReduce(s, sum);
    for (idx j = lane; j < p.n; j += 32)
        y[j * step] = store<T>(finished(load<float>(x[j * step]) - m, s));
}
TW_KERNEL softmax_blocks(const __grid_constant__ Params p)
{
    __shared__ float scratch[32];
    off const step = off(p.inner.d);
    T const* const x = static_cast<T const*>(p.x) + begin(p, blockIdx.x);
    T* const y = static_cast<T*>(p.y) + begin(p, blockIdx.x);
    float m = lowest(), s = 0;
    for (idx j = threadIdx.x; j < p.n; j += blockDim.x)
        m = larger(m, load<float>(x[j * step]));
    m = blockReduce(m, lowest(), scratch, larger);
    for (idx j = threadIdx.x; j < p.n; j += blockDim.x)
        s += exp(load<float>(x[j * step]) - m);
    s = blockReduce(s, 0.0f, scratch, sum);
    for (idx j = threadIdx.x; j < p.n; j += blockDim.x)
        y[j * step] = store<T>(finished(load<float>(x[j * step]) - m, s));
}

} // namespace tw::ops::softmax
