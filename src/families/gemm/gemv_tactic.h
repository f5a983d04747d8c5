// SPDX-License-Identifier: Apache-2.0
// Tactics of matrix products, for products of up to four rows: bound by reading b, which they do
// once, at the speed of memory; packed when it is known, else as it lies. One for each instruction set; the config is
// {vectors of a panel of columns}.
#pragma once

#include "families/gemm/gemm_tactic.h"
#include "kernels/cpu/jit/gemv_kernel.h"
#include "tactic/cpu_isa.h"

namespace tw::ops {

class GemvTactic final : public CpuTactic, public PackingTactic
{
public:
    // Known second operands as `weights`: a read of half the bytes, in FP32 arithmetic.
    constexpr GemvTactic(char const* name, int version, kernels::jit::Isa isa,
                         kernels::jit::GemvWeights weights = kernels::jit::GemvWeights::kFloat)
        : CpuTactic(name, version, isa), weights_(weights)
    {}
    Traits traits() const override
    {
        using kernels::jit::GemvWeights;
        return traitsWith(weights_ == GemvWeights::kHalf       ? Rounding::kHalfWeights
                          : weights_ == GemvWeights::kBfloat16 ? Rounding::kBf16
                                                               : Rounding::kPlain);
    }
    Support supports(Problem const& problem) const override;
    std::vector<Config> configs(Problem const& problem) const override;
    double estimate(Problem const& problem, Config const& config) const override;
    Result<std::unique_ptr<Kernel>> load(Problem const& problem, Config const& config,
                                         std::string const& image) const override;
    Result<std::unique_ptr<Kernel>> loadShared(Problem const& problem, Config const& config, std::string const& image,
                                               PackedConstants& packed) const override;

private:
    kernels::jit::GemvWeights weights_;
};

} // namespace tw::ops
