// SPDX-License-Identifier: Apache-2.0
// y = f(a b + bias + r)   a, b as matrix_multiply has them; bias (optional) [n], one number for each column of y, where
// b is no vector; r (optional): shape and type of y. f: an activation, or none. Made by passes; the node's body holds
// the nodes it stands for.
#pragma once

#include "families/elementwise/activate.h"
#include "ops/matrix_multiply/op.h"

namespace tw::ops::fused_matrix_multiply {

struct Attrs : matrix_multiply::Attrs
{
    FusedActivation activation;

    Attrs() = default;
    Attrs(matrix_multiply::Attrs const& m, FusedActivation const& f) : matrix_multiply::Attrs(m), activation(f) {}
    void visit(ir::AttrVisitor& v) override
    {
        matrix_multiply::Attrs::visit(v); // 1, 2
        activation.visit(v, 3);
    }
    std::unique_ptr<ir::AttrsBase> clone() const override { return std::make_unique<Attrs>(*this); }
};

Result<void> reference(RefContext& ctx);
std::span<Tactic const* const> cpuTactics();
std::span<Tactic const* const> cudaTactics();

} // namespace tw::ops::fused_matrix_multiply
