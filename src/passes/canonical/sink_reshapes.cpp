// SPDX-License-Identifier: Apache-2.0
// Moves reshapes that only join leading dimensions after the matrix products that read them, and on after
// element-wise nodes, until they meet the reshape that takes the dimensions apart again:
//   reshape(x [.., k] to [r, k]) -> matmul(., w[k, n]) -> + bias -> reshape to [.., n]
//     ->  matmul(x, w[1.., k, n]) -> + bias
// so that bias, residual and activation stand next to the product that will take them. A reshape costs nothing by
// itself: nothing else changes.
// Expects Form::kCanonical. Stands after fuse_attention, which reads reshapes through and leaves some, and before
// fuse_activation. Leaves alone: operands that are no constants, matrices of their own for each batch, dimensions that
// attributes of a reshape cannot say.
#include <algorithm>

#include "ops/activation/op.h"
#include "ops/elementwise/op.h"
#include "ops/matrix_multiply/op.h"
#include "ops/unary/op.h"
#include "passes/fuse_nodes.h"
#include "passes/lifted_nodes.h"
#include "passes/list.h"
#include "passes/node_kinds.h"
#include "passes/rewrite.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

using ops::matrix_multiply::MatrixOperation;

// The tensor after a reshape that keeps the last dimension and makes the rank smaller; null: `v` is none.
ir::Value* beforeReshape(ir::Value const* v)
{
    ir::Node const* n = v->producer;
    if (!isReshape(n))
        return nullptr;
    ir::Value* x = n->inputs[0];
    return v->rank() >= 2 && x->rank() > v->rank() && x->shape.back() == v->shape.back() ? x : nullptr;
}

// Inputs of `n` with the reshape before input `from` left out; empty: it cannot be.
std::vector<ir::Value*> lifted(ir::Graph& g, ir::Node const& n, size_t& from)
{
    using namespace ops;
    for (from = 0; from < n.inputs.size(); ++from) {
        ir::Value* x = n.inputs[from] ? beforeReshape(n.inputs[from]) : nullptr;
        if (!x)
            continue;
        if (n.op == &activation::def() || n.op == &unary::def())
            return {x};
        if (matrix_multiply::isBareProduct(n)) {
            auto const& a = n.attrsAs<matrix_multiply::Attrs>();
            ir::Value const& w = *n.inputs[1];
            bool const plain = a.a == MatrixOperation::kNone && a.b != MatrixOperation::kVector;
            bool const oneMatrix = w.isConstant() && std::all_of(w.shape.begin(), w.shape.end() - 2,
                                                                 [](ir::Dim const& d) { return d.is(1); });
            if (from == 0 && plain && oneMatrix)
                return {x, withRank(g, w, x->rank())};
        } else if (n.op == &elementwise::def() && n.inputs[from]->shape == n.outputs[0]->shape) {
            ir::Value const& other = *n.inputs[1 - from];
            ir::Value* lifted = nullptr;
            if (&other == n.inputs[from])
                lifted = x;
            else if (isConstantOf(other, 1))
                lifted = withRank(g, other, x->rank());
            else if (ir::Value* y = beforeReshape(&other); y && y->shape == x->shape)
                lifted = y;
            if (lifted)
                return from == 0 ? std::vector<ir::Value*>{x, lifted} : std::vector<ir::Value*>{lifted, x};
        }
    }
    return {};
}

Result<bool> lift(ir::Graph& g, ir::Node* n)
{
    if (n->outputs.size() != 1)
        return false;
    size_t from = 0;
    auto const inputs = lifted(g, *n, from);
    if (inputs.empty() || !canJoin(*n->inputs[from]->producer, *n))
        return false;
    TW_ASSIGN(ir::Value * moved, liftNode(g, n, n->attrs->clone(), inputs, ".lifted"));
    return moved != nullptr;
}

} // namespace

Result<bool> sinkReshapes(ir::Graph& g, PassContext const& ctx)
{
    return liftEach(g, ctx, [&](ir::Node* n) { return lift(g, n); });
}

} // namespace tw::passes
