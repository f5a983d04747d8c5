// SPDX-License-Identifier: Apache-2.0
// y = LayerNorm(f(a b + bias + r)) over the last dimension: (x - mean) / sqrt(variance + epsilon) * gamma + beta for
// each row x. a, b, bias, r and f as fused_matrix_multiply has them, all there, b no vector; gamma, beta [n], of a's
// type. Made by passes for GPUs whose blocks can hold rows together; the node's body holds the nodes it stands for.
#pragma once

#include "ops/fused_matrix_multiply/op.h"

namespace tw::ops::normalized_product {

struct Attrs : fused_matrix_multiply::Attrs
{
    double epsilon = 1e-5;

    Attrs() = default;
    Attrs(fused_matrix_multiply::Attrs const& product, double epsilon)
        : fused_matrix_multiply::Attrs(product), epsilon(epsilon)
    {}
    void visit(ir::AttrVisitor& v) override
    {
        fused_matrix_multiply::Attrs::visit(v); // 1 to 5
        v.field(6, "epsilon", epsilon);
    }
    std::unique_ptr<ir::AttrsBase> clone() const override { return std::make_unique<Attrs>(*this); }
};

enum Input : int
{
    kA,
    kB,
    kBias,
    kResidual,
    kGamma,
    kBeta,
    kInputs
};

// Whether the kernel that does both at once may exist for rows of n numbers.
bool takesRows(int64_t n);

Result<void> reference(RefContext& ctx);
std::span<Tactic const* const> cpuTactics();
std::span<Tactic const* const> cudaTactics();

} // namespace tw::ops::normalized_product
