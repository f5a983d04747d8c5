// SPDX-License-Identifier: Apache-2.0
// A thread for each element: y = x / (k + alpha * sum of squares of the channels around it)^beta.
//   type T; long long kReach: channels on each side; float kK, kAlpha, kBeta
#pragma once

#include "kernels/cuda/common/prelude.cuh"
#include "ops/lrn/lrn_params.h"

namespace tw::ops::lrn {

TW_KERNEL lrn(const __grid_constant__ Params p)
{
    idx const i = threadIndex();
    if (i >= p.count)
        return;
    idx const row = divide(i, p.plane), n = divide(row, p.channels);
    i64 const c = i64(row - n * idx(p.channels.d));
    i64 const first = c < kReach ? 0 : c - kReach;
    i64 const last = c + kReach < i64(p.channels.d) ? c + kReach : i64(p.channels.d) - 1;
    T const* const x = static_cast<T const*>(p.x);
    float sum = 0;
    for (i64 j = first; j <= last; ++j) {
        float const v = load<float>(x[i64(i) + (j - c) * i64(p.plane.d)]);
        sum += v * v;
    }
    static_cast<T*>(p.y)[i] = store<T>(load<float>(x[i]) / pow(kK + kAlpha * sum, kBeta));
}

} // namespace tw::ops::lrn
