// SPDX-License-Identifier: Apache-2.0
// A thread for each result, or a block.
//   int RANK: of x, one at the least; what reduce_arithmetic.cuh wants
#pragma once

#include "kernels/cuda/common/prelude.cuh"
#include "ops/reduce/reduce_arithmetic.cuh"
#include "ops/reduce/reduce_params.h"

namespace tw::ops::reduce {

TW_INLINE A element(Params const& p, off base, idx k)
{
    off at[1];
    locate<RANK>(p.reduced, k, at);
    return A(load<Number>(static_cast<T const*>(p.x)[base + at[0]]));
}
TW_INLINE void finish(Params const& p, idx i, A v)
{
    static_cast<T*>(p.y)[i] = store<T>(result(v, A(p.count)));
}
TW_KERNEL reduce_threads(const __grid_constant__ Params p)
{
    idx const i = threadIndex();
    if (i >= p.results)
        return;
    off base[1];
    locate<RANK>(p.kept, i, base);
    A v = identity();
    for (idx k = 0; k < p.count; ++k)
        v = join(v, element(p, base[0], k));
    finish(p, i, v);
}
TW_KERNEL reduce_blocks(const __grid_constant__ Params p)
{
    __shared__ A scratch[32];
    idx const i = blockIdx.x;
    off base[1];
    locate<RANK>(p.kept, i, base);
    A v = identity();
    for (idx k = threadIdx.x; k < p.count; k += blockDim.x)
        v = join(v, element(p, base[0], k));
    v = blockReduce(v, A(identity()), scratch, [](A a, A b) { return join(a, b); });
    if (threadIdx.x == 0)
        finish(p, i, v);
}

} // namespace tw::ops::reduce
