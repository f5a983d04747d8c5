// SPDX-License-Identifier: Apache-2.0
// The expression as emitted kernels take it.
#pragma once

#include "families/elementwise/pointwise_jit.h"
#include "ops/pointwise/op.h"
#include "tactic/tactic.h"

namespace tw::ops::pointwise {

// Counts must fit each other (infer checks them); codes and operands are kernels::jit::checkProgram()'s matter.
PointwiseSpec specOf(Attrs const& a);

// Expressions of one i8 input, and of constants, that make i8: 256 bytes that the reference fills once.

// `isa`: by its kernel, of AVX-512 for CPUs with VBMI; else byte by byte.
class TableTactic final : public Tactic
{
public:
    constexpr TableTactic(char const* name, std::optional<kernels::jit::Isa> isa)
        : Tactic(name, 1, Backend::kCpu), isa_(isa)
    {}
    Traits traits() const override { return {.isa = isa_ ? kernels::jit::isaName(*isa_) : ""}; }
    Support supports(Problem const& problem) const override;
    std::vector<Formats> formats(Problem const& problem) const override;
    Result<std::unique_ptr<Kernel>> load(Problem const& problem, Config const&, std::string const&) const override;

private:
    std::optional<kernels::jit::Isa> isa_;
};

} // namespace tw::ops::pointwise
