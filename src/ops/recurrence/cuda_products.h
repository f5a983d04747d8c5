// SPDX-License-Identifier: Apache-2.0
// What all steps of a layer get of x, as one matrix product before the kernel of the steps; where there are no input
// weights, x itself.
#pragma once

#include <optional>

#include "kernels/cuda/gemm/f32.h"
#include "kernels/cuda/gemm/mma.h"
#include "ops/recurrence/op.h"
#include "ops/recurrence/recurrence_params.h"
#include "tactic/cuda_tactic.h"

namespace tw::ops::recurrence {

// What CUDA tactics of this op share.

// The constants and the function that the device code of this op reads; `isForHalf`: exact enough for results in FP16.
std::string attrsText(Problem const& problem, bool isForHalf = false);
Params paramsOf(Attrs const& a, RunArgs const& args);

class InputProducts
{
public:
    static Support supports(Problem const& p);
    static constexpr int kKernel = 1; // its place among a tactic's kernels

    explicit InputProducts(Problem const& p);
    // Its kernel behind what the source has.
    void addTo(CudaSource& source) const;
    int64_t bytes(Sizes const& s) const;
    // Tells the steps where the products are: `place`, in the workspace.
    void describe(PersistentParams& p, Sizes const& s, void* place) const;
    Result<void> run(CudaLaunch const& launch, Sizes const& s, PersistentParams const& p) const;

private:
    // None: there are no weights.
    std::optional<cuda::gemm_mma::Spec> half_;
    std::optional<cuda::gemm_f32::Spec> single_;
};

} // namespace tw::ops::recurrence
