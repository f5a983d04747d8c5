// SPDX-License-Identifier: Apache-2.0
// What an op of sums (a matrix product, a convolution) does with them before it stores them, in one kernel:
//   y = norm(f(sum + bias + residual)), or
//   y = e(sum + bias, residual), an expression of steps (base/step_code.h)
// Bias, residual and the norm's gamma and beta are optional inputs at the same places in every such op; each op says
// which of them it takes. See docs/adr/0006-one-op-with-an-epilogue.md and 0019-epilogue-of-steps.md.
//
// Factors of i8 have exact sums, and then, in FP32, each step rounded by itself:
//   t = float(sum) * scale[k] + bias[k]; where there is an inner scale, t = t as i8 * innerScale; + residual;
//   f(t) * outputScale, stored as outputType, i8 by the table where there is one
// bias: f32; an i8 residual counts as float(residual) * residualScale; i8 outputs are rounded half to even and clamped,
// NaN gives 0. There is no norm. See docs/adr/0012-int8-in-the-graph.md.
#pragma once

#include <functional>

#include "base/tensor.h"
#include "families/elementwise/activate.h"
#include "families/elementwise/steps.h"
#include "ir/dim.h"

namespace tw::ir {
class InferContext;
struct Node;
} // namespace tw::ir

namespace tw::ops {

class RefContext;
struct Domain;
struct Tolerance;

struct Epilogue
{
    enum Input : int // positions after the two factors
    {
        kBias = 2,
        kResidual = 3, // of y's shape and type; to i8 factors: i8, or floats, which are y's where y is floats
        kGamma = 4,
        kBeta = 5,
        // Of i8 factors, all f32.
        kScale = 6,         // always there: [], [1], or one for each channel or column of y
        kResidualScale = 7, // [] or [1]; there where the residual is i8
        kOutputScale = 8,   // [] or [1]
        kInnerScale = 9,    // [] or [1]: sum and bias are rounded to i8 first, and that is multiplied by it
        kTable = 10,        // i8 [256], for an i8 y: what becomes of -128 .. 127
        kEnd = 11,
    };
    static constexpr int32_t kAsFactors = -1; // that is f32 for i8 factors

    FusedActivation activation;
    double epsilon = 1e-5;           // of the norm, which is there where gamma and beta are
    int32_t outputType = kAsFactors; // or a DataType
    // Of floats, as in families/elementwise/steps.h: what follows the bias, in place of residual sum and activation.
    // Value 0 is the sum with its bias, 1 the residual's element where there is one. Empty: there are none.
    std::vector<int64_t> steps;
    std::vector<double> parameters;

    bool hasSteps() const { return !steps.empty(); }
    std::vector<ExpressionStep> expression() const { return stepsOf(steps, parameters); }

    // Three numbers from `first` on.
    void visit(ir::AttrVisitor& v, int first) { activation.visit(v, first); }
    // For ops that take a norm.
    void visitNorm(ir::AttrVisitor& v, int number) { v.field(number, "epsilon", epsilon); }
    void visitType(ir::AttrVisitor& v, int number) { v.field(number, "output_type", outputType); }
    // Two numbers.
    void visitSteps(ir::AttrVisitor& v, int first)
    {
        v.field(first, "steps", steps);
        v.field(first + 1, "parameters", parameters);
    }
    DataType typeOf(DataType factors) const;
};

// So many products of -128 and -128 have a sum of 32 bits.
inline constexpr int64_t kMostIntegerFactors = INT32_MAX / (128 * 128);

// Whether the node has such an input.
bool hasInput(ir::Node const& node, int input);
// Whether it sums products of i8.
bool sumsIntegers(ir::Node const& node);
// Whether no element of output 0 is below 0.
bool epilogueIsNonNegative(ir::Node const& node, Epilogue const& epilogue);
// Output 0's type, before it is known otherwise; an error where factors and attributes do not go together. `k`: how
// many factors each sum has.
Result<DataType> inferOutputType(ir::InferContext& ctx, Epilogue const& epilogue, ir::Dim const& k);
// The bias' type: that of the factors, f32 beside i8.
DataType biasType(ir::InferContext const& ctx);
// Activation or steps, and what there is of residual and scales, against output 0, whose type and shape are known,
// and its `channels` (columns; 1 where it has none).
Result<void> inferEpilogue(ir::InferContext& ctx, Epilogue const& epilogue, ir::Dim const& channels);
// Of plain kernels: what the steps make of y, which holds sums with their bias, and of the residual (one without
// data: there is none).
Result<void> finishSteps(Epilogue const& epilogue, TensorRef const& y, TensorRef const& residual);
// What inputs hold where the factors are i8, so that outputs use the range of their type; `k`: how many factors each
// sum has.
void integerDomain(ir::Node const& node, Epilogue const& epilogue, int input, double k, Domain& domain);
// What rounding errors of a kernel may come to: they are relative to the largest sum, and tolerances to the largest
// output. Where an activation flattens large sums, their size comes from the weights: over random factors in [-1, 1]
// the largest of many sums is about four standard deviations, each sqrt(sum of w^2 / 3). `largestSquares` gives the
// largest sum of w^2 of an output; it is asked where the activation flattens.
Tolerance epilogueTolerance(ir::Node const& node, Epilogue const& epilogue, DataType type,
                            std::function<double()> const& largestSquares);
// Of i8 factors: none, unless the activation is more than comparisons and a product.
Tolerance integerTolerance(Epilogue const& epilogue, DataType type);

// By the reference: what becomes of sums of floats or of integers, which are exact in double.
class ReferenceEnd
{
public:
    ReferenceEnd(RefContext& ctx, Epilogue const& epilogue);
    // What the sum of channel k begins with.
    double begin(int64_t k) const;
    // Keeps the sum of an element of channel k.
    void put(int64_t element, int64_t k, double sum) const;
    // When all wanted elements were put.
    Result<void> finish() const;

private:
    float scaled(int64_t element, int64_t k, double sum) const;
    double inTable(double integer) const;
    RefContext& ctx_;
    Epilogue const& epilogue_;
    Tensor steps_; // of integers: t
};

} // namespace tw::ops

// What plain kernels do with sums of i8 (families/elementwise/epilogue.h): FP32, each step rounded by itself.
namespace tw::ops {

class IntegerEnd
{
public:
    // `inputs`: those of the node.
    IntegerEnd(Epilogue const& epilogue, std::span<TensorRef const> inputs, TensorRef const& y);
    // Stores elements [at, at + n) of y from their sums; the first is of channel k, the next of k + kStep (0 or 1).
    void store(int32_t const* sums, int64_t n, int64_t at, int64_t k, int64_t kStep) const;

private:
    FusedActivation const& activation_;
    TensorRef residual_, y_;
    float const *scale_, *bias_, *residualScale_, *outputScale_, *innerScale_; // null: not there
    int8_t const* table_;                                                      // of -128 first; null: there is none
    bool isOneScale_;
};

} // namespace tw::ops
