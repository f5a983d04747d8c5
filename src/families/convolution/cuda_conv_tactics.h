// SPDX-License-Identifier: Apache-2.0
// The CUDA tactics of convolutions, in the order of preference between equals: the same for each op that has them,
// under the op's name.
#pragma once

#include <algorithm>
#include <span>

#include "families/convolution/cuda_conv_f16.h"
#include "families/convolution/cuda_conv_f32.h"
#include "families/convolution/cuda_conv_nd.h"
#include "families/convolution/cuda_cudnn_conv.h"

namespace tw::ops {

// Text as a template's argument.
template <size_t N>
struct FixedText
{
    char chars[N] = {};
    constexpr FixedText() = default;
    constexpr FixedText(char const (&text)[N]) { std::copy_n(text, N, chars); }
};
template <size_t N, size_t M>
constexpr FixedText<N + M - 1> operator+(FixedText<N> const& a, FixedText<M> const& b)
{
    FixedText<N + M - 1> out;
    std::copy_n(a.chars, N - 1, out.chars);
    std::copy_n(b.chars, M, out.chars + N - 1);
    return out;
}

// `plain` generates the kernel that takes every convolution.
template <FixedText kOp, CudaTactic::Generate plain>
class ConvolutionTactics
{
public:
    static std::span<Tactic const* const> list() { return kList; }

private:
    using Arithmetic = conv_f16::Arithmetic;

    template <FixedText kRest>
    static constexpr auto kName = kOp + kRest;
    template <conv_f16::Way const& way, Arithmetic arithmetic, FixedText kRest>
    static constexpr CudaTactic kTactic = conv_f16::tactic<way, arithmetic>(kName<kRest>.chars);
    template <conv_nd::Operand operand, FixedText kRest>
    static constexpr CudaTactic kNd = conv_nd::tactic<WindowKind::kConvolution, operand>(kName<kRest>.chars);
    template <DataType type, FixedText kRest>
    static constexpr CudnnConvTactic kCudnn{kName<kRest>.chars, 1, type};
    static constexpr CudaTactic kPlain{kName<"_plain_cuda">.chars, 1, plain};

    static constexpr Tactic const* kList[] = {
        &kTactic<conv_f16::kWgmma, Arithmetic::kHalf, "_f16_wgmma_sm90a">,
        &kTactic<conv_f16::kDepthwiseStrips, Arithmetic::kHalf, "_f16_depthwise_strips">,
        &kTactic<conv_f16::kDepthwiseStrips, Arithmetic::kFloat, "_f32_depthwise_strips">,
        &kTactic<conv_f16::kDepthwiseTile, Arithmetic::kHalf, "_f16_depthwise_tile">,
        &kTactic<conv_f16::kDepthwise, Arithmetic::kHalf, "_f16_depthwise">,
        &kTactic<conv_f16::kStem, Arithmetic::kHalf, "_f16_stem_sm80">,
        &kTactic<conv_f16::kMmaPlanar, Arithmetic::kHalf, "_f16_planar_sm80">,
        &kTactic<conv_f16::kMma, Arithmetic::kHalf, "_f16_mma_sm80">,
        &kNd<conv_nd::Operand::kHalf, "_f16_nd_sm80">,
        &kNd<conv_nd::Operand::kTf32, "_tf32_nd_sm80">,
        &kNd<conv_nd::Operand::kTf32x3, "_f32_nd_sm80">,
        &kTactic<conv_f16::kWgmma, Arithmetic::kTf32, "_tf32_wgmma_sm90a">,
        &kTactic<conv_f16::kDepthwiseTile, Arithmetic::kFloat, "_f32_depthwise_tile">,
        &kTactic<conv_f16::kDepthwise, Arithmetic::kFloat, "_f32_depthwise">,
        &kTactic<conv_f16::kStem, Arithmetic::kTf32, "_tf32_stem_sm80">,
        &kTactic<conv_f32::kProductsPlanar, Arithmetic::kTf32, "_tf32_planar_sm80">,
        &kTactic<conv_f32::kProducts, Arithmetic::kTf32, "_tf32_mma_sm80">,
        &kTactic<conv_f32::kProductsPlanar, Arithmetic::kFloat, "_f32_planar_sm80">,
        &kTactic<conv_f32::kProducts, Arithmetic::kFloat, "_f32_tile_sm80">,
        &kCudnn<DataType::kHalf, "_f16_cudnn">,
        &kCudnn<DataType::kFloat, "_tf32_cudnn">,
        &kPlain,
    };
};

} // namespace tw::ops
