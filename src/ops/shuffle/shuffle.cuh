// SPDX-License-Identifier: Apache-2.0
// Two transposes with a reshape between them; an element of y a thread.
//   type Element; int kFirstRank, kSecondRank: of the transposes, 1 where there is none
#pragma once

#include "kernels/cuda/common/prelude.cuh"
#include "ops/shuffle/shuffle_params.h"

namespace tw::ops::shuffle {

TW_KERNEL shuffle(const __grid_constant__ Params p)
{
    idx const i = threadIndex();
    if (i >= p.count)
        return;
    off at[1], from[1];
    locate<kSecondRank>(p.second, i, at);
    locate<kFirstRank>(p.first, idx(at[0]), from);
    static_cast<Element*>(p.y)[i] = static_cast<Element const*>(p.x)[from[0]];
}

} // namespace tw::ops::shuffle
