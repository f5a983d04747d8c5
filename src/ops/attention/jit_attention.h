// SPDX-License-Identifier: Apache-2.0
// Attention by emitted kernels, f32: for each head, keys and values are packed once; then for each tile of queries the
// scores (a product with the packed keys), their softmax in place, and the product with the packed values, while the
// tile's scores stay in L1 (L2 for thousands of keys).
#pragma once

#include "kernels/cpu/jit/emitter.h"
#include "tactic/cpu_isa.h"
#include "tactic/tactic.h"

namespace tw::ops::attention {

class JitTactic final : public CpuTactic
{
public:
    constexpr JitTactic(char const* name, kernels::jit::Isa isa) : CpuTactic(name, 2, isa) {}
    Support supports(Problem const& problem) const override;
    Result<std::unique_ptr<Kernel>> load(Problem const& problem, Config const&, std::string const&) const override;
};

} // namespace tw::ops::attention
