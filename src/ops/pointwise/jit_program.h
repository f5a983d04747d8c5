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

// `fast`: by a kernel that CPUs with AVX-512 VBMI run; else byte by byte.
class TableTactic final : public Tactic
{
public:
    constexpr TableTactic(char const* name, bool fast) : Tactic(name, 1, Backend::kCpu), fast_(fast) {}
    Traits traits() const override { return {.isa = fast_ ? "avx512" : ""}; }
    Support supports(Problem const& problem) const override;
    std::vector<Formats> formats(Problem const& problem) const override;
    Result<std::unique_ptr<Kernel>> load(Problem const& problem, Config const&, std::string const&) const override;

private:
    bool fast_;
};

} // namespace tw::ops::pointwise
