// SPDX-License-Identifier: Apache-2.0
// y = f(deconv(x, w) + b)   x, w, b as deconvolution has them; b optional. f: an activation, or none. Made by passes;
// the node's body holds the nodes it stands for.
#pragma once

#include "families/elementwise/activate.h"
#include "ops/deconvolution/op.h"

namespace tw::ops::fused_deconvolution {

struct Attrs : deconvolution::Attrs
{
    FusedActivation activation;

    Attrs() = default;
    Attrs(deconvolution::Attrs const& d, FusedActivation const& f) : deconvolution::Attrs(d), activation(f) {}
    void visit(ir::AttrVisitor& v) override
    {
        deconvolution::Attrs::visit(v); // 1 to 6
        activation.visit(v, 7);
    }
    std::unique_ptr<ir::AttrsBase> clone() const override { return std::make_unique<Attrs>(*this); }
};

Result<void> reference(RefContext& ctx);
std::span<Tactic const* const> cpuTactics();
std::span<Tactic const* const> cudaTactics();

} // namespace tw::ops::fused_deconvolution
