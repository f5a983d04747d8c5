// SPDX-License-Identifier: Apache-2.0
#include "families/gemm/gemv_tactic.h"
#include "kernels/cpu/gemm_plain.h"
#include "ops/fully_connected/op.h"

namespace tw::ops::fully_connected {

namespace {

kernels::GemmShape shapeOf(TensorRef const& x, TensorRef const& w)
{
    matrix_multiply::Geometry const g = geometryOf(x.dims, w.dims);
    return {g.m, g.n, g.k, g.aRow, g.aColumn, g.bRow, g.bColumn};
}

Result<void> run(ir::Node const&, RunArgs& args)
{
    TensorRef const &x = args.inputs[0], &w = args.inputs[1], &y = args.outputs[0];
    if (y.count() == 0)
        return {};
    TensorRef const b = args.inputs.size() > 2 ? args.inputs[2] : TensorRef{};
    kernels::GemmShape const s = shapeOf(x, w);
    if (x.type == DataType::kFloat)
        kernels::gemmPlain(s, x.as<float>(), w.as<float>(), b.as<float>(), y.as<float>(), args.workspace);
    else
        kernels::gemmPlain(s, x.as<uint16_t>(), w.as<uint16_t>(), b.as<uint16_t>(), y.as<uint16_t>(), args.workspace);
    return {};
}

int64_t workspace(ir::Node const&, std::span<TensorRef const> in, std::span<TensorRef const>)
{
    kernels::GemmShape const s = shapeOf(in[0], in[1]);
    return kernels::gemmPlainWorkspaceBytes(s.m, s.n, s.k);
}

constexpr PlainTactic kPlain{"fully_connected_plain", 1, run, workspace};

constexpr GemmOp kGemm{[](ir::Node const&, Extents const& x, Extents const& w) { return geometryOf(x, w); }, nullptr};
constexpr GemmTactic kAvx512{"fully_connected_f32_jit_avx512", 1, kernels::jit::Isa::kAvx512, kGemm};
constexpr GemmTactic kAvx2{"fully_connected_f32_jit_avx2", 1, kernels::jit::Isa::kAvx2, kGemm};
constexpr GemvTactic kFewRowsAvx512{"fully_connected_f32_few_rows_avx512", 1, kernels::jit::Isa::kAvx512, kGemm};
constexpr GemvTactic kFewRowsAvx2{"fully_connected_f32_few_rows_avx2", 1, kernels::jit::Isa::kAvx2, kGemm};

} // namespace

matrix_multiply::Geometry geometryOf(Extents const& x, Extents const& w)
{
    int const rank = x.rank;
    int64_t const v = x.volume(rank - 3, rank);
    matrix_multiply::Geometry g;
    g.m = x.volume(0, rank - 3);
    g.n = w[0];
    g.k = v;
    g.aRow = v;
    g.aColumn = 1;
    g.bRow = 1;
    g.bColumn = v;
    return g;
}

std::span<Tactic const* const> cpuTactics()
{
    static constexpr Tactic const* kList[] = {&kFewRowsAvx512, &kFewRowsAvx2, &kAvx512, &kAvx2, &kPlain};
    return kList;
}

} // namespace tw::ops::fully_connected
