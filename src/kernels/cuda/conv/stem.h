// SPDX-License-Identifier: Apache-2.0
// The first convolution of an image network in FP16, or in FP32 rounded to TF32: few NCHW channels, two columns a step,
// y NHWC. A block keeps the pixels that its outputs see in shared memory, where the two taps of an operand register (of
// FP16) are neighbours. For compute capability 8.0 and later (mma.sync).
// Filters count 8 taps in a row; those beyond the real ones have weight 0, so a pixel that is infinite or NaN there
// makes NaN.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/cuda/common/epilogue.h"
#include "kernels/cuda/common/tensor_map.h"
#include "kernels/cuda/conv/shape.h"
#include "kernels/cuda/conv/stem_params.h"

namespace tw::cuda::stem_f16 {

struct Spec : Epilogue
{
    int rows = 4, columns = 7; // of a block's outputs: rows, and columns of 16
    int tileN = 64;            // filters: 32 or 64
    int channels = 3, filterH = 7, filterW = 7, strideH = 2, padW = 3;

    int filterRows() const { return channels * filterH; }
    int shift() const { return single ? 0 : padW % 2; } // taps of weight 0 before, so that pairs of FP16 are aligned
    int patchRows() const { return (rows - 1) * strideH + filterH; }
    int patchUnits() const { return (columns * 4 + 2) * (single ? 2 : 1); } // 16 bytes each
    int64_t paddedK() const { return single ? filterRows() * 8 : (filterRows() + 1) / 2 * 16; }
    int64_t sharedBytes() const;
    std::string name() const; // "stem_f16_4x112x64_c3_7x7"
};

char const* unsupported(Spec const& spec); // null, or why there is no such kernel
std::string source(Spec const& spec);
constexpr char const* kKernel = "stem";

using Shape = ConvShape; // sizes of channels and windows are the spec's
char const* unsupported(Spec const& spec, Shape const& shape);

using Args = ArgsOf<void>;

struct Launch
{
    Args args; // without addresses
    LaunchGeometry geometry;
};
Launch launch(Spec const& spec, Shape const& shape);

} // namespace tw::cuda::stem_f16

// The first convolution of an image network in i8: up to 4 channels, x linear, y and the residual NHWC, windows of up to 8
// columns. For compute capability 8.0 and later (mma.sync).
namespace tw::cuda::stem_i8 {

struct Spec
{
    IntegerEnd end;
    int rows = 4, columns = 4; // of a block's outputs: rows, and columns of 16
    int tileN = 64;            // filters: 32 or 64
    int channels = 3, filterH = 7, filterW = 7, strideH = 2, strideW = 2;
    bool packs = true; // rows of x are whole words

    // Of a filter in k: 32 for two of its rows where these have up to 4 taps, else for one. A row is 4 or 8 taps of 4
    // channels.
    int filterBytes() const { return (filterW <= 4 ? (filterH + 1) / 2 : filterH) * 32; }
    int64_t sharedBytes() const;
    std::string name() const; // "stem_i8_4x64x64_c3_7x7_s2x2_y8_b"
};

char const* unsupported(Spec const& spec); // null, or why there is no such kernel
std::string source(Spec const& spec);
constexpr char const* kKernel = "stem";

using Shape = ConvShape; // sizes of channels and windows are the spec's
char const* unsupported(Spec const& spec, Shape const& shape);

// Puts sizes into `args`.
LaunchGeometry launch(Spec const& spec, Shape const& shape, Args& args);

} // namespace tw::cuda::stem_i8
