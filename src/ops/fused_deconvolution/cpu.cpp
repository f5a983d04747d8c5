// SPDX-License-Identifier: Apache-2.0
#include "ops/fused_deconvolution/op.h"
#include "ops/fused_tactic.h"

namespace tw::ops::fused_deconvolution {

namespace {

FusedActivation const& activationOf(ir::Node const& node)
{
    return node.attrsAs<Attrs>().activation;
}

constexpr FusedTactic kPlain{"fused_deconvolution_plain", 1, deconvolution::cpuTactics, activationOf};

} // namespace

std::span<Tactic const* const> cpuTactics()
{
    static constexpr Tactic const* kList[] = {&kPlain};
    return kList;
}

} // namespace tw::ops::fused_deconvolution
