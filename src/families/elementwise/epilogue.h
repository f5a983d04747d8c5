// SPDX-License-Identifier: Apache-2.0
// What an op of sums (a matrix product, a convolution) does with them before it stores them, in one kernel:
//   y = norm(f(sum + bias + residual))
// Bias, residual and the norm's gamma and beta are optional inputs at the same places in every such op; each op says
// which of them it takes. See docs/adr/0006-one-op-with-an-epilogue.md.
#pragma once

#include <functional>

#include "families/elementwise/activate.h"

namespace tw::ir {
class InferContext;
struct Node;
} // namespace tw::ir

namespace tw::ops {

class RefContext;
struct Tolerance;

struct Epilogue
{
    enum Input : int // positions after the two factors
    {
        kBias = 2,
        kResidual = 3, // of y's shape and type
        kGamma = 4,
        kBeta = 5,
    };

    FusedActivation activation;
    double epsilon = 1e-5; // of the norm, which is there where gamma and beta are

    // Three numbers from `first` on.
    void visit(ir::AttrVisitor& v, int first) { activation.visit(v, first); }
    // For ops that take a norm.
    void visitNorm(ir::AttrVisitor& v, int number) { v.field(number, "epsilon", epsilon); }
};

// Whether the node has such an input.
bool hasInput(ir::Node const& node, int input);
// The activation, and a residual if there is one, against output 0, whose type and shape are known.
Result<void> inferEpilogue(ir::InferContext& ctx, Epilogue const& epilogue);
// What rounding errors of a kernel may come to: they are relative to the largest sum, and tolerances to the largest
// output. Where an activation flattens large sums, their size comes from the weights: over random factors in [-1, 1]
// the largest of many sums is about four standard deviations, each sqrt(sum of w^2 / 3). `largestSquares` gives the
// largest sum of w^2 of an output; it is asked where the activation flattens.
Tolerance epilogueTolerance(Epilogue const& epilogue, DataType type, std::function<double()> const& largestSquares);
// By the reference: adds the residual to the wanted elements of output 0 and applies the activation.
Result<void> finishReference(RefContext& ctx, Epilogue const& epilogue);

} // namespace tw::ops
