// SPDX-License-Identifier: Apache-2.0
// Makes one node of element-wise nodes that feed each other, so that what lies between them never reaches memory.
//   before: scale(x) -> activation -> * y          after: pointwise(x, coefficients, y)
// Takes f32 and f16 sums, products, maxima, minima, differences, quotients, squares, unary functions, activations,
// parametric ReLUs and scales that all have the shape of the last one; what only they read. Small constants become
// numbers in the expression. Between them the expression computes in f32. On GPUs, whose kernels read and write both,
// conversions between the two before others too (a CPU's emitted kernels know f32 alone). On CPUs, dequantize with one scale
// before others (x * s) and quantize behind them (x / s, to i8), too, but one of floats behind a function that is not exact. Expects Form::kFused.
// Stands after every other fusion: convolutions and matrix products take what they can first. The node's body holds the
// nodes it stands for. Leaves alone: graph outputs within, nodes whose wishes of the user differ, single nodes.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/round.h"
#include "ops/activation/op.h"
#include "ops/dequantize/op.h"
#include "ops/elementwise/op.h"
#include "ops/identity/op.h"
#include "ops/parametric_relu/op.h"
#include "ops/pointwise/op.h"
#include "ops/scale/op.h"
#include "ops/unary/op.h"
#include "passes/fuse_nodes.h"
#include "passes/list.h"
#include "passes/quantization/quantization.h"
#include "passes/rewrite.h"
#include "recipe/recipes.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

using ops::pointwise::InputKind;

constexpr int kMostFloatExponent = 126; // of powers of two that FP32 has, and their reciprocals

// The one number of a constant; none where refit may change it.
std::optional<double> scalarOf(ir::Value const* v, recipe::Recipes const* recipes = nullptr)
{
    TensorRef const t = elementsOf(v);
    bool const mayChange = t.data && recipes && recipes->reaches(*v);
    if (!t.data || t.count() != 1 || mayChange || std::isnan(t.get(0)))
        return std::nullopt;
    return t.get(0);
}

// pow with this exponent as a step of one operand.
std::optional<StepCode> powerCode(ir::Node const& n)
{
    auto const exponent = scalarOf(n.inputs[1]);
    return exponent == 2.0 ? std::optional(StepCode::kSquare) : std::nullopt;
}

std::optional<StepCode> codeOf(ir::Node const& n)
{
    if (n.op == &ops::activation::def())
        return StepCode::kActivation;
    if (n.op == &ops::parametric_relu::def())
        return StepCode::kParametricRelu;
    if (n.op == &ops::unary::def())
        return ops::stepOf(n.attrsAs<ops::unary::Attrs>().operation);
    auto const operation = n.attrsAs<ops::elementwise::Attrs>().operation;
    return operation == ops::elementwise::Operation::kPow ? powerCode(n) : ops::stepOf(operation);
}

// A quantize or dequantize with one scale.
bool isUnitChange(ir::Node const& n)
{
    return (isQuantize(&n) && isPerTensor(n)) || (isDequantize(&n) && n.attrsAs<ops::dequantize::Attrs>().axis < 0);
}

bool isPointwise(ir::Node const& n)
{
    using namespace ops;
    if (isUnitChange(n))
        return n.outputs[0]->rank() > 0 && !n.outputs[0]->host;
    bool const isScale = n.op == &scale::def(), isCast = n.op == &identity::def();
    if (!isScale && !isCast && n.op != &activation::def() && n.op != &unary::def() && n.op != &elementwise::def() &&
        n.op != &parametric_relu::def())
        return false;
    if (!isFloating(n.outputs[0]->type) || n.outputs[0]->host || n.outputs[0]->rank() < 1)
        return false;
    for (ir::Value const* v : n.inputs)
        if (v && !isFloating(v->type))
            return false;
    if (isCast)
        return true;
    if (!isScale)
        return codeOf(n).has_value();
    bool const power = n.inputs.size() > 3 && n.inputs[3];
    return !power && n.attrsAs<scale::Attrs>().mode != scale::Mode::kElementwise;
}

// The expression of a set of nodes, the last of which makes the result.
class Expression
{
public:
    // `recipes`: as in PassContext.
    Expression(std::vector<ir::Node*> nodes, recipe::Recipes const* recipes)
        : nodes_(std::move(nodes)), recipes_(recipes)
    {
        build();
    }

    bool isValid() const
    {
        return int(inputs_.size()) <= ops::pointwise::kMaxInputs && inputs_.size() >= 1 && isBroadcast(0) &&
               ops::pointwise::checkExpression(attrs()).empty() && !isRounded();
    }
    // Integers made of floats by a function that is not given exactly in FP32: emitted kernels would round others, so that a quantize
    // of its own behind the function is far faster. (Of one integer it is a table.)
    bool isInexact() const
    {
        bool const isOfFloats =
            std::ranges::any_of(inputs_, [](ir::Value const* v) { return !v->isConstant() && isFloating(v->type); });
        return isOfFloats && isQuantized(nodes_.back()->outputs[0]->type) &&
               std::ranges::any_of(steps_, [](Step const& s) { return !isExact(s.code, ActivationKind(s.kind)); });
    }
    std::vector<ir::Node*> const& nodes() const { return nodes_; }
    std::vector<ir::Value*> const& inputs() const { return inputs_; }
    ops::pointwise::Attrs attrs() const
    {
        ops::pointwise::Attrs a;
        for (Step const& s : steps_) {
            a.steps.insert(a.steps.end(),
                           {int64_t(s.code), s.a < 0 ? 0 : number(s.a), s.b < 0 ? 0 : number(s.b), s.kind});
            a.parameters.insert(a.parameters.end(), {s.alpha, s.beta});
        }
        for (auto const& [kind, axis] : kinds_)
            a.inputs.insert(a.inputs.end(), {int64_t(kind), axis});
        a.outputType = nodes_.back()->outputs[0]->type;
        return a;
    }

private:
    // Operands are keys: of inputs (even), of steps (odd); -1: none.
    struct Step
    {
        StepCode code;
        int a = -1, b = -1;
        int64_t kind = 0;
        double alpha = 0, beta = 0;
    };

    // Integers are made of what a conversion rounds to: it cannot be left out.
    bool isRounded() const
    {
        auto any = [&](auto is) { return std::ranges::any_of(nodes_, [&](ir::Node const* n) { return is(*n); }); };
        return any(isUnitChange) && any(isCast);
    }
    bool isBroadcast(size_t i) const { return kinds_[i].first == InputKind::kBroadcast; }
    int64_t number(int key) const { return key % 2 == 0 ? key / 2 : int64_t(inputs_.size()) + key / 2; }

    int add(Step s)
    {
        steps_.push_back(s);
        return 2 * int(steps_.size() - 1) + 1;
    }
    int input(ir::Value* v, InputKind kind, int64_t axis)
    {
        for (size_t i = 0; i < inputs_.size(); ++i)
            if (inputs_[i] == v && kinds_[i] == std::pair(kind, axis))
                return 2 * int(i);
        inputs_.push_back(v);
        kinds_.emplace_back(kind, axis);
        return 2 * int(inputs_.size() - 1);
    }
    int operand(ir::Value* v, InputKind kind, int64_t axis)
    {
        if (auto made = made_.find(v); made != made_.end())
            return made->second;
        if (auto number = scalarOf(v, recipes_))
            return add({StepCode::kConstant, -1, -1, 0, *number});
        return input(v, kind, axis);
    }

    void build()
    {
        // Inputs that are broadcast stand first: a first walk over the nodes finds them.
        std::set<ir::Value const*> inner;
        for (ir::Node const* n : nodes_)
            inner.insert(n->outputs[0]);
        for (ir::Node* n : nodes_)
            for (size_t i = 0; i < n->inputs.size(); ++i)
                if (ir::Value* v = n->inputs[i];
                    v && !inner.contains(v) && !scalarOf(v, recipes_) && (i == 0 || !(isScale(*n) || isUnitChange(*n))))
                    input(v, InputKind::kBroadcast, 0);
        for (ir::Node* n : nodes_)
            made_[n->outputs[0]] = isScale(*n)        ? scale(*n)
                                   : isUnitChange(*n) ? inOtherUnits(*n)
                                   : isCast(*n)       ? operand(n->inputs[0], InputKind::kBroadcast, 0)
                                                      : step(*n);
    }
    int inOtherUnits(ir::Node const& n)
    {
        int const x = operand(n.inputs[0], InputKind::kBroadcast, 0);
        auto const step = scalarOf(n.inputs[1], recipes_);
        if (isQuantize(&n) && step && isPowerOfTwo(*step, kMostFloatExponent))
            return add({StepCode::kMul, x, add({StepCode::kConstant, -1, -1, 0, 1 / *step})});
        return add({isQuantize(&n) ? StepCode::kDiv : StepCode::kMul, x, operand(n.inputs[1], InputKind::kScalar, 0)});
    }
    static bool isCast(ir::Node const& n) { return n.op == &ops::identity::def(); }
    static bool isScale(ir::Node const& n) { return n.op == &ops::scale::def(); }

    int step(ir::Node& n)
    {
        StepCode const code = *codeOf(n);
        Step s{code};
        s.a = operand(n.inputs[0], InputKind::kBroadcast, 0);
        if (operandsOf(code) > 1)
            s.b = operand(n.inputs[1], InputKind::kBroadcast, 0);
        if (code == StepCode::kActivation) {
            auto const& a = n.attrsAs<ops::activation::Attrs>();
            s.kind = int64_t(a.kind);
            s.alpha = a.alpha;
            s.beta = a.beta;
        }
        return add(s);
    }
    int scale(ir::Node& n)
    {
        auto const& a = n.attrsAs<ops::scale::Attrs>();
        bool const uniform = a.mode == ops::scale::Mode::kUniform;
        InputKind const kind = uniform ? InputKind::kScalar : InputKind::kChannel;
        int value = operand(n.inputs[0], InputKind::kBroadcast, 0);
        for (size_t i : {1, 2})
            if (i < n.inputs.size() && n.inputs[i])
                value = add({i == 1 ? StepCode::kMul : StepCode::kAdd, value,
                             operand(n.inputs[i], kind, uniform ? 0 : a.channelAxis)});
        return value;
    }

    std::vector<ir::Node*> nodes_;
    recipe::Recipes const* recipes_;
    std::vector<ir::Value*> inputs_;
    std::vector<std::pair<InputKind, int64_t>> kinds_;
    std::vector<Step> steps_;
    std::map<ir::Value const*, int> made_;
};

class Clusters
{
public:
    Clusters(ir::Graph& g, PassContext const& ctx) : g_(g), ctx_(ctx)
    {
        for (auto const& n : g.nodes)
            for (ir::Value const* v : n->inputs)
                if (v)
                    readers_[v].push_back(n.get());
    }

    Result<bool> run()
    {
        std::vector<ir::Node*> order;
        for (auto n = g_.nodes.rbegin(); n != g_.nodes.rend(); ++n)
            order.push_back(n->get());
        std::vector<Expression> found;
        for (ir::Node* last : order)
            if (!taken_.contains(last) && isPointwise(*last) && last->op != &ops::identity::def())
                if (auto e = grow(last)) {
                    taken_.insert(e->nodes().begin(), e->nodes().end());
                    found.push_back(std::move(*e));
                }
        for (Expression const& e : found)
            TW_TRY(fuse(e));
        if (!found.empty())
            g_.eraseUnusedValues();
        return !found.empty();
    }

private:
    // Whether `v`, which a node of the cluster reads, can be computed within it.
    bool canTake(ir::Value const* v, std::vector<ir::Node*> const& nodes)
    {
        ir::Node const* p = v ? v->producer : nullptr;
        ir::Value const* y = nodes.back()->outputs[0];
        if (contains(nodes, p) || (p && p->op == &ops::identity::def() && !ctx_.target.gpu()))
            return false;
        if (!p || isQuantize(p) || taken_.contains(const_cast<ir::Node*>(p)) || !isPointwise(*p) || g_.isOutput(v) ||
            !(v->shape == y->shape))
            return false;
        auto const& readers = readers_[v];
        return std::ranges::all_of(readers, [&](ir::Node const* r) { return contains(nodes, r); }) &&
               std::ranges::all_of(nodes, [&](ir::Node const* n) { return canJoin(*p, *n); });
    }

    std::optional<Expression> grow(ir::Node* last)
    {
        std::vector<ir::Node*> nodes{last};
        std::set<ir::Node const*> refused;
        for (bool grown = true; grown;) {
            grown = false;
            for (size_t i = nodes.size(); i-- > 0 && !grown;)
                for (ir::Value* v : nodes[i]->inputs) {
                    if (!canTake(v, nodes) || refused.contains(v->producer))
                        continue;
                    std::vector<ir::Node*> more = nodes;
                    more.push_back(v->producer);
                    std::ranges::sort(more, [&](auto* a, auto* b) { return g_.positionOf(a) < g_.positionOf(b); });
                    if (!Expression(more, ctx_.recipes).isValid()) {
                        refused.insert(v->producer);
                        continue;
                    }
                    nodes = std::move(more);
                    grown = true;
                    break;
                }
        }
        // The shape comes from the inputs: constants and vectors alone may give less than it.
        Expression e(nodes, ctx_.recipes);
        bool const isForPlain = ctx_.target.cpu() && e.isInexact();
        if (nodes.size() < 2 || !e.isValid() || isForPlain || !givesShape(e, *last->outputs[0]))
            return std::nullopt;
        return e;
    }
    static bool givesShape(Expression const& e, ir::Value const& y)
    {
        auto const a = e.attrs();
        for (size_t i = 0; i < e.inputs().size(); ++i) {
            if (a.inputs[i * ops::pointwise::kNumbersOfInput] != int64_t(InputKind::kBroadcast))
                continue;
            if (e.inputs()[i]->shape == y.shape)
                return true;
        }
        return false;
    }

    Result<void> fuse(Expression const& e)
    {
        auto inputs = mapped(e.inputs(), [&](ir::Value* v) { return FusedInput{v, v}; });
        // A later cluster may read what this one makes.
        std::vector<ir::Node*> const readers = readers_[e.nodes().back()->outputs[0]];
        TW_ASSIGN(ir::Node * fused, fuseNodes(g_, e.nodes(), ops::pointwise::def(), e.attrs().clone(), inputs));
        ctx_.log.info("fused {}", fused->name);
        readers_[fused->outputs[0]] = readers;
        return {};
    }

    ir::Graph& g_;
    PassContext const& ctx_;
    std::map<ir::Value const*, std::vector<ir::Node*>> readers_;
    std::set<ir::Node*> taken_;
};

} // namespace

Result<bool> fusePointwise(ir::Graph& g, PassContext const& ctx)
{
    return Clusters(g, ctx).run();
}

} // namespace tw::passes
