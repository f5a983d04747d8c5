// SPDX-License-Identifier: Apache-2.0
// Makes an expression of elements a part of the convolution or matrix product whose result it reads.
//   before: conv(x, w, b; swish) -> + r                 after: conv(x, w, b, r; swish(·) + r)
//   before: matmul(a, b) -> pointwise(·, r)             after: matmul(a, b, bias, r; the expression)
// Takes pointwise nodes, and single sums, products, extremes, activations and unary functions, that read the result
// and at most one other tensor of its shape and type, of floats. Expects Form::kFused. Stands after fuse_pointwise,
// which has made one node of what belongs together, and after all that looks for integers. The fused node's body
// holds the nodes it stands for. Leaves alone: results that others read, nodes with a residual, a norm, a gate or
// scales, expressions whose results leave the range of FP16 (choose_precisions), nodes whose wishes of the user
// differ.
#include <algorithm>

#include "ops/activation/op.h"
#include "ops/convolution/op.h"
#include "ops/elementwise/op.h"
#include "ops/matrix_multiply/op.h"
#include "ops/pointwise/op.h"
#include "ops/unary/op.h"
#include "passes/fuse_nodes.h"
#include "passes/list.h"
#include "passes/precision/precision.h"
#include "passes/rewrite.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

using ops::Epilogue;

Epilogue const* epilogueOf(ir::Node const& n)
{
    if (n.op == &ops::convolution::def())
        return &n.attrsAs<ops::convolution::Attrs>().epilogue;
    return n.op == &ops::matrix_multiply::def() ? &n.attrsAs<ops::matrix_multiply::Attrs>().epilogue : nullptr;
}

// Whether steps may follow its sums.
bool takesSteps(ir::Node const& n)
{
    Epilogue const* const e = epilogueOf(n);
    if (!e || e->hasSteps() || !isFloating(n.inputs[0]->type) || ops::hasInput(n, Epilogue::kResidual))
        return false;
    if (n.op == &ops::convolution::def())
        return !n.attrsAs<ops::convolution::Attrs>().transposed;
    auto const& a = n.attrsAs<ops::matrix_multiply::Attrs>();
    ir::Shape const& y = n.outputs[0]->shape;
    return !a.gated && !ops::matrix_multiply::hasNorm(n) && a.b != ops::matrix_multiply::MatrixOperation::kVector &&
           !y.empty() && y.back().isConst();
}

// The expression of a node of elements, whose inputs are its values; empty where it has none.
std::vector<ExpressionStep> expressionOf(ir::Node const& n)
{
    if (n.op == &ops::pointwise::def()) {
        auto const& a = n.attrsAs<ops::pointwise::Attrs>();
        return ops::stepsOf(a.steps, a.parameters);
    }
    if (n.op == &ops::activation::def()) {
        auto const& a = n.attrsAs<ops::activation::Attrs>();
        return {{StepCode::kActivation, 0, 0, ActivationKind(a.kind), a.alpha, a.beta}};
    }
    std::optional<StepCode> code;
    if (n.op == &ops::unary::def())
        code = ops::stepOf(n.attrsAs<ops::unary::Attrs>().operation);
    else if (n.op == &ops::elementwise::def())
        code = ops::stepOf(n.attrsAs<ops::elementwise::Attrs>().operation);
    if (!code)
        return {};
    return {{*code, 0, operandsOf(*code) > 1 ? 1 : 0}};
}

// Whether results keep to the range of the sums: FP16 may hold them as well as these.
bool keepsRange(ExpressionStep const& last)
{
    using enum StepCode;
    constexpr StepCode kCodes[] = {kAdd, kSub, kMax, kMin, kParametricRelu, kAbs, kNegate, kErf, kActivation};
    return contains(kCodes, last.code) || (last.code == kMul && last.a != last.b);
}

struct Found
{
    ir::Node *head, *last;
    ir::Value* residual = nullptr;
    std::vector<ExpressionStep> steps; // of the sum with its bias, and the residual
};

std::optional<Found> find(ir::Graph const& g, ir::Node& head)
{
    ir::Value* const y = head.outputs[0];
    ir::Node* const n = takesSteps(head) ? nextOf(g, &head) : nullptr;
    if (!n || n->outputs.size() != 1 || n->outputs[0]->type != y->type || !(n->outputs[0]->shape == y->shape) ||
        !canJoin(head, *n))
        return std::nullopt;
    std::vector<ExpressionStep> const given = expressionOf(*n);
    if (given.empty() || !keepsRange(given.back()))
        return std::nullopt;
    Found f{&head, n, nullptr, {}};
    std::vector<int> values; // of the node's inputs and steps, in the fused expression
    for (ir::Value* v : n->inputs) {
        if (v == y) {
            values.push_back(0);
            continue;
        }
        if (!v || (f.residual && v != f.residual) || v->type != y->type || !(v->shape == y->shape) || v->isConstant())
            return std::nullopt;
        f.residual = v;
        values.push_back(1);
    }
    int const inputs = f.residual ? 2 : 1;
    Epilogue const& e = *epilogueOf(head);
    if (e.activation.any()) {
        f.steps.push_back(
            {StepCode::kActivation, 0, 0, ActivationKind(e.activation.kind), e.activation.alpha, e.activation.beta});
        for (int& v : values)
            v = v == 0 ? inputs : v;
    }
    for (ExpressionStep s : given) {
        if (operandsOf(s.code) > 0)
            s.a = values[size_t(s.a)];
        if (operandsOf(s.code) > 1)
            s.b = values[size_t(s.b)];
        values.push_back(inputs + int(f.steps.size()));
        f.steps.push_back(s);
    }
    return f;
}

std::unique_ptr<ir::AttrsBase> attrsOf(Found const& f)
{
    std::unique_ptr<ir::AttrsBase> attrs = f.head->attrs->clone();
    Epilogue& e = f.head->op == &ops::convolution::def() ? static_cast<ops::convolution::Attrs&>(*attrs).epilogue
                                                         : static_cast<ops::matrix_multiply::Attrs&>(*attrs).epilogue;
    e.activation = {};
    for (ExpressionStep const& s : f.steps)
        ops::appendStep(s, e.steps, e.parameters);
    return attrs;
}

Result<void> fuse(ir::Graph& g, Found const& f)
{
    std::vector<ir::Value*> values = f.head->inputs;
    if (f.residual) {
        values.resize(Epilogue::kResidual);
        if (ir::Value*& bias = values[Epilogue::kBias]; !bias)
            bias = zeroBias(g, *values[1],
                            f.head->op == &ops::convolution::def() ? values[1]->shape[0].value()
                                                                   : f.last->outputs[0]->shape.back().value());
        values.push_back(f.residual);
    }
    auto inputs = mapped(values, [&](ir::Value* v) { return FusedInput{v, v}; });
    TW_TRY(fuseNodes(g, {f.head, f.last}, *f.head->op, attrsOf(f), inputs));
    return {};
}

} // namespace

Result<bool> fuseEpilogue(ir::Graph& g, PassContext const& ctx)
{
    auto const fuseBehind = [&](ir::Node& head) -> Result<bool> {
        auto const found = find(g, head);
        if (!found)
            return false;
        ctx.log.info("fused {}", namesOf({found->head, found->last}));
        TW_TRY(fuse(g, *found));
        return true;
    };
    // Of two results that are added the later one takes the other.
    return rewriteEach(g, takesSteps, fuseBehind, Order::kFromTheEnd);
}

} // namespace tw::passes
