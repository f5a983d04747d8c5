// SPDX-License-Identifier: Apache-2.0
// y = f(connected(x, w) + b)   x, w, b as fully_connected has them; b optional. f: an activation, or none. Made by
// passes; the node's body holds the nodes it stands for.
#pragma once

#include "families/elementwise/activate.h"
#include "ops/fully_connected/op.h"

namespace tw::ops::fused_fully_connected {

struct Attrs : ir::AttrsOf<Attrs>
{
    FusedActivation activation;

    Attrs() = default;
    explicit Attrs(FusedActivation const& f) : activation(f) {}
    void visit(ir::AttrVisitor& v) override { activation.visit(v, 1); }
};

Result<void> reference(RefContext& ctx);
std::span<Tactic const* const> cpuTactics();
std::span<Tactic const* const> cudaTactics();

} // namespace tw::ops::fused_fully_connected
