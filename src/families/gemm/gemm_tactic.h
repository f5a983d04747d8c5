// SPDX-License-Identifier: Apache-2.0
// Tactics of matrix products: f(a b + bias + residual) in f32 by emitted kernels, one tactic for each instruction set
// and each way in which factors are multiplied. The config is {vectors of a tile}.
#pragma once

#include "device/large_pages.h"
#include "families/elementwise/activate.h"
#include "kernels/cpu/gemm_jit.h"
#include "ops/matrix_multiply/op.h"
#include "tactic/cpu_isa.h"
#include "tactic/packed_constants.h"
#include "tactic/tactic.h"

namespace tw::ops {

// The geometry of a product; of several a's with one b, whose rows follow each other at one distance, that of one tall
// product.
matrix_multiply::Geometry mergedGeometry(ir::Node const& node, Extents const& a, Extents const& b);
kernels::GemmShape shapeOf(matrix_multiply::Geometry const& g);
// Where the products begin; packedFloats: of a packed matrix of b, 0 where b is read as it is.
std::vector<kernels::GemmOffsets> offsetsOf(matrix_multiply::Geometry const& g, int64_t packedFloats);
// Refuses what emitted products cannot do: other types, norms, tensors whose offsets do not fit.
Support supportsProducts(Problem const& problem, kernels::jit::Isa isa);

// Matrices of a known b, packed once.
struct PackedMatrices
{
    device::PackedFloats floats;
    int64_t each = 0; // floats of one
};
using PackedMatricesPtr = std::shared_ptr<PackedMatrices const>;
Result<PackedMatricesPtr> packMatrices(kernels::GemmJitOptions const& options, matrix_multiply::Geometry const& g,
                                       Blob const& b, PackedConstants& packed);

class GemmTactic final : public CpuTactic, public PackingTactic
{
public:
    constexpr GemmTactic(char const* name, int version, kernels::jit::Isa isa,
                         kernels::jit::Factors factors = kernels::jit::Factors::kFloat)
        : CpuTactic(name, version, isa), factors_(factors)
    {}
    Traits traits() const override { return traitsWith(isPairs(factors_) ? Rounding::kBf16 : Rounding::kPlain); }
    Support supports(Problem const& problem) const override;
    std::vector<Config> configs(Problem const& problem) const override;
    double estimate(Problem const& problem, Config const& config) const override;
    Result<std::unique_ptr<Kernel>> load(Problem const& problem, Config const& config,
                                         std::string const& image) const override;
    Result<std::unique_ptr<Kernel>> loadShared(Problem const& problem, Config const& config, std::string const& image,
                                               PackedConstants& packed) const override;

private:
    kernels::jit::Factors factors_;
};

} // namespace tw::ops
