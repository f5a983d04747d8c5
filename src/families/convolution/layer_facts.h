// SPDX-License-Identifier: Apache-2.0
// What the inspector says of convolutions, deconvolutions and their fused kinds.
#pragma once

#include "families/convolution/kernel_window.h"
#include "families/convolution/window.h"
#include "families/elementwise/epilogue.h"
#include "tactic/layer_facts.h"

namespace tw::ops {

// "kEXPLICIT_ROUND_DOWN"
char const* publishedName(PaddingMode mode);

// Inputs x, w and, where there is one, a bias; the last two from `weights` on.
void addConvolution(LayerFacts& facts, WindowKind kind, KernelWindowAttrs const& a, Epilogue const& epilogue,
                    size_t weights = 1);

} // namespace tw::ops
