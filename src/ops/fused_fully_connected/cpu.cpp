// SPDX-License-Identifier: Apache-2.0
#include "families/elementwise/fused_tactic.h"
#include "families/gemm/gemv_tactic.h"
#include "ops/fused_fully_connected/op.h"

namespace tw::ops::fused_fully_connected {

namespace {

FusedActivation const& activationOf(ir::Node const& node)
{
    return node.attrsAs<Attrs>().activation;
}

constexpr FusedTactic kPlain{"fused_fully_connected_plain", 1, fully_connected::cpuTactics, activationOf};

constexpr GemmOp kGemm{
    [](ir::Node const&, Extents const& x, Extents const& w) { return fully_connected::geometryOf(x, w); },
    activationOf};
constexpr GemmTactic kAvx512{"fused_fully_connected_f32_jit_avx512", 1, kernels::jit::Isa::kAvx512, kGemm};
constexpr GemmTactic kAvx2{"fused_fully_connected_f32_jit_avx2", 1, kernels::jit::Isa::kAvx2, kGemm};
constexpr GemvTactic kFewRowsAvx512{"fused_fully_connected_f32_few_rows_avx512", 1, kernels::jit::Isa::kAvx512, kGemm};
constexpr GemvTactic kFewRowsAvx2{"fused_fully_connected_f32_few_rows_avx2", 1, kernels::jit::Isa::kAvx2, kGemm};

} // namespace

std::span<Tactic const* const> cpuTactics()
{
    static constexpr Tactic const* kList[] = {&kFewRowsAvx512, &kFewRowsAvx2, &kAvx512, &kAvx2, &kPlain};
    return kList;
}

} // namespace tw::ops::fused_fully_connected
