// SPDX-License-Identifier: Apache-2.0
// What stands between the softmax of an attention and the product that reads its weights, and small questions about
// shuffles there.
#pragma once

#include <optional>
#include <vector>

#include "ops/attention/op.h"
#include "passes/rewrite.h"
#include "passes/strided_view.h"

namespace tw::passes {

// A dequantize of what a quantize by the same step makes, reshapes between them: rounds to multiples of the step.
struct RoundingPair
{
    std::vector<ir::Node*> nodes; // the dequantize first
    double step = 0;

    ir::Value* from() const { return nodes.back()->inputs[0]; }
};
// With `n` as its dequantize; none too where refit may change the step.
std::optional<RoundingPair> roundingPairOf(ir::Node* n, recipe::Recipes const* refit);
// Of shuffles: [B, heads, S, size] from [B, S, heads, size], and back; [S, B, heads, size] from [B, heads, S, size], and from
// [B * heads, S, size] when the first two are one.
inline std::vector<int64_t> const kHeadsInside{0, 2, 1, 3}, kRowsFirst{2, 0, 1, 3}, kRowsOfAllFirst{1, 0, 2};
// most * tanh(..), `n` the product: scores that are to be below a number.
struct ScoreCap
{
    ir::Node* tanh;
    double most;
};
std::optional<ScoreCap> scoreCapOf(ir::Node const* n, recipe::Recipes const* refit);
// The value that `n` multiplies with a number, which goes into `scale`; null when it does something else.
ir::Value* scaledBy(ir::Node const* n, recipe::Recipes const* refit, double& scale);

// Whether a shuffle after the last product makes [S, B, heads, size] of what that makes, whatever it does behind that.
bool hasRowsFirst(ir::Node const& shuffle);
// Whether `three` is `four` with its first two dimensions as one: sequences and heads.
bool joinsHeads(ir::Shape const& four, ir::Shape const& three);
// The shape of a shuffle's result before its second transpose.
ir::Shape beforeTranspose(ir::Node const& shuffle);

// Whether a product leads to `v` through what may stand between it and a softmax. Both operands of a sum may have the shape
// of the scores: this tells them from the mask.
bool isScores(ir::Value const* v);

// where(isnan(p), 0, p): what newer exporters write for rows that a mask leaves nothing of.
struct NanGuard
{
    ir::Value* weights = nullptr; // p
    std::vector<ir::Node*> nodes; // the selection first, what it reads after it
    ir::Node* reader = nullptr;   // of the selection, in input 0
};

struct AttentionWeights
{
    ir::Node* softmax = nullptr;    // null: `product` is no softmax(s) v
    std::vector<ir::Node*> between; // conversions, reshapes and at most one rounding pair
    double step = 0;                // of that
    std::optional<NanGuard> guard;
};
AttentionWeights weightsOf(ir::Node* product, recipe::Recipes const* refit);

// Does after an attention what the guard did inside, by a node of attention_guard. The guard's own nodes go, dead
// ones before them stay.
Result<void> guardResult(ir::Graph& g, ir::Node& attention, NanGuard const& guard);

// `v` -> transposed -> transposed back, a permutation that is its own inverse; the last value.
Result<ir::Value*> transposedTwice(ir::Graph& g, ir::Value* v, std::vector<int64_t> const& permutation);

// `after`, made of `v`, takes the place and the name of `v` for all but `readers`.
void putBehind(ir::Graph& g, ir::Value* v, ir::Value* after, std::vector<ir::Node*> const& readers);

constexpr int kMostOperandNodes = 8; // between an operand and the tensor it is a part of

// A tensor of whose rows q, k or v are a part, as an attention node reads it.
struct AttentionOperand
{
    StridedView view;
    ir::Shape shape; // that the node wants of the view's source
    ops::attention::Operand operand;
    int64_t perKey = 1; // heads of queries that share one
};

// Reads through the deepest chain of reshapes, transposes, slices and gathers that the node can do without. `wanted`:
// [B, heads, S, size], of `v` or, where `turned`, of `v` with its last two dimensions turned over; `v` may have the
// first two as one. None: the node cannot read `v` however it came about. `shared`: keys or values whose heads are repeated,
// each `perKey` times one behind the other, by an expansion and a reshape, and without these two.
std::optional<AttentionOperand> operandOf(ir::Value* v, bool turned, ir::Shape const& wanted, bool shared = false);

// The same of [B, S, heads * size], through one node at least, which may read sizes: for nodes without a body.
std::optional<AttentionOperand> operandOfRows(ir::Value* v, int64_t heads, int64_t size);

// move(source) of integers, which `dequantize` makes numbers of, as move(dequantize(source)): the dequantize in front, which
// is new, and what moves floats, in the order of `moving`. The old ones stay for others.
struct RaisedDequantize
{
    ir::Node* node = nullptr;
    std::vector<ir::Node*> moving;

    ir::Value* result() const { return moving.back()->outputs[0]; }
};
Result<RaisedDequantize> raiseDequantize(ir::Graph& g, ir::Node const& dequantize, ir::Value* source,
                                         std::vector<ir::Node*> const& moving);

} // namespace tw::passes
