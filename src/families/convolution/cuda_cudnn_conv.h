// SPDX-License-Identifier: Apache-2.0
// Convolutions y = f(conv(x, w) + bias + residual) by cuDNN, in FP16 or in FP32 with factors that may be rounded to
// TF32, channels together (Format::kHWC8), not transposed. The config is one number, the
// engine's place in the list of the library's heuristic; the image is the plan as the library writes it, compiled code
// included.
#pragma once

#include "tactic/packed_constants.h"
#include "tactic/tactic.h"

namespace tw::ops {

class CudnnConvTactic final : public Tactic, public PackingTactic
{
public:
    constexpr CudnnConvTactic(char const* name, int version, DataType type)
        : Tactic(name, version, Backend::kCuda), type_(type)
    {}
    Source source() const override { return Source::kCudnn; }
    // The library offers no choice: FP32 engines with tensor cores round.
    Traits traits() const override { return {.rounding = isFullFloat(type_) ? Rounding::kTf32 : Rounding::kPlain}; }
    Support supports(Problem const& problem) const override;
    std::vector<Formats> formats(Problem const& problem) const override;
    std::vector<Config> configs(Problem const& problem) const override;
    double estimate(Problem const& problem, Config const& config) const override;
    Result<std::string> build(Problem const& problem, Config const& config) const override;
    Result<std::unique_ptr<Kernel>> load(Problem const& problem, Config const& config,
                                         std::string const& image) const override;
    Result<std::unique_ptr<Kernel>> loadShared(Problem const& problem, Config const& config, std::string const& image,
                                               PackedConstants& packed) const override;

private:
    DataType type_;
};

} // namespace tw::ops
