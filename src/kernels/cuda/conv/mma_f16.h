// SPDX-License-Identifier: Apache-2.0
// Convolution in FP16 with float sums as an implicit matrix product by mma.sync, for compute capability 8.0 and later:
// any channels, stride, padding, dilation and groups; x NHWC or NCHW (the first layer), y NHWC. Rows are output pixels,
// columns filters, k runs over a filter's taps and channels as x has them in memory.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/cuda/common/epilogue.h"
#include "kernels/cuda/common/tensor_map.h"
#include "kernels/cuda/conv/mma_f16_params.h"
#include "kernels/cuda/conv/shape.h"

namespace tw::cuda::conv_f16 {

constexpr int kMostVector = 8; // 16 bytes

struct Spec : Epilogue
{
    int tileM = 128, tileN = 64; // pixels: 64, 128; filters: 32, 64, 128
    int stages = 4;
    int vector = 8;    // elements of x that one copy takes: 8, 4, 2 or 1
    bool nchw = false; // x is NCHW and k runs (c, r, s), else NHWC and (r, s, c)

    int64_t sharedBytes() const;
    std::string name() const; // "conv_f16_128x64x32_s4_v8"
};

char const* unsupported(Spec const& spec); // null, or why there is no such kernel
std::string source(Spec const& spec);
constexpr char const* kKernel = "convolve";

char const* unsupported(Spec const& spec, ConvShape const& shape);

using Args = ArgsOf<void>;

struct Launch
{
    Args args; // without addresses
    LaunchGeometry geometry;
};
Launch launch(Spec const& spec, ConvShape const& shape);

} // namespace tw::cuda::conv_f16
