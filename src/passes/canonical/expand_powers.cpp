// SPDX-License-Identifier: Apache-2.0
// Makes what every backend does fast of powers with a known exponent.
//   x^2 -> x * x    x^3 -> x * x * x    x^-1 -> 1 / x    x^0.5 -> sqrt(x)    x^-0.5 -> 1 / sqrt(x)
// Roots only where x cannot be -0 or -infinity, whose powers are 0 and infinity. (x^1 goes with remove_identities.)
// Any form. Stands before the fusions, which know products and roots. Leaves alone: exponents that refit may
// change or that stretch x, cubes in f16 (their squares have fewer digits), integers.
#include <cmath>

#include "ops/activation/op.h"
#include "ops/elementwise/op.h"
#include "ops/reduce/op.h"
#include "ops/shuffle/op.h"
#include "ops/softmax/op.h"
#include "ops/unary/op.h"
#include "passes/fuse_nodes.h"
#include "passes/list.h"
#include "passes/node_kinds.h"
#include "passes/rewrite.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

using Operation = ops::elementwise::Operation;
using Unary = ops::unary::Operation;

constexpr int kDepth = 6; // of expressions that are looked through

// Whether every element is +0, positive or NaN.
bool isNeverNegative(ir::Value const* v, recipe::Recipes const* refit, int depth = kDepth)
{
    if (auto const number = numberOf(v, refit))
        return *number >= 0 && !std::signbit(*number);
    ir::Node const* n = v->producer;
    if (!n || depth == 0)
        return false;
    auto input = [&](size_t i) { return isNeverNegative(n->inputs[i], refit, depth - 1); };
    auto isPositive = [&](size_t i) {
        auto const number = numberOf(n->inputs[i], refit);
        return number && *number > 0;
    };
    if (n->op == &ops::elementwise::def())
        switch (n->attrsAs<ops::elementwise::Attrs>().operation) {
        case Operation::kProd:
            return n->inputs[0] == n->inputs[1] || (input(0) && input(1));
        case Operation::kSum:
        case Operation::kDiv:
            return input(0) && input(1);
        case Operation::kMax:
            return isPositive(0) || isPositive(1) || (input(0) && input(1));
        default:
            return false;
        }
    if (n->op == &ops::unary::def()) {
        Unary const u = n->attrsAs<ops::unary::Attrs>().operation;
        return u == Unary::kExp || u == Unary::kAbs || (u == Unary::kSqrt && input(0));
    }
    if (n->op == &ops::reduce::def()) {
        auto const kind = n->attrsAs<ops::reduce::Attrs>().kind;
        return (kind == ops::reduce::Kind::kSum || kind == ops::reduce::Kind::kAvg) && input(0);
    }
    if (n->op == &ops::activation::def())
        return n->attrsAs<ops::activation::Attrs>().kind == ops::activation::Kind::kSigmoid;
    return n->op == &ops::softmax::def() || (n->op == &ops::shuffle::def() && input(0));
}

// A node that does part of the work of `power`, before it.
Result<ir::Node*> addPart(ir::Graph& g, ir::Node const& power, char const* part, ir::OpDef const& op,
                          ir::AttrsBase const& attrs, std::vector<ir::Value*> inputs)
{
    TW_ASSIGN(ir::Node * n,
              g.addNode(op, attrs.clone(), std::move(inputs), power.name + part, {}, g.positionOf(&power)));
    takePlaceOf(*n, power);
    return n;
}

Result<bool> expand(ir::Graph& g, ir::Node& power, recipe::Recipes const* refit)
{
    ir::Value *x = power.inputs[0], *y = power.outputs[0];
    auto const exponent = numberOf(power.inputs[1], refit);
    if (!exponent || !isFloating(y->type) || x->type != y->type || !(x->shape == y->shape))
        return false;
    double const e = *exponent;
    bool const cube = e == 3 && isFullFloat(x->type), inverse = e == -1 || e == -0.5;
    bool const root = std::fabs(e) == 0.5 && isNeverNegative(x, refit);
    if (e != 2 && !cube && e != -1 && !root)
        return false;
    if (e == 2 || cube) {
        ops::elementwise::Attrs const product(Operation::kProd);
        ir::Value* factor = x;
        if (cube) {
            TW_ASSIGN(ir::Node * square, addPart(g, power, ".square", ops::elementwise::def(), product, {x, x}));
            factor = square->outputs[0];
        }
        power.attrs = product.clone();
        power.inputs = {factor, x};
        TW_TRY(g.inferNode(power));
        return true;
    }
    ir::Value* from = x;
    ir::Node* last = nullptr;
    if (root) {
        TW_ASSIGN(last, addPart(g, power, inverse ? ".root" : "", ops::unary::def(), ops::unary::Attrs(Unary::kSqrt),
                                {from}));
        from = last->outputs[0];
    }
    if (inverse)
        TW_SET(last, addPart(g, power, "", ops::unary::def(), ops::unary::Attrs(Unary::kRecip), {from}));
    std::string const name = y->name;
    if (!replaceValue(g, y, last->outputs[0]))
        return internalError("the result of power '{}' cannot be replaced", power.name);
    last->outputs[0]->name = name;
    g.eraseNode(&power);
    return true;
}

} // namespace

Result<bool> expandPowers(ir::Graph& g, PassContext const& ctx)
{
    return rewriteEach(
        g, [](ir::Node const& n) { return is(&n, Operation::kPow); },
        [&](ir::Node& n) { return expand(g, n, ctx.recipes); });
}

} // namespace tw::passes
