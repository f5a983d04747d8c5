// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/rates/rates.h"

#include "kernels/cuda/common/hopper.h"
#include "kernels/cuda/common/source.h"

namespace tw::cuda {

namespace {

constexpr int kWgmma = 90, kMma = 80; // capabilities; those above 9.0 have the second alone

// Two warpgroups, each with four products [64, 128 bytes] x [256, 128 bytes] a repeat.
RateKernel warpgroups(RateOf what)
{
    int const k = what == RateOf::kF16 ? 64 : 32; // in 128 bytes
    std::string const product = what == RateOf::kF16 ? wgmmaSource(256, false, false) : wgmmaTf32Source(256);
    RateKernel kernel;
    kernel.source = include("kernels/cuda/common/hopper.cuh") + product + include("kernels/cuda/rates/rates_wgmma.cuh");
    kernel.threads = 256;
    kernel.repeats = what == RateOf::kF16 ? 150 : 300;
    kernel.sharedBytes = 1024 + (2 * 64 + 256) * 128; // with what aligns it
    kernel.operations = 2.0 * 2 * 64 * 256 * k;
    return kernel;
}

RateKernel warps(RateOf what)
{
    RateKernel kernel;
    kernel.source = flag("TF32", what == RateOf::kTf32) + flag("MMA", what != RateOf::kF32) +
                    include("kernels/cuda/rates/rates.cuh");
    kernel.threads = 256;
    kernel.blocksPerMultiprocessor = what == RateOf::kF32 ? 4 : 2;
    kernel.repeats = what == RateOf::kF32 ? 1000 : 300;
    // Sixteen sums of each thread; eight products [16, 8] of k = 16 (8) of each warp.
    kernel.operations = what == RateOf::kF32 ? 2.0 * 256 * 16 : 2.0 * 8 * 8 * 16 * 8 * (what == RateOf::kF16 ? 16 : 8);
    return kernel;
}

} // namespace

std::optional<RateKernel> rateKernel(RateOf what, int capability)
{
    if (what != RateOf::kF32 && capability < kMma)
        return std::nullopt;
    return what != RateOf::kF32 && capability == kWgmma ? warpgroups(what) : warps(what);
}

} // namespace tw::cuda
