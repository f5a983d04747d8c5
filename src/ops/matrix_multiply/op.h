// SPDX-License-Identifier: Apache-2.0
// y[B, m, n] = sum over k of a[B, m, k] * b[B, k, n]   a, b: f32 or f16, one type; collections B of equal rank whose
// dimensions are equal or 1 (broadcast). An operation for each input: none, transpose (its last two dimensions are
// swapped first), vector (its last dimension alone is a row m = 1 for input 0, a column n = 1 for input 1, and y has no
// dimension for it). [m,0] x [0,n] gives zeros.
#pragma once

#include "base/extents.h"
#include "ir/attrs.h"
#include "ir/op_def.h"

namespace tw::ops::matrix_multiply {

enum class MatrixOperation : int32_t // same numbers as nvinfer1::MatrixOperation
{
    kNone = 0,
    kTranspose = 1,
    kVector = 2,
};

struct Attrs : ir::AttrsOf<Attrs>
{
    MatrixOperation a = MatrixOperation::kNone, b = MatrixOperation::kNone;

    void visit(ir::AttrVisitor& v) override
    {
        v.field(1, "a", a);
        v.field(2, "b", b);
    }
};

// The operands as matrices: strides in elements; those of the collections are 0 where an operand is broadcast.
struct Geometry
{
    Extents batch;          // collection dimensions of y
    Extents aBatch, bBatch; // strides
    int64_t m = 1, n = 1, k = 0;
    int64_t aRow = 0, aColumn = 0, bRow = 0, bColumn = 0;
};
Geometry geometryOf(Attrs const& attrs, Extents const& a, Extents const& b);

Result<void> reference(RefContext& ctx);
std::span<Tactic const* const> cpuTactics();
std::span<Tactic const* const> cudaTactics();

} // namespace tw::ops::matrix_multiply
