// SPDX-License-Identifier: Apache-2.0
// One thread for each element of y.
//   type T; type C: what it computes in; int KIND: a Kind; bool EXCLUDES: padding does not count; float BLEND
#pragma once

#include "kernels/cuda/common/prelude.cuh"
#include "ops/pooling/kind_params.h"
#include "ops/pooling/pooling_params.h"

namespace tw::ops::pooling {

constexpr bool IS_BYTE = sizeof(T) == 1;
TW_KERNEL pooling(const __grid_constant__ Params p)
{
    idx const i = threadIndex();
    if (i >= p.count)
        return;
    idx rest = i;
    off begin[3], end[3];
    C inside = 1, padded = 1;
#pragma unroll
    for (int a = 2; a >= 0; --a) {
        idx const q = divide(rest, p.out[a]);
        off const in = off(p.in[a]);
        off const start = off(rest - q * idx(p.out[a].d)) * off(p.stride[a]) - off(p.before[a]);
        off const stop = start + off(p.window[a]);
        begin[a] = max(start, off(0));
        end[a] = max(min(stop, in), begin[a]);
        inside *= C(end[a] - begin[a]);
        padded *= C(min(stop, in + off(p.after[a])) - start);
        rest = q;
    }
    T const* const x = static_cast<T const*>(p.x) + i64(rest) * p.in[0] * p.in[1] * p.in[2];
    C largest = IS_BYTE ? -128 : -__int_as_float(0x7f800000), sum = 0;
    for (off i0 = begin[0]; i0 < end[0]; ++i0)
        for (off i1 = begin[1]; i1 < end[1]; ++i1)
            for (off i2 = begin[2]; i2 < end[2]; ++i2) {
                C const v = load<C>(x[(i0 * off(p.in[1]) + i1) * off(p.in[2]) + i2]);
                sum += v;
                if (v > largest || v != v)
                    largest = v;
            }
    C const average = inside == 0 ? C(0) : sum / (EXCLUDES ? inside : padded);
    C y = largest;
    if constexpr (Kind(KIND) == Kind::kAverage)
        y = average;
    if constexpr (Kind(KIND) == Kind::kMaxAverageBlend)
        y = C((1 - double(BLEND)) * largest + double(BLEND) * average);
    static_cast<T*>(p.y)[i] = store<T>(y);
}

} // namespace tw::ops::pooling
