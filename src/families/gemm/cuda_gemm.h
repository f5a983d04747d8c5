// SPDX-License-Identifier: Apache-2.0
// What CUDA tactics of every op that is a matrix product, y = f(a b + bias + residual), share: how a node is one, and
// its collections of matrices as rows, batches and launches.
#pragma once

#include "families/elementwise/activate.h"
#include "ops/matrix_multiply/op.h"
#include "tactic/tactic.h"

namespace tw::ops {

// How a node's inputs 0 and 1 are a and b.
struct CudaProductOp
{
    matrix_multiply::Geometry (*geometry)(ir::Node const& node, Extents const& a, Extents const& b);
    // Which of a and b are stored with their last two dimensions the other way round.
    matrix_multiply::Attrs (*operations)(ir::Node const& node);
    FusedActivation const& (*activation)(ir::Node const& node) = nullptr; // null: none
    int bias = -1, residual = -1;                                         // inputs; -1: none
    int gamma = -1, beta = -1;                                            // of a LayerNorm of y's rows
    double (*epsilon)(ir::Node const& node) = nullptr;
};

bool isPresent(Problem const& problem, int input); // input: -1 is none
// Whether that dimension of `v`, counted from the last one, is known when the engine is built.
bool isKnown(ir::Value const& v, size_t fromEnd);

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
