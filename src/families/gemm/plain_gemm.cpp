// SPDX-License-Identifier: Apache-2.0
#include "families/gemm/plain_gemm.h"

#include "kernels/cpu/gemm_plain.h"

namespace tw::ops {

namespace {

template <class T>
void multiply(matrix_multiply::Geometry const& g, T const* a, T const* b, T* y, void* workspace)
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

} // namespace

int64_t multiplyPlainWorkspaceBytes(matrix_multiply::Attrs const& attrs, TensorRef const& a, TensorRef const& b)
{
    matrix_multiply::Geometry const g = matrix_multiply::geometryOf(attrs, a.dims, b.dims);
    return kernels::gemmPlainWorkspaceBytes(g.m, g.n, g.k);
}

void multiplyPlain(matrix_multiply::Attrs const& attrs, TensorRef const& a, TensorRef const& b, TensorRef const& y,
                   void* workspace)
{
    if (y.count() == 0)
        return;
    matrix_multiply::Geometry const g = matrix_multiply::geometryOf(attrs, a.dims, b.dims);
    if (a.type == DataType::kFloat)
        multiply(g, a.as<float>(), b.as<float>(), y.as<float>(), workspace);
    else
        multiply(g, a.as<uint16_t>(), b.as<uint16_t>(), y.as<uint16_t>(), workspace);
}

} // namespace tw::ops
