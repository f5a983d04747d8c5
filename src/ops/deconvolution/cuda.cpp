// SPDX-License-Identifier: Apache-2.0
#include "families/convolution/cuda_conv_nd.h"
#include "families/convolution/cuda_deconv_f16.h"
#include "families/convolution/cuda_deconv_f32.h"
#include "families/convolution/cuda_plain_convolution.h"
#include "ops/deconvolution/op.h"

namespace tw::ops::deconvolution {

namespace {

CudaKernels generate(Problem const& p, Config const&)
{
    return convolveKernels(p, WindowKind::kDeconvolution, FusedActivation());
}

constexpr CudaTactic kWgmma{"deconvolution_f16_wgmma_sm90a",
                            1,
                            deconv_f16::generate,
                            deconv_f16::supports,
                            deconv_f16::configs,
                            deconv_f16::formats};
constexpr CudaTactic kTf32 = deconv_f32::tactic<true>("deconvolution_tf32_mma_sm80");
constexpr CudaTactic kExact = deconv_f32::tactic<false>("deconvolution_f32_tile_sm80");
constexpr CudaTactic kNdHalf =
    conv_nd::tactic<WindowKind::kDeconvolution, conv_nd::Operand::kHalf>("deconvolution_f16_nd_sm80");
constexpr CudaTactic kNdTf32 =
    conv_nd::tactic<WindowKind::kDeconvolution, conv_nd::Operand::kTf32>("deconvolution_tf32_nd_sm80");
constexpr CudaTactic kNdExact =
    conv_nd::tactic<WindowKind::kDeconvolution, conv_nd::Operand::kTf32x3>("deconvolution_f32_nd_sm80");
constexpr CudaTactic kPlain{"deconvolution_plain_cuda", 1, generate};

} // namespace

std::span<Tactic const* const> cudaTactics()
{
    static constexpr Tactic const* kList[] = {&kWgmma, &kTf32, &kExact, &kNdHalf, &kNdTf32, &kNdExact, &kPlain};
    return kList;
}

} // namespace tw::ops::deconvolution
