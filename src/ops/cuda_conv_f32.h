// SPDX-License-Identifier: Apache-2.0
// FP32 convolutions without tensor copies, exact or with factors rounded to TF32. The other ways of FP32, and what all
// share, stand in cuda_conv_f16.h.
#pragma once

#include "ops/cuda_conv_f16.h"

namespace tw::ops::conv_f32 {

// Implicit matrix products: any channels, groups and dilations.
extern conv_f16::Way const kProducts;
// The same for few channels in linear format: a network's first layer.
extern conv_f16::Way const kProductsPlanar;
// Each channel by itself, from tiles in shared memory, each pixel read once: large images. Compute capability 8.0.
struct DepthwiseTile
{
    static CudaKernels generate(Problem const& problem, Config const& config);
    static Support supports(Problem const& problem);
    static std::vector<Config> configs(Problem const& problem);
    static std::vector<Formats> formats(Problem const& problem);
    static double estimate(Problem const& problem, Config const& config);
    static constexpr bool kRoundsToTf32 = false;
};

template <class Kind>
constexpr CudaTactic tactic(char const* name)
{
    return CudaTactic(name, 2, Kind::generate, Kind::supports, Kind::configs, Kind::formats, Kind::estimate,
                      Kind::kRoundsToTf32);
}

// The activation as text that is exact to FP32.
std::string activationOf(FusedActivation const& activation);

} // namespace tw::ops::conv_f32
