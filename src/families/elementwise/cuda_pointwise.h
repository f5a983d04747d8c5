// SPDX-License-Identifier: Apache-2.0
// Generated pointwise kernels: y[i] = apply(x0[i], x1[i], ...) with operands that are broadcast to y. Each thread
// makes one pack of up to 16 bytes of the widest type, where sizes and addresses allow it, else one element.
#pragma once

#include <string>
#include <vector>

#include "tactic/cuda_tactic.h"

namespace tw::ops {

struct Pointwise
{
    char const* name = "";   // of the kernels
    std::vector<int> inputs; // of the node, the operands in order
    // Defines `apply`, which takes one number for each operand and gives what is stored, all in computeOf(type).
    std::string text;
    // Dimensions of y and of the operands, of one rank, each equal to y's or 1. Null: those of the tensors. Of the
    // arguments only dimensions are looked at.
    using Views = void (*)(ir::Node const&, RunArgs const&, Extents& y, Extents* operands);
    Views views = nullptr;
    bool takesBytesAsFloats = false; // i8 comes as float, not as double
};

std::unique_ptr<CudaKernels> pointwiseKernels(Problem const& problem, Pointwise const& what);

// Linear ones; and y of FP16, FP32 or i8 by pixels (pixelVectorsOf()), with the operands of y's shape, where the others,
// which stay linear, are one number for each channel, pixel or image, or one in all.
std::vector<Formats> pointwiseFormats(Problem const& problem, std::vector<int> const& inputs,
                                      Pointwise::Views views = nullptr);
// The same for nodes whose inputs are the operands, in order.
std::vector<Formats> pointwiseFormatsOfAll(Problem const& problem);

// Source of `TW_INLINE T name(T x)` for T float and double: an activation function. `isHalf`: for T float and results
// that become FP16, after kernels/cuda/common/half_math.cuh.
std::string activationSource(char const* name, int kind, float alpha, float beta, bool isHalf = false);

// quantize and dequantize as generated pointwise kernels: their scales, input 1, as a tensor of x's rank.

// For Pointwise::Views.
inline void scaleViews(int32_t axis, RunArgs const& args, Extents& y, Extents* operands)
{
    y = operands[0] = args.inputs[0].dims;
    operands[1] = y;
    for (int d = 0; d < y.rank; ++d)
        operands[1][d] = d == axis ? y[d] : 1;
}

} // namespace tw::ops
