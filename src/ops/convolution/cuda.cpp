// SPDX-License-Identifier: Apache-2.0
#include "ops/convolution/op.h"
#include "ops/cuda_conv_f16.h"
#include "ops/cuda_conv_f32.h"
#include "ops/cuda_convolve.h"
#include "ops/cuda_cudnn_conv.h"

namespace tw::ops::convolution {

namespace {

using conv_f16::Arithmetic;

CudaKernels generate(Problem const& p, Config const&)
{
    return convolveKernels(p, WindowKind::kConvolution, FusedActivation());
}

constexpr CudaTactic kWgmma = conv_f16::tactic<conv_f16::kWgmma, Arithmetic::kHalf>("convolution_f16_wgmma_sm90a");
constexpr CudaTactic kDepthwise =
    conv_f16::tactic<conv_f16::kDepthwise, Arithmetic::kHalf>("convolution_f16_depthwise");
constexpr CudaTactic kDepthwiseStrips =
    conv_f16::tactic<conv_f16::kDepthwiseStrips, Arithmetic::kHalf>("convolution_f16_depthwise_strips");
constexpr CudaTactic kDepthwiseTile =
    conv_f16::tactic<conv_f16::kDepthwiseTile, Arithmetic::kHalf>("convolution_f16_depthwise_tile");
constexpr CudaTactic kStem = conv_f16::tactic<conv_f16::kStem, Arithmetic::kHalf>("convolution_f16_stem_sm80");
constexpr CudaTactic kPlanar = conv_f16::tactic<conv_f16::kMmaPlanar, Arithmetic::kHalf>("convolution_f16_planar_sm80");
constexpr CudaTactic kMma = conv_f16::tactic<conv_f16::kMma, Arithmetic::kHalf>("convolution_f16_mma_sm80");
constexpr CudaTactic kTf32Wgmma = conv_f16::tactic<conv_f16::kWgmma, Arithmetic::kTf32>("convolution_tf32_wgmma_sm90a");
constexpr CudaTactic kTf32Stem = conv_f16::tactic<conv_f16::kStem, Arithmetic::kTf32>("convolution_tf32_stem_sm80");
constexpr CudaTactic kDepthwise32 =
    conv_f16::tactic<conv_f16::kDepthwise, Arithmetic::kFloat>("convolution_f32_depthwise");
constexpr CudaTactic kDepthwiseStrips32 =
    conv_f16::tactic<conv_f16::kDepthwiseStrips, Arithmetic::kFloat>("convolution_f32_depthwise_strips");
constexpr CudaTactic kDepthwiseTile32 =
    conv_f16::tactic<conv_f16::kDepthwiseTile, Arithmetic::kFloat>("convolution_f32_depthwise_tile");
constexpr CudaTactic kTf32Planar =
    conv_f16::tactic<conv_f32::kProductsPlanar, Arithmetic::kTf32>("convolution_tf32_planar_sm80");
constexpr CudaTactic kTf32 = conv_f16::tactic<conv_f32::kProducts, Arithmetic::kTf32>("convolution_tf32_mma_sm80");
constexpr CudaTactic kExactPlanar =
    conv_f16::tactic<conv_f32::kProductsPlanar, Arithmetic::kFloat>("convolution_f32_planar_sm80");
constexpr CudaTactic kExact = conv_f16::tactic<conv_f32::kProducts, Arithmetic::kFloat>("convolution_f32_tile_sm80");
constexpr CudnnConvTactic kCudnn{"convolution_f16_cudnn", 1, DataType::kHalf};
constexpr CudnnConvTactic kCudnnTf32{"convolution_tf32_cudnn", 1, DataType::kFloat};
constexpr CudaTactic kPlain{"convolution_plain_cuda", 1, generate};

} // namespace

std::span<Tactic const* const> cudaTactics()
{
    static constexpr Tactic const* kList[] = {&kWgmma,
                                              &kDepthwiseStrips,
                                              &kDepthwiseStrips32,
                                              &kDepthwiseTile,
                                              &kDepthwise,
                                              &kStem,
                                              &kPlanar,
                                              &kMma,
                                              &kTf32Wgmma,
                                              &kDepthwiseTile32,
                                              &kDepthwise32,
                                              &kTf32Stem,
                                              &kTf32Planar,
                                              &kTf32,
                                              &kExactPlanar,
                                              &kExact,
                                              &kCudnn,
                                              &kCudnnTf32,
                                              &kPlain};
    return kList;
}

} // namespace tw::ops::convolution
