// SPDX-License-Identifier: Apache-2.0
#include "kernels/gemm_plain.h"
#include "ops/matrix_multiply/op.h"
#include "ops/tactic.h"

namespace tw::ops::matrix_multiply {

namespace {

template <class T>
void multiply(Geometry const& g, T const* a, T const* b, T* y, void* workspace)
{
    // A transposed matrix times one column is a row times that matrix, whose rows are contiguous.
    bool const swap = g.n == 1 && g.m > 1 && g.aRow == 1;
    kernels::GemmShape s{g.m, g.n, g.k, g.aRow, g.aColumn, g.bRow, g.bColumn};
    if (swap)
        s = {1, g.m, g.k, 0, g.bRow, g.aColumn, g.aRow};
    Counter c(g.batch);
    do {
        T const *pa = a + c.offset(g.aBatch), *pb = b + c.offset(g.bBatch);
        kernels::gemmPlain(s, swap ? pb : pa, swap ? pa : pb, static_cast<T const*>(nullptr), y, workspace);
        y += g.m * g.n;
    } while (c.next());
}

Result<void> run(ir::Node const& node, RunArgs& args)
{
    TensorRef const &a = args.inputs[0], &b = args.inputs[1], &y = args.outputs[0];
    if (y.count() == 0)
        return {};
    Geometry const g = geometryOf(node.attrsAs<Attrs>(), a.dims, b.dims);
    if (a.type == DataType::kFloat)
        multiply(g, a.as<float>(), b.as<float>(), y.as<float>(), args.workspace);
    else
        multiply(g, a.as<uint16_t>(), b.as<uint16_t>(), y.as<uint16_t>(), args.workspace);
    return {};
}

int64_t workspace(ir::Node const& node, std::span<TensorRef const> in, std::span<TensorRef const>)
{
    Geometry const g = geometryOf(node.attrsAs<Attrs>(), in[0].dims, in[1].dims);
    return kernels::gemmPlainWorkspaceBytes(g.m, g.n, g.k);
}

constexpr PlainTactic kPlain{"matrix_multiply_plain", 1, run, workspace};

} // namespace

std::span<Tactic const* const> cpuTactics()
{
    static constexpr Tactic const* kList[] = {&kPlain};
    return kList;
}

} // namespace tw::ops::matrix_multiply
