// SPDX-License-Identifier: Apache-2.0
// y = (x - mean) / sqrt(variance + epsilon) * gamma + beta, mean and variance of each row, which is what the dimensions
// from `axis` on hold together. x, y: f32 or f16, one shape; gamma, beta: [n], n numbers in a row, of x's type; either
// may be missing, and is no input then. Made by passes; the node's body holds the nodes it stands for.
#pragma once

#include "ir/attrs.h"
#include "ir/op_def.h"

namespace tw::ops::layer_norm {

struct Attrs : ir::AttrsOf<Attrs>
{
    int64_t axis = 0; // 0 .. rank - 1
    double epsilon = 1e-5;
    bool hasGamma = true, hasBeta = true;

    void visit(ir::AttrVisitor& v) override
    {
        v.field(1, "axis", axis);
        v.field(2, "epsilon", epsilon);
        v.field(3, "has_gamma", hasGamma);
        v.field(4, "has_beta", hasBeta);
    }

    int inputCount() const { return 1 + hasGamma + hasBeta; }
    int gammaInput() const { return hasGamma ? 1 : -1; }
    int betaInput() const { return hasBeta ? 1 + hasGamma : -1; }
};

Result<void> reference(RefContext& ctx);
std::span<Tactic const* const> cpuTactics();
std::span<Tactic const* const> cudaTactics();

} // namespace tw::ops::layer_norm
