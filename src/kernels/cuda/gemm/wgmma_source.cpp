// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/common/epilogue.h"
#include "kernels/cuda/common/generate.h"
#include "kernels/cuda/common/hopper.h"
#include "kernels/cuda/common/prelude.h"
#include "kernels/cuda/gemm/wgmma.h"

namespace tw::cuda::gemm_f16 {

std::string source(Spec const& s)
{
    bool const early = s.constantB;
    Epilogue rows = s; // of what is written
    if (s.gated) {
        rows.bias = false;
        rows.activation.clear();
    }
    std::string text =
        include("kernels/cuda/common/hopper.cuh") + (s.integers ? wgmmaIntegersSource(s.tileQ)
                                                     : s.single ? wgmmaTf32Source(s.tileQ)
                                                                : wgmmaSource(s.tileQ, !s.pAlongK(), !s.qAlongK()));
    text += constant("TILE_P", s.tileP) + constant("TILE_Q", s.tileQ) + constant("STAGES", s.stages) +
            constant("GROUPS", s.groups) + constant("SPLIT", s.split) + constant("MULTICAST", s.multicast) +
            constant("NORM", s.norm) + constant("THREADS", s.threads()) +
            constant("BLOCKS_PER_SM", s.blocksPerMultiprocessor()) + constant("BIAS_BYTES", s.biasBytes()) +
            constant("STAGING_BYTES", s.stagingBytes()) + constant("SUMS_BYTES", s.sumsBytes()) +
            constant("STEP_K", s.stepK()) + constant("STEP_BYTES", s.stepBytes) + flag("AHEAD", s.ahead) +
            constant("KEPT_STEPS", kKeptSteps) + constant("TABLE_BYTES", s.tableBytes()) +
            constant("TABLE_AT", s.sharedBytes() - s.tableBytes() - kStagesAlignment) +
            type("Sum", s.integers ? "i32" : "float") + flag("INTEGERS", s.integers.has_value()) +
            flag("TF32X3", s.tf32x3);
    text += flag("PING_PONG", s.pingPong) + flag("SWAP", s.swap) + flag("P_ALONG_K", s.pAlongK()) +
            flag("Q_ALONG_K", s.qAlongK()) + flag("COPIES", s.copies) + flag("IMAGE", s.image) +
            flag("REDISTRIBUTE", s.redistributes()) + flag("LATE", s.sums() > 96 || s.split > 1) +
            flag("EARLY", early) + flag("GATED", s.gated) + flag("GATE_BIAS", s.gated && s.bias) +
            activationSource(s.gated ? s.activation : std::string(), "activateGate");
    if (s.integers)
        text += type("Element", storageOf(s.integers->store)) + constant("CHUNK", s.chunk()) + flag("BIAS", false) +
                flag("RESIDUAL", s.bringsResidual()) + flag("ALIGNED", s.aligned) + integerEndSource(*s.integers);
    else
        text += epilogueConstants(rows, s.chunk());
    bool const fetches = s.copies && s.bringsResidual();
    // Parameters that are not there cannot be left out by a constant.
    std::string const map = "const __grid_constant__ TensorMap ";
    text += "#define TW_PARAMETERS " + (s.copies ? map + "mapY, " : "") + (fetches ? map + "mapResidual, " : "") +
            (s.norm ? "const __grid_constant__ Norm theNorm, " : "") + "\n#define TW_Y " +
            (s.copies ? "&mapY" : "nullptr") + "\n#define TW_RESIDUAL " + (fetches ? "&mapResidual" : "nullptr") +
            "\n#define TW_NORM " + (s.norm ? "&theNorm" : "nullptr") + "\n";
    return text +
           (s.integers ? include("kernels/cuda/gemm/wgmma_integers.cuh")
                       : rowsSource(s.single) + columnsSource(s.single)) +
           include("kernels/cuda/gemm/wgmma.cuh") + (s.norm ? include("kernels/cuda/gemm/wgmma_fill.cuh") : "");
}

} // namespace tw::cuda::gemm_f16
