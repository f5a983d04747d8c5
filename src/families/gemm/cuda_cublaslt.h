// SPDX-License-Identifier: Apache-2.0
// CUDA tactics of matrix products, by cuBLASLt: y = f(a b + bias + residual) in FP16 or FP32, sums in
// FP32. The config is one number, the algorithm's place in the list that the library's heuristic gives for the shapes.
#pragma once

#include "families/gemm/cuda_gemm.h"

namespace tw::ops {

class CublasLtTactic final : public Tactic
{
public:
    // With `tf32` it takes FP32 alone and rounds factors.
    constexpr CublasLtTactic(char const* name, int version, bool tf32 = false)
        : Tactic(name, version, Backend::kCuda), tf32_(tf32)
    {}
    Source source() const override { return Source::kCublasLt; }
    Traits traits() const override { return {.rounding = tf32_ ? Rounding::kTf32 : Rounding::kPlain}; }
    Support supports(Problem const& problem) const override;
    std::vector<Config> configs(Problem const& problem) const override;
    double estimate(Problem const& problem, Config const& config) const override;
    // The version of the library: the heuristic is asked again when a plan is loaded.
    Result<std::string> build(Problem const& problem, Config const& config) const override;
    Result<std::unique_ptr<Kernel>> load(Problem const& problem, Config const& config,
                                         std::string const& image) const override;

private:
    bool tf32_;
};

} // namespace tw::ops
