// SPDX-License-Identifier: Apache-2.0
// Kernels that multiply and add as fast as a GPU can, in registers and shared memory alone: what its rate is measured
// with.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tw::cuda {

enum class RateOf : int
{
    kF32,  // FP32 in vector units
    kTf32, // matrix instructions, sums in FP32
    kF16,
};

// rateOfProducts(float* y, int repeats) writes a number for each thread.
struct RateKernel
{
    std::string source;
    int threads = 0, blocksPerMultiprocessor = 1, repeats = 0; // of about 100 us
    int64_t sharedBytes = 0;
    double operations = 0; // of one block in one repeat, two for each product
};
inline constexpr char const* kRateKernel = "rateOfProducts";

// None: the capability (90 is 9.0) has no such unit.
std::optional<RateKernel> rateKernel(RateOf what, int capability);

} // namespace tw::cuda
