// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/gemm/wgmma_params.h"

namespace tw::cuda::gemm_sparse {

// The kernel's last parameter, after the tensor maps of pixels, of y and of the residual, if it has one. tilesP counts
// tiles of filters (multicast: pairs of them), tilesQ those of pixels.
template <class Element>
struct ArgsOf : gemm_f16::ArgsOf<Element>
{
    void const* weights = nullptr; // packSparse()
    i32 blocks = 0;                // of 64 filters
};

} // namespace tw::cuda::gemm_sparse
