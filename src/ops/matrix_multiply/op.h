// SPDX-License-Identifier: Apache-2.0
// y = norm(f(a b + bias + r)), where all but a b is optional.
//   (a b)[B, m, n] = sum over k of a[B, m, k] * b[B, k, n]   a, b: f32 or f16, one type; collections B of equal rank
// whose dimensions are equal or 1 (broadcast). An operation for each input: none, transpose (its last two dimensions
// are swapped first), vector (its last dimension alone is a row m = 1 for input 0, a column n = 1 for input 1, and y
// has no dimension for it). [m,0] x [0,n] gives zeros.
// Connected (a fully connected layer): a [N.., C, H, W] has k = C H W, b [n, ...] in any shape of that volume after n
// is transposed, y [N.., n, 1, 1].
// bias [n], one number for each column of y, where b is no vector; r: shape and type of y; f: an activation.
// norm: LayerNorm over the n numbers of each row x, (x - mean) / sqrt(variance + epsilon) * gamma + beta with gamma and
// beta [n], where both are given; then bias and r are, too, and neither operand is a vector or connected.
// Gated, b (and bias) has 2 n columns, gates first: y = f(x[.., 0 .. n]) * x[.., n .. 2 n] with x = a b + bias; without
// r and norm, and b is neither a vector nor connected. Geometry tells 2 n.
// first_norm: the rows of a are normalized first, each over its k numbers x, (x - mean) / sqrt(variance + first_epsilon),
// with the mean as 0 where it is RMS. Gamma and beta of such a norm are a part of b and bias: (gamma x + beta) b. a is then
// neither transposed nor a vector nor connected, and y has no norm of its own.
// a and b may be i8: what follows the sums is then computed in f32 (families/elementwise/epilogue.h), and there is
// neither gate nor norm.
// A node that passes made of several has them as its body.
#pragma once

#include "base/extents.h"
#include "families/elementwise/epilogue.h"
#include "ir/attrs.h"

namespace tw::ops::matrix_multiply {

enum class MatrixOperation : int32_t // same numbers as nvinfer1::MatrixOperation
{
    kNone = 0,
    kTranspose = 1,
    kVector = 2,
};

enum class FirstNorm : int32_t
{
    kNone = 0,
    kLayer = 1,
    kRms = 2,
};

struct Attrs : ir::AttrsOf<Attrs>
{
    MatrixOperation a = MatrixOperation::kNone, b = MatrixOperation::kNone;
    Epilogue epilogue;
    bool connected = false; // with b transposed
    bool gated = false;
    FirstNorm firstNorm = FirstNorm::kNone;
    double firstEpsilon = 1e-5;

    Attrs() = default;
    Attrs(MatrixOperation a, MatrixOperation b, FusedActivation const& f = {}) : a(a), b(b) { epilogue.activation = f; }
    static Attrs fullyConnected(FusedActivation const& f = {})
    {
        Attrs a(MatrixOperation::kNone, MatrixOperation::kTranspose, f);
        a.connected = true;
        return a;
    }
    void visit(ir::AttrVisitor& v) override
    {
        v.field(1, "a", a);
        v.field(2, "b", b);
        epilogue.visit(v, 3); // to 5
        epilogue.visitNorm(v, 6);
        v.field(7, "connected", connected);
        v.field(8, "gated", gated);
        epilogue.visitType(v, 9);
        epilogue.visitSteps(v, 10); // and 11
        v.field(12, "first_norm", firstNorm);
        v.field(13, "first_epsilon", firstEpsilon);
    }
};

enum Input : int
{
    kA,
    kB,
    kInputs = Epilogue::kEnd,
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
inline Geometry geometryOf(ir::Node const& node, Extents const& a, Extents const& b)
{
    return geometryOf(node.attrsAs<Attrs>(), a, b);
}

// A node of this op, of which nothing else has become a part: no residual, activation, gate, norms or body; and no bias
// but that of a fully connected layer.
bool isBare(ir::Node const& node);
// The same; a product of matrices or vectors, or a fully connected layer.
bool isBareProduct(ir::Node const& node);
bool isBareConnected(ir::Node const& node);
inline bool isGated(ir::Node const& node)
{
    return node.attrsAs<Attrs>().gated;
}
// Whether rows are normalized.
inline bool hasNorm(ir::Node const& node)
{
    return hasInput(node, Epilogue::kGamma);
}

// Whether the rows of a are normalized first.
inline bool hasFirstNorm(ir::Node const& node)
{
    return node.attrsAs<Attrs>().firstNorm != FirstNorm::kNone;
}

// Whether the kernel that normalizes rows of n numbers as it makes them may exist.
bool takesRows(int64_t n);

} // namespace tw::ops::matrix_multiply
