// SPDX-License-Identifier: Apache-2.0
#include "kernels/gemm_plain.h"
#include "ops/fully_connected/op.h"
#include "ops/tactic.h"

namespace tw::ops::fully_connected {

namespace {

// y [batch, K] = x [batch, V] times w [K, V] transposed.
kernels::GemmShape shapeOf(TensorRef const& x, TensorRef const& w)
{
    int const rank = x.dims.rank;
    int64_t const v = x.dims.volume(rank - 3, rank);
    return {x.dims.volume(0, rank - 3), w.dims[0], v, v, 1, 1, v};
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

} // namespace

std::span<Tactic const* const> cpuTactics()
{
    static constexpr Tactic const* kList[] = {&kPlain};
    return kList;
}

} // namespace tw::ops::fully_connected
