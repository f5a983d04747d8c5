// SPDX-License-Identifier: Apache-2.0
// y = f(conv(x, w) + b + r)   x, w, b as convolution has them; b optional. r (optional): shape and type of y. f: an
// activation, or none. Made by passes; the node's body holds the nodes it stands for.
#pragma once

#include "families/elementwise/activate.h"
#include "ops/convolution/op.h"

namespace tw::ops::fused_convolution {

struct Attrs : convolution::Attrs
{
    FusedActivation activation;

    Attrs() = default;
    Attrs(convolution::Attrs const& c, FusedActivation const& f) : convolution::Attrs(c), activation(f) {}
    void visit(ir::AttrVisitor& v) override
    {
        convolution::Attrs::visit(v); // 1 to 6
        activation.visit(v, 7);
    }
    std::unique_ptr<ir::AttrsBase> clone() const override { return std::make_unique<Attrs>(*this); }
};

Result<void> reference(RefContext& ctx);
std::span<Tactic const* const> cpuTactics();
std::span<Tactic const* const> cudaTactics();

} // namespace tw::ops::fused_convolution
