// SPDX-License-Identifier: Apache-2.0
// What the algorithms of depthwise convolutions share: each channel by itself, FP16 or FP32.
#pragma once

#include "families/convolution/cuda_conv_f16.h"

namespace tw::ops::conv_f16 {

// Source of T, Few (V of them as they lie in memory), unpack() to floats and packed() from them. V is 4 or 8 for FP16,
// at most 4 for FP32.
std::string fewSource(bool isHalf);
// Source of activate().
std::string epilogueSource(Problem const& problem, bool isHalf);

// One filter for each channel, on compute capability 8.0 or later.
Support supportsAlone(Problem const& problem, DataType type);

// Bias, and filters as [r, s, c] of all.
std::vector<std::string> packAlone(Problem const& problem);
// The kernel `depthwise` of a whole text.
class DepthwiseKernels : public PackedKernels
{
public:
    DepthwiseKernels(Problem const& problem, std::string text, int64_t sharedBytes)
        : PackedKernels(problem, wholeSource("depthwise", std::move(text), sharedBytes))
    {}
    Result<std::vector<std::string>> pack(Problem const& problem) const override { return packAlone(problem); }
};

// Addresses, steps from pixel to pixel and sizes of a run.
template <class Params>
void setImages(Params& a, CudaLaunch const& launch, RunArgs const& args, Geometry const& g)
{
    TensorRef const& x = args.inputs[0];
    cuda::Output output;
    setOutput(output, args, launch.packed(0));
    a.x = x.data;
    a.filters = launch.packed(1);
    a.bias = output.bias;
    a.residual = output.residual;
    a.y = args.outputs[0].data;
    a.pixelX = x.pixelStride();
    a.pixelY = output.ldy;
    a.pixelResidual = output.ldResidual;
    a.h = int32_t(g.in[1]);
    a.w = int32_t(g.in[2]);
    a.outW = int32_t(g.out[2]);
    a.padH = int32_t(g.before[1]);
    a.padW = int32_t(g.before[2]);
}

} // namespace tw::ops::conv_f16
