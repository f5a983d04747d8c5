// SPDX-License-Identifier: Apache-2.0
#include "passes/fusion/match_activation.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "ops/elementwise/op.h"
#include "passes/fuse_nodes.h"
#include "passes/node_kinds.h"
#include "passes/rewrite.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

using ops::FusedActivation;
using ops::FusedKind;
using ops::elementwise::Operation;

constexpr size_t kMostNodes = 12; // the longest known form has nine

using Numbers = std::map<ir::Value const*, double>;

// What such nodes make of numbers; none: another operation, or an input that is no number.
std::optional<double> evaluate(ir::Node const& n, Numbers const& numbers)
{
    for (ir::Value const* v : n.inputs)
        if (!numbers.contains(v))
            return std::nullopt;
    double const a = numbers.at(n.inputs[0]);
    if (is(&n, ops::unary::Operation::kErf))
        return std::erf(a);
    if (is(&n, ops::unary::Operation::kExp))
        return std::exp(a);
    if (is(&n, ops::unary::Operation::kNeg))
        return -a;
    if (is(&n, ops::unary::Operation::kRecip))
        return 1 / a;
    if (n.op == &ops::activation::def()) {
        double y = 0;
        ops::activate(n.attrsAs<ops::activation::Attrs>(), &a, &y, 1);
        return y;
    }
    if (n.op != &ops::elementwise::def())
        return std::nullopt;
    double const b = numbers.at(n.inputs[1]);
    switch (n.attrsAs<ops::elementwise::Attrs>().operation) {
    case Operation::kSum:
        return a + b;
    case Operation::kSub:
        return a - b;
    case Operation::kProd:
        return a * b;
    case Operation::kDiv:
        return a / b;
    case Operation::kPow:
        return std::pow(a, b);
    default:
        return std::nullopt;
    }
}

// The activation that a node with a curve belongs to, where there is any; `zeros`: values where x is zero. (Two of them
// differ by less than FP16 constants do: nodes do not tell by their results which it is.)
std::optional<FusedActivation> familyOf(ir::Node const& n, Numbers const& zeros)
{
    using ops::activation::Kind;
    if (is(&n, ops::unary::Operation::kErf))
        return FusedActivation(FusedKind::kGeluErf);
    if (is(&n, ops::unary::Operation::kExp))
        return FusedActivation(FusedKind::kSwish);
    if (n.op != &ops::activation::def())
        return std::nullopt;
    auto const& a = n.attrsAs<ops::activation::Attrs>();
    if (a.kind == Kind::kTanh)
        return FusedActivation(FusedKind::kGeluTanh);
    if (a.kind == Kind::kSigmoid)
        return FusedActivation(FusedKind::kSwish);
    if (a.kind == Kind::kHardSigmoid)
        return FusedActivation(FusedKind::kHardSwish, a.alpha, a.beta);
    double const high = a.beta;
    if (a.kind == Kind::kClip && a.alpha == 0 && high > 0)
        return FusedActivation(FusedKind::kHardSwish, float(1 / high), float(zeros.at(n.inputs[0]) / high));
    return std::nullopt;
}

double valueOf(FusedActivation const& f, double x)
{
    switch (FusedKind(f.kind)) {
    case FusedKind::kSwish:
        return x / (1 + std::exp(-x));
    case FusedKind::kHardSwish:
        return x * std::clamp(f.alpha * x + f.beta, 0.0, 1.0);
    case FusedKind::kGeluErf:
        return 0.5 * x * (1 + std::erf(x * std::sqrt(0.5)));
    case FusedKind::kGeluTanh:
        return 0.5 * x * (1 + std::tanh(std::sqrt(2 / 3.14159265358979324) * (x + 0.044715 * x * x * x)));
    }
    return NAN;
}

// Whether the nodes compute that function of x: at points from -6 to 6, or from both sides of where it bends, to what
// constants rounded to x's type allow.
bool computes(std::vector<ir::Node*> const& nodes, Numbers numbers, ir::Value const* x, FusedActivation const& f)
{
    constexpr double kStep = 0.171875;
    double const rounding = isNarrowFloat(x->type) ? 2e-3 : 1e-6;
    bool const bends = FusedKind(f.kind) == FusedKind::kHardSwish && f.alpha != 0;
    for (double t = -6; t <= 6; t += kStep) {
        double const at = bends ? (0.25 * t + 0.5 - f.beta) / f.alpha : t; // alpha x + beta from -1 to 2
        numbers[x] = at;
        for (ir::Node const* n : nodes)
            numbers[n->outputs[0]] = *evaluate(*n, numbers);
        if (!(std::fabs(numbers[nodes.back()->outputs[0]] - valueOf(f, at)) <= rounding * (1 + std::fabs(at))))
            return false;
    }
    return true;
}

// Nobody else reads x or what the nodes make, the last one apart.
bool isClosed(ir::Graph const& g, ir::Value const* x, std::vector<ir::Node*> const& nodes)
{
    auto closed = [&](ir::Value const* v) {
        int inside = 0;
        for (ir::Node const* n : nodes)
            inside += int(std::ranges::count(n->inputs, v));
        return g.useCount(v) == inside;
    };
    return closed(x) && std::all_of(nodes.begin(), nodes.end() - 1, [&](auto* n) { return closed(n->outputs[0]); });
}

std::optional<MatchedActivation> ofSeveralNodes(ir::Graph const& g, ir::Value const* x, recipe::Recipes const* refit)
{
    if (g.isOutput(x) || !isFloating(x->type))
        return std::nullopt;
    MatchedActivation found;
    Numbers zeros{{x, 0}}; // constants, and what is computed where x is zero
    for (auto const& n : g.nodes) {
        auto const isComputed = [&](ir::Value const* v) { return v && !v->isConstant() && zeros.contains(v); };
        if (n->outputs.size() != 1 || n->outputs[0]->type != x->type || !(n->outputs[0]->shape == x->shape) ||
            std::ranges::none_of(n->inputs, isComputed))
            continue;
        for (ir::Value const* v : n->inputs)
            if (auto const number = isComputed(v) ? std::nullopt : numberOf(v, refit))
                zeros[v] = *number;
        auto const y = evaluate(*n, zeros);
        auto const family = y ? familyOf(*n, zeros) : std::nullopt;
        if (!y || (n->op == &ops::activation::def() && !family))
            continue;
        zeros[n->outputs[0]] = *y;
        found.nodes.push_back(n.get());
        if (family)
            found.activation = *family;
        if (found.nodes.size() > kMostNodes)
            return std::nullopt;
        if (found.activation.any() && isClosed(g, x, found.nodes) && computes(found.nodes, zeros, x, found.activation))
            return found;
    }
    return std::nullopt;
}

} // namespace

std::optional<MatchedActivation> matchActivation(ir::Graph const& g, ir::Value const* x, recipe::Recipes const* refit)
{
    if (auto found = ofSeveralNodes(g, x, refit))
        return found;
    ir::Node* const n = x->producer ? nextOf(g, x->producer) : nullptr;
    if (!n || n->op != &ops::activation::def())
        return std::nullopt;
    return MatchedActivation{ops::FusedActivation(n->attrsAs<ops::activation::Attrs>()), {n}};
}

} // namespace tw::passes
