// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/common/generate.h"
#include "kernels/cuda/common/hopper.h"
#include "kernels/cuda/common/prelude.h"
#include "kernels/cuda/conv/mma_f32.h"

namespace tw::cuda::conv_f32 {

std::string source(Spec const& s)
{
    return include("kernels/cuda/common/matrix.cuh") + s.activation + constant("TILE_M", s.tileM) +
           constant("TILE_N", s.tileN) + constant("STAGES", s.stages) + constant("VECTOR", s.vector) +
           constant("SLICES", s.slices()) + constant("BLOCKS_PER_SM", s.isAlone() ? 1 : 2) + flag("NCHW", s.nchw) +
           flag("ALIGNED", s.aligned) +
           include(s.tf32 ? "kernels/cuda/conv/mma_f32_tf32.cuh" : "kernels/cuda/conv/mma_f32_exact.cuh") +
           include("kernels/cuda/conv/mma_f32.cuh");
}

} // namespace tw::cuda::conv_f32
