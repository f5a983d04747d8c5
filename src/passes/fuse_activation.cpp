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
#include "ops/shuffle/op.h"
#include "passes/fuse_nodes.h"
#include "passes/list.h"
#include "passes/match_activation.h"
#include "passes/precision.h"
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

// The only reader of the chain's result when it may join the chain; else null.
ir::Node* reader(ir::Graph const& g, EpilogueChain const& c)
{
    ir::Value const* y = c.result();
    if (onlyProducer(g, y) == nullptr)
        return nullptr;
    for (auto const& n : g.nodes) {
        if (std::find(n->inputs.begin(), n->inputs.end(), y) == n->inputs.end())
            continue;
        bool const fits = std::all_of(c.nodes.begin(), c.nodes.end(), [&](ir::Node* m) { return canJoin(*m, *n); }) &&
                          n->outputs.size() == 1 && n->outputs[0]->type == y->type && n->outputs[0]->shape == y->shape;
        return fits ? n.get() : nullptr;
    }
    return nullptr;
}

// The other operand when `n` adds something to `y`.
ir::Value* addedTo(ir::Node const* n, ir::Value const* y)
{
    if (!n || n->op != &ops::elementwise::def() ||
        n->attrsAs<ops::elementwise::Attrs>().operation != ops::elementwise::Operation::kSum)
        return nullptr;
    return n->inputs[n->inputs[0] == y ? 1 : 0];
}

bool isBias(ir::Value const& v, ir::Value const& y)
{
    if (!v.isConstant() || v.type != y.type || v.rank() != y.rank() || v.rank() == 0 || !y.shape.back().isConst())
        return false;
    for (int i = 0; i + 1 < v.rank(); ++i)
        if (!v.shape[size_t(i)].is(1))
            return false;
    return v.shape.back() == y.shape.back();
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
    if (auto product = matchActivation(g, c.result(), refit)) {
        for (ir::Node const* n : product->nodes)
            if (!std::all_of(c.nodes.begin(), c.nodes.end(), [&](ir::Node* m) { return canJoin(*m, *n); }))
                return;
        c.activation = product->activation;
        c.nodes.insert(c.nodes.end(), product->nodes.begin(), product->nodes.end());
        return;
    }
    ir::Node* n = reader(g, c);
    if (!n || n->op != &ops::activation::def())
        return;
    c.activation = ops::FusedActivation(n->attrsAs<ops::activation::Attrs>());
    c.nodes.push_back(n);
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

// The chain as a graph of its own; `inputs` are those of the fused node.
Result<std::unique_ptr<ir::Graph>> bodyOf(ir::Graph const& g, EpilogueChain const& c,
                                          std::vector<ir::Value*> const& inputs)
{
    auto body = std::make_unique<ir::Graph>();
    body->name = c.nodes[0]->name;
    body->form = g.form;
    body->symbols = g.symbols;
    std::map<ir::Value const*, ir::Value*> to;
    to[nullptr] = nullptr;
    for (ir::Value const* v : inputs)
        to[v] = body->addInput(v->name, v->type, v->shape);
    bool const product = isBareProduct(*c.nodes[0]);
    bool const noBias = product && c.residual && !c.bias;
    ir::Value* row = nullptr; // the bias with the result's rank
    if (c.bias || noBias) {
        ops::shuffle::Attrs a;
        a.hasReshape = true;
        a.reshape.assign(size_t(c.result()->rank()), 1);
        a.reshape.back() = inputs[2]->shape[0].value();
        TW_ASSIGN(ir::Node * reshaped,
                  body->addNode(ops::shuffle::def(), a.clone(), {to.at(inputs[2])}, inputs[2]->name + ".row"));
        row = reshaped->outputs[0];
        if (c.bias)
            to[c.bias] = row;
    }
    for (ir::Node const* n : c.nodes) {
        std::vector<ir::Value*> in;
        for (ir::Value const* v : n->inputs) {
            if (!to.contains(v) && v->isConstant()) // of an activation that several nodes make
                to[v] = body->addConstant(v->name, v->type, ir::extentsOf(v->shape), v->constant);
            in.push_back(to.at(v));
        }
        if (n == c.nodes[0] && !product && c.residual && n->inputs.size() < 3)
            in.push_back(to.at(inputs[2])); // the zero bias
        ir::Value* y = body->cloneNode(*n, std::move(in))->outputs[0];
        if (n == c.nodes[0] && noBias) {
            ops::elementwise::Attrs const sum(ops::elementwise::Operation::kSum);
            TW_ASSIGN(ir::Node * added,
                      body->addNode(ops::elementwise::def(), sum.clone(), {y, row}, inputs[2]->name + ".sum"));
            y = added->outputs[0];
        }
        to[n->outputs[0]] = y;
    }
    body->outputs = {to.at(c.result())};
    return body;
}

std::unique_ptr<ir::AttrsBase> attrsOf(EpilogueChain const& c)
{
    std::unique_ptr<ir::AttrsBase> attrs = c.nodes[0]->attrs->clone();
    ops::Epilogue& epilogue = c.nodes[0]->op == &ops::convolution::def()
                                  ? static_cast<ops::convolution::Attrs&>(*attrs).epilogue
                                  : static_cast<ops::matrix_multiply::Attrs&>(*attrs).epilogue;
    epilogue.activation = c.activation;
    return attrs;
}

Result<void> fuse(ir::Graph& g, EpilogueChain const& c)
{
    ir::Node const& head = *c.nodes[0];
    bool const product = isBareProduct(head);
    std::vector<ir::Value*> inputs = head.inputs;
    if (c.bias)
        inputs.push_back(asVector(g, *c.bias));
    if (c.residual) {
        if (inputs.size() <= ops::Epilogue::kBias)
            inputs.push_back(
                zeroBias(g, *inputs[1], product ? c.result()->shape.back().value() : inputs[1]->shape[0].value()));
        inputs.push_back(c.residual);
    }
    TW_ASSIGN(auto body, bodyOf(g, c, inputs));
    TW_ASSIGN(ir::Node * fused,
              g.addNode(*head.op, attrsOf(c), inputs, head.name, {}, g.positionOf(c.nodes.back()), std::move(body)));
    TW_TRY(fitBody(*fused));
    replaceNodes(g, c.nodes, *fused);
    return {};
}

} // namespace

Result<bool> fuseActivation(ir::Graph& g, PassContext const& ctx)
{
    std::vector<ir::Node*> heads;
    for (auto n = g.nodes.rbegin(); n != g.nodes.rend(); ++n)
        if (ops::convolution::isBare(**n) || ops::matrix_multiply::isBare(**n))
            heads.push_back(n->get());
    bool changed = false;
    for (ir::Node* head : heads) {
        EpilogueChain const c = chainFrom(g, head, ctx.recipes);
        if (c.nodes.size() < 2)
            continue;
        std::string const name = namesOf(c.nodes);
        TW_TRY(fuse(g, c));
        ctx.log.info("fused " + name);
        changed = true;
    }
    if (changed)
        g.eraseUnusedValues();
    return changed;
}

} // namespace tw::passes
