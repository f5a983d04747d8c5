// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/common/generate.h"
#include "kernels/cuda/common/hopper.h"
#include "kernels/cuda/gemm/mma_f16.h"

namespace tw::cuda::gemm_mma_f16 {

std::string source(Spec const& s)
{
    bool const clusters = s.split > 1 && s.clusters;
    return include("kernels/cuda/common/matrix.cuh") + constant("TILE_M", s.tileM) + constant("TILE_N", s.tileN) +
           constant("WARPS_M", s.warpsM) + constant("WARPS_N", s.warpsN) + constant("STAGES", s.stages) +
           constant("SPLIT", s.split) + flag("CLUSTERS", clusters) + flag("FINISHES", !s.sumsInMemory()) +
           constant("STEP", kStepK) + constant("THREADS", s.threads()) +
           constant("BLOCKS_PER_SM", s.blocksPerMultiprocessor()) +
           constant("BIAS_AT", s.sharedBytes() - s.biasBytes()) +
           (s.sumsInMemory() ? constant("FINISH_BIAS_AT", s.stagingBytes()) : "") +
           constant("STAGING_AT", clusters ? s.tileBytes() : 0) + constant("VECTOR_A", s.vectorA) +
           constant("VECTOR_B", s.vectorB) + flag("A_ALONG_K", s.aAlongK) + flag("B_ALONG_K", s.bAlongK) +
           flag("EARLY", s.constantB) + epilogueConstants(s, s.chunk()) + include("kernels/cuda/mma/sums_f16.cuh") +
           include("kernels/cuda/mma/end_rows.cuh") + include("kernels/cuda/mma/gemm.cuh") +
           (s.sumsInMemory() ? include("kernels/cuda/mma/finish.cuh") : "");
}

} // namespace tw::cuda::gemm_mma_f16
