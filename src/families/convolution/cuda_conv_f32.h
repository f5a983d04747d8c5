// SPDX-License-Identifier: Apache-2.0
// FP32 convolutions without TMA, exact or with factors rounded to TF32. The other algorithms of FP32, and
// what all share, stand in cuda_conv_f16.h.
#pragma once

#include "families/convolution/cuda_conv_f16.h"

namespace tw::ops::conv_f32 {

// Implicit matrix products: any channels, groups and dilations.
extern conv_f16::Algorithm const kProducts;
// The same for few channels in linear format: a network's first layer.
extern conv_f16::Algorithm const kProductsNchw;

// The activation as source that is exact to FP32.
std::string activationOf(FusedActivation const& activation);

} // namespace tw::ops::conv_f32
