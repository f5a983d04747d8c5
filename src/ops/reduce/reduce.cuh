// SPDX-License-Identifier: Apache-2.0
// A thread for each result, or a block.
//   int RANK: of x, one at the least; what reduce_arithmetic.cuh wants
#pragma once

#include "families/reduction/cuda_team.cuh"
#include "ops/reduce/reduce_arithmetic.cuh"
#include "ops/reduce/reduce_params.h"

namespace tw::ops::reduce {

template <class Team>
TW_INLINE void reduce(Params const& p)
{
    idx const i = Team::set();
    if (i >= p.results)
        return;
    off base[1], at[1];
    locate<RANK>(p.kept, i, base);
    A v = identity();
    for (idx k = Team::lane(); k < p.count; k += Team::lanes()) {
        locate<RANK>(p.reduced, k, at);
        v = join(v, Read<T>::from(static_cast<T const*>(p.x)[base[0] + at[0]]));
    }
    v = Team::join(v, A(identity()), [](A a, A b) { return join(a, b); });
    if (Team::lane() == 0)
        static_cast<T*>(p.y)[i] = store<T>(result(v, A(p.count)));
}
TW_KERNEL_OF(reduce_threads, Params, reduce<reduction::Alone>)
TW_KERNEL_OF(reduce_blocks, Params, reduce<reduction::Block>)

} // namespace tw::ops::reduce
