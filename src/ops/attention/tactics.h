// SPDX-License-Identifier: Apache-2.0
// Tactics that stand in files of their own.
#pragma once

#include "tactic/cpu_tactic.h"
#include "tactic/cuda_tactic.h"
#include "tactic/tactic.h"

namespace tw::ops::attention {

// Attention by emitted kernels, f32: for each head, keys and values are packed once; then for each tile of queries the
// scores (a product with the packed keys), their softmax in place, and the product with the packed values, while the
// tile's scores stay in L1 (L2 for thousands of keys).
extern CpuFunctions const kJit;

extern CudaTactic const kF16Wgmma, kF16Mma, kF16Few, kTf32Mma, kF32Mma;

// FP16 attention by cuDNN's fused engines. The config is one number, the engine's place in the list of the library's
// heuristic; the image is the plan as the library writes it.
class CudnnTactic final : public Tactic
{
public:
    constexpr CudnnTactic(char const* name, int version) : Tactic(name, version, Backend::kCuda) {}
    Source source() const override { return Source::kCudnn; }
    Support supports(Problem const& problem) const override;
    std::vector<Config> configs(Problem const& problem) const override;
    Result<std::string> build(Problem const& problem, Config const& config) const override;
    Result<std::unique_ptr<Kernel>> load(Problem const& problem, Config const& config,
                                         std::string const& image) const override;
};

} // namespace tw::ops::attention
