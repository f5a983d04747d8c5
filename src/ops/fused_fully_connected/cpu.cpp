// SPDX-License-Identifier: Apache-2.0
#include "ops/fused_fully_connected/op.h"
#include "ops/fused_tactic.h"

namespace tw::ops::fused_fully_connected {

namespace {

FusedActivation const& activationOf(ir::Node const& node)
{
    return node.attrsAs<Attrs>().activation;
}

constexpr FusedTactic kPlain{"fused_fully_connected_plain", 1, fully_connected::cpuTactics, activationOf};

} // namespace

std::span<Tactic const* const> cpuTactics()
{
    static constexpr Tactic const* kList[] = {&kPlain};
    return kList;
}

} // namespace tw::ops::fused_fully_connected
