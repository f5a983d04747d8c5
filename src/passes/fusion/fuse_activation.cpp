// SPDX-License-Identifier: Apache-2.0
// Makes one node of a convolution or matrix product and what is computed on its result element by element.
//   conv(x, w, b) -> activation                  ->  conv(x, w, b; f), transposed or not; connected(x, w, b) likewise
//   conv(x, w, b) -> + r -> activation           ->  conv(x, w, b, r; f), r of the same shape; f may be none
//   matmul(a, b) -> + const[n] -> + r -> activation  ->  matmul(a, b, bias, r; f), r of the same shape; any of the
//                                                   three may be missing
// An activation is the layer of that name, or one that several nodes make (match_activation.h).
// Expects Form::kCanonical. Stands after fold_scale_into_convolution, which takes constants first. Where both operands
// of a residual sum are convolutions, the later one takes it. The fused node's body holds the nodes it stands for.
// Leaves alone: nodes that have an epilogue, results that others read too, and nodes whose wishes of the user differ.
#include <algorithm>

#include "ops/activation/op.h"
#include "ops/convolution/op.h"
#include "ops/elementwise/op.h"
#include "ops/matrix_multiply/op.h"
#include "passes/fuse_nodes.h"
#include "passes/fusion/match_activation.h"
#include "passes/list.h"
#include "passes/node_kinds.h"
#include "passes/quantization/quantization.h"
#include "passes/rewrite.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

using ops::matrix_multiply::isBareProduct;

// What will be one node, in order of execution.
struct EpilogueChain
{
    std::vector<ir::Node*> nodes;
    ir::Value* residual = nullptr; // of a convolution or matrix product
    ir::Value* bias = nullptr;     // of a matrix product: the sum's constant, of the result's rank
    ops::FusedActivation activation;

    ir::Value* result() const { return nodes.back()->outputs[0]; }
};

// Whether the user's wishes let the node join the chain.
bool mayJoin(EpilogueChain const& c, ir::Node const& n)
{
    return std::ranges::all_of(c.nodes, [&](ir::Node const* m) { return canJoin(*m, n); });
}

// The only reader of the chain's result when it may join the chain; else null.
ir::Node* reader(ir::Graph const& g, EpilogueChain const& c)
{
    ir::Value const* y = c.result();
    ir::Node* const n = nextOf(g, c.nodes.back());
    bool const fits = n && n->outputs.size() == 1 && n->outputs[0]->type == y->type && n->outputs[0]->shape == y->shape;
    return fits && mayJoin(c, *n) ? n : nullptr;
}

// The other operand when `n` adds something to `y`.
ir::Value* addedTo(ir::Node const* n, ir::Value const* y)
{
    return is(n, ops::elementwise::Operation::kSum) ? otherInput(n, y) : nullptr;
}

bool isBias(ir::Value const& v, ir::Value const& y)
{
    return v.type == y.type && v.rank() == y.rank() && isConstantOf(v, 1) && y.shape.back().isConst() &&
           v.shape.back() == y.shape.back();
}

// Whether a sum with another tensor can be a part of `head`, whose result is `y`. A missing bias becomes zeros, which
// need a known size.
bool takesResidual(ir::Node const& head, ir::Value const& y)
{
    if (isBareProduct(head))
        return head.attrsAs<ops::matrix_multiply::Attrs>().b != ops::matrix_multiply::MatrixOperation::kVector &&
               y.rank() > 0 && y.shape.back().isConst();
    return ops::convolution::isBareForward(head);
}

void takeActivation(ir::Graph const& g, EpilogueChain& c, recipe::Recipes const* refit)
{
    auto const found = matchActivation(g, c.result(), refit);
    if (!found)
        return;
    for (ir::Node const* n : found->nodes)
        if (!mayJoin(c, *n))
            return;
    c.activation = found->activation;
    c.nodes.insert(c.nodes.end(), found->nodes.begin(), found->nodes.end());
}

EpilogueChain chainFrom(ir::Graph const& g, ir::Node* head, recipe::Recipes const* refit)
{
    EpilogueChain c;
    c.nodes = {head};
    ir::Value const* y = c.result();
    ir::Node* n = reader(g, c);
    ir::Value* other = addedTo(n, y);
    if (other && isBareProduct(*head) && isBias(*other, *y) &&
        head->attrsAs<ops::matrix_multiply::Attrs>().b != ops::matrix_multiply::MatrixOperation::kVector) {
        c.bias = other;
        c.nodes.push_back(n);
        y = c.result();
        n = reader(g, c);
        other = addedTo(n, y);
    }
    if (other) {
        if (!takesResidual(*head, *y) || other->type != y->type || !(other->shape == y->shape))
            return c;
        c.residual = other;
        c.nodes.push_back(n);
    }
    takeActivation(g, c, refit);
    return c;
}

Result<void> fuse(ir::Graph& g, EpilogueChain const& c)
{
    ir::Node& head = *c.nodes[0];
    ir::Value const& w = *head.inputs[1];
    if (c.residual && !c.bias && head.inputs.size() <= ops::Epilogue::kBias)
        head.inputs.push_back(
            zeroBias(g, w, isBareProduct(head) ? c.result()->shape.back().value() : w.shape[0].value()));
    auto inputs = mapped(head.inputs, [&](ir::Value* v) { return FusedInput{v, v}; });
    if (c.bias)
        inputs.push_back({asVector(g, *c.bias), c.bias});
    if (c.residual)
        inputs.push_back({c.residual, c.residual});
    std::unique_ptr<ir::AttrsBase> attrs = head.attrs->clone();
    epilogueOf(*attrs, head).activation = c.activation;
    TW_TRY(fuseNodes(g, c.nodes, *head.op, std::move(attrs), inputs));
    return {};
}

} // namespace

Result<bool> fuseActivation(ir::Graph& g, PassContext const& ctx)
{
    auto const isHead = [](ir::Node const& n) {
        return ops::convolution::isBare(n) || ops::matrix_multiply::isBare(n);
    };
    auto const fuseFrom = [&](ir::Node& head) -> Result<bool> {
        EpilogueChain const c = chainFrom(g, &head, ctx.recipes);
        if (c.nodes.size() < 2)
            return false;
        ctx.log.info("fused {}", namesOf(c.nodes));
        TW_TRY(fuse(g, c));
        return true;
    };
    return rewriteEach(g, isHead, fuseFrom, Order::kFromTheEnd);
}

} // namespace tw::passes
