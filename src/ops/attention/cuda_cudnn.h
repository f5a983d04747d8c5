// SPDX-License-Identifier: Apache-2.0
// FP16 attention by cuDNN's fused engines. The config is one number, the engine's place in the list of the library's
// heuristic; the image is the plan as the library writes it.
#pragma once

#include "tactic/tactic.h"

namespace tw::ops::attention {

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
