// SPDX-License-Identifier: Apache-2.0
// FP32 convolutions y = f(conv(x, w) + bias + residual) with constant filters, for the ops convolution and
// fused_convolution, exact or with factors rounded to TF32. Residual and y are in Format::kHWC8, x too where a tactic
// does not say otherwise. What they share with FP16 stands in cuda_conv_f16.h.
#pragma once

#include "ops/cuda_conv_f16.h"

namespace tw::ops::conv_f32 {

// Implicit matrix products: any channels, groups and dilations. `planar`: x is linear and has few channels, a network's
// first layer.
template <bool tf32, bool planar>
struct Products
{
    static CudaKernels generate(Problem const& problem, Config const& config);
    static Support supports(Problem const& problem);
    static std::vector<Config> configs(Problem const& problem);
    static std::vector<Formats> formats(Problem const& problem);
    static double estimate(Problem const& problem, Config const& config);
    static constexpr bool kRoundsToTf32 = tf32;
};
extern template struct Products<false, false>;
extern template struct Products<false, true>;
extern template struct Products<true, false>;
extern template struct Products<true, true>;
using Exact = Products<false, false>;
using ExactPlanar = Products<false, true>;
using Tf32 = Products<true, false>;
using Tf32Planar = Products<true, true>;

// Rounded to TF32, by wgmma: cuda_conv_f16.h.
struct Wgmma
{
    static CudaKernels generate(Problem const& problem, Config const& config);
    static Support supports(Problem const& problem);
    static std::vector<Config> configs(Problem const& problem);
    static std::vector<Formats> formats(Problem const& problem);
    static double estimate(Problem const& problem, Config const& config);
    static constexpr bool kRoundsToTf32 = true;
};
// Rounded to TF32, a first layer that steps over two columns, x linear.
struct Stem
{
    static CudaKernels generate(Problem const& problem, Config const& config);
    static Support supports(Problem const& problem);
    static std::vector<Config> configs(Problem const& problem);
    static std::vector<Formats> formats(Problem const& problem);
    static double estimate(Problem const& problem, Config const& config);
    static constexpr bool kRoundsToTf32 = true;
};
// Each channel by itself, 4 of them for each thread.
struct Depthwise
{
    static CudaKernels generate(Problem const& problem, Config const& config);
    static Support supports(Problem const& problem);
    static std::vector<Config> configs(Problem const& problem);
    static std::vector<Formats> formats(Problem const& problem);
    static double estimate(Problem const& problem, Config const& config);
    static constexpr bool kRoundsToTf32 = false;
};
// The same from tiles in shared memory, each pixel read once: large images. Compute capability 8.0.
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
