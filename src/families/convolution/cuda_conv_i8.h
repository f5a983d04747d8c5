// SPDX-License-Identifier: Apache-2.0
// Convolutions of i8 with constant filters by kernels of their own, for compute capability 8.0 and later. What is i8 lies
// in kHWC16, floats in kHWC8. Any window: cuda_conv_nd.h.
#pragma once

#include "families/convolution/cuda_conv_f16.h"

namespace tw::ops::conv_i8 {

// 2-D, filters are constant, sizes that count in 32 bits.
Support supportsCommon(Problem const& problem);

// Reads all inputs where they are but the filters.
class Kernels : public CudaKernels
{
public:
    Kernels(Problem const& problem, CudaSource source) : CudaKernels(std::move(source)), node_(*problem.node) {}
    bool readsOnDevice(size_t i) const override { return i != 1; }

protected:
    ir::Node const& node_;
};

// Each channel by itself: small windows.
struct Depthwise
{
    static Support supports(Problem const& problem);
    static std::vector<Config> configs(Problem const& problem);
    static double estimate(Problem const& problem, Config const& config);
    static std::unique_ptr<CudaKernels> generate(Problem const& problem, Config const& config);
    static constexpr Format kX = Format::kHWC16;
};
// A first layer: up to 4 channels, x linear.
struct Stem
{
    static Support supports(Problem const& problem);
    static std::vector<Config> configs(Problem const& problem);
    static double estimate(Problem const& problem, Config const& config);
    static std::unique_ptr<CudaKernels> generate(Problem const& problem, Config const& config);
    static constexpr Format kX = Format::kLinear;
};

template <class Algorithm>
constexpr CudaTactic tactic(char const* name, int version)
{
    return CudaTactic(
        name, version, Algorithm::generate, Algorithm::supports, Algorithm::configs,
        [](Problem const& p) { return conv_f16::formatsWith(p, Algorithm::kX); }, Algorithm::estimate);
}

} // namespace tw::ops::conv_i8
