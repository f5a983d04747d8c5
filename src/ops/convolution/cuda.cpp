// SPDX-License-Identifier: Apache-2.0
#include "ops/convolution/op.h"
#include "ops/cuda_conv_f16.h"
#include "ops/cuda_conv_f32.h"
#include "ops/cuda_convolve.h"
#include "ops/cuda_cudnn_conv.h"

namespace tw::ops::convolution {

namespace {

CudaKernels generate(Problem const& p, Config const&)
{
    return convolveKernels(p, WindowKind::kConvolution, FusedActivation());
}

constexpr CudaTactic kWgmma = conv_f16::tactic<conv_f16::Wgmma>("convolution_f16_wgmma_sm90a");
constexpr CudaTactic kDepthwise = conv_f16::tactic<conv_f16::Depthwise>("convolution_f16_depthwise");
constexpr CudaTactic kDepthwiseTile = conv_f16::tactic<conv_f16::DepthwiseTile>("convolution_f16_depthwise_tile");
constexpr CudaTactic kStem = conv_f16::tactic<conv_f16::Stem>("convolution_f16_stem_sm80");
constexpr CudaTactic kPlanar = conv_f16::tactic<conv_f16::MmaPlanar>("convolution_f16_planar_sm80");
constexpr CudaTactic kMma = conv_f16::tactic<conv_f16::Mma>("convolution_f16_mma_sm80");
constexpr CudaTactic kTf32Wgmma = conv_f32::tactic<conv_f32::Wgmma>("convolution_tf32_wgmma_sm90a");
constexpr CudaTactic kTf32Stem = conv_f32::tactic<conv_f32::Stem>("convolution_tf32_stem_sm80");
constexpr CudaTactic kDepthwise32 = conv_f32::tactic<conv_f32::Depthwise>("convolution_f32_depthwise");
constexpr CudaTactic kDepthwiseTile32 = conv_f32::tactic<conv_f32::DepthwiseTile>("convolution_f32_depthwise_tile");
constexpr CudaTactic kTf32Planar = conv_f32::tactic<conv_f32::Tf32Planar>("convolution_tf32_planar_sm80");
constexpr CudaTactic kTf32 = conv_f32::tactic<conv_f32::Tf32>("convolution_tf32_mma_sm80");
constexpr CudaTactic kExactPlanar = conv_f32::tactic<conv_f32::ExactPlanar>("convolution_f32_planar_sm80");
constexpr CudaTactic kExact = conv_f32::tactic<conv_f32::Exact>("convolution_f32_tile_sm80");
constexpr CudnnConvTactic kCudnn{"convolution_f16_cudnn", 1, DataType::kHalf};
constexpr CudnnConvTactic kCudnnTf32{"convolution_tf32_cudnn", 1, DataType::kFloat};
constexpr CudaTactic kPlain{"convolution_plain_cuda", 1, generate};

} // namespace

std::span<Tactic const* const> cudaTactics()
{
    static constexpr Tactic const* kList[] = {
        &kWgmma,       &kDepthwiseTile,   &kDepthwise,   &kStem,      &kPlanar,     &kMma,
        &kTf32Wgmma,   &kDepthwiseTile32, &kDepthwise32, &kTf32Stem,  &kTf32Planar, &kTf32,
        &kExactPlanar, &kExact,           &kCudnn,       &kCudnnTf32, &kPlain};
    return kList;
}

} // namespace tw::ops::convolution
