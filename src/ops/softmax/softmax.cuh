// SPDX-License-Identifier: Apache-2.0
// One thread a slice where neighbours lie beside each other (inner > 1), else a warp or a block.
//   type T; bool LOG: of the result
#pragma once

#include "families/reduction/cuda_team.cuh"
#include "ops/softmax/softmax_params.h"
#include "ops/softmax/softmax_steps.cuh"

namespace tw::ops::softmax {

template <class Team>
TW_INLINE void softmax(Params const& p)
{
    idx const slice = Team::set(), o = divide(slice, p.inner), lane = Team::lane(), lanes = Team::lanes();
    if (slice >= p.slices)
        return;
    off const step = off(p.inner.d), begin = off(o * idx(p.n) * idx(p.inner.d) + (slice - o * idx(p.inner.d)));
    T const* const x = static_cast<T const*>(p.x) + begin;
    T* const y = static_cast<T*>(p.y) + begin;
    float m = lowest(), s = 0;
    for (idx j = lane; j < p.n; j += lanes)
        m = larger(m, load<float>(x[j * step]));
    m = Team::join(m, lowest(), larger);
    for (idx j = lane; j < p.n; j += lanes)
        s += exp(load<float>(x[j * step]) - m);
    s = Team::join(s, 0.0f, sum);
    for (idx j = lane; j < p.n; j += lanes) {
        float const d = load<float>(x[j * step]) - m;
        y[j * step] = store<T>(LOG ? d - logf(s) : exp(d) / s);
    }
}
TW_KERNEL_OF(softmax_threads, Params, softmax<reduction::Alone>)
TW_KERNEL_OF(softmax_warps, Params, softmax<reduction::Warp>)
TW_KERNEL_OF(softmax_blocks, Params, softmax<reduction::Block>)

} // namespace tw::ops::softmax
