// SPDX-License-Identifier: Apache-2.0
// What CUDA tactics of matrix products, y = f(a b + bias + residual), share: collections of matrices as rows, batches
// and launches.
#pragma once

#include "families/elementwise/activate.h"
#include "ops/matrix_multiply/op.h"
#include "tactic/tactic.h"

namespace tw::ops {

bool isPresent(Problem const& problem, int input);
// Whether that dimension of `v`, counted from the last one, is known when the engine is built.
bool isKnown(ir::Value const& v, size_t fromEnd);
// No where rows are normalized, or (`wanted`) where they are not.
Support supportsNorm(Problem const& problem, bool wanted);
// Refuses gated products.
Support supportsAllColumns(Problem const& problem);

// Collections of a that follow each other as rows do are rows, where all have the same b. Strides in elements.
struct ProductRows
{
    int64_t m = 0, lda = 0, ldb = 0; // ld: from one stored row to the next
    Extents batch, aBatch, bBatch;   // what is left of the collections, the first dimension outermost
};
// `alongK`: stored with the summed dimension as the inner one.
ProductRows rowsOf(matrix_multiply::Geometry const& g, bool aAlongK, bool bAlongK);

// What is left of collections, as one step from matrix to matrix, and launches of their own where it takes more.
struct ProductBatches
{
    int64_t batch = 1, batchA = 0, batchB = 0;
    Extents outer, aOuter, bOuter; // the first dimension outermost
};
ProductBatches batchesOf(Extents const& batch, Extents const& a, Extents const& b);
constexpr int64_t kMostProductLaunches = 64;

} // namespace tw::ops
