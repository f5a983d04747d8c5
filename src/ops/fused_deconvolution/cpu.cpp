// SPDX-License-Identifier: Apache-2.0
#include "families/convolution/tactics.h"
#include "families/elementwise/fused_tactic.h"
#include "ops/fused_deconvolution/op.h"

namespace tw::ops::fused_deconvolution {

namespace {

FusedActivation const& activationOf(ir::Node const& node)
{
    return node.attrsAs<Attrs>().activation;
}

using kernels::jit::Isa;
constexpr DirectTactic kDirectAvx512{"fused_deconvolution_f32_direct_avx512", 1, Isa::kAvx512,
                                     DirectTactic::kTransposed, activationOf};
constexpr DirectTactic kDirectAvx2{"fused_deconvolution_f32_direct_avx2", 1, Isa::kAvx2, DirectTactic::kTransposed,
                                   activationOf};
constexpr FusedTactic kPlain{"fused_deconvolution_plain", 1, deconvolution::cpuTactics, activationOf};

} // namespace

std::span<Tactic const* const> cpuTactics()
{
    static constexpr Tactic const* kList[] = {&kDirectAvx512, &kDirectAvx2, &kPlain};
    return kList;
}

} // namespace tw::ops::fused_deconvolution
