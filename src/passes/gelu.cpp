// SPDX-License-Identifier: Apache-2.0
#include "passes/gelu.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "ops/activation/op.h"
#include "ops/elementwise/op.h"
#include "ops/unary/op.h"
#include "passes/fuse_nodes.h"
#include "passes/node_kinds.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

using Operation = ops::elementwise::Operation;

constexpr size_t kMostNodes = 12; // the longest known form has nine

bool isErf(ir::Node const& n)
{
    return is(&n, ops::unary::Operation::kErf);
}

bool isTanh(ir::Node const& n)
{
    return n.op == &ops::activation::def() && n.attrsAs<ops::activation::Attrs>().kind == ops::activation::Kind::kTanh;
}

using Numbers = std::map<ir::Value const*, double>;

// Operations that the forms are made of; none: another one.
std::optional<double> evaluate(ir::Node const& n, Numbers const& numbers)
{
    auto input = [&](size_t i) { return numbers.at(n.inputs[i]); };
    if (isErf(n))
        return std::erf(input(0));
    if (isTanh(n))
        return std::tanh(input(0));
    if (n.op != &ops::elementwise::def())
        return std::nullopt;
    switch (n.attrsAs<ops::elementwise::Attrs>().operation) {
    case Operation::kSum:
        return input(0) + input(1);
    case Operation::kSub:
        return input(0) - input(1);
    case Operation::kProd:
        return input(0) * input(1);
    case Operation::kDiv:
        return input(0) / input(1);
    case Operation::kPow:
        return std::pow(input(0), input(1));
    default:
        return std::nullopt;
    }
}

double gelu(ops::FusedKind kind, double x)
{
    if (kind == ops::FusedKind::kGeluErf)
        return 0.5 * x * (1 + std::erf(x * std::sqrt(0.5)));
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / 3.14159265358979324) * (x + 0.044715 * x * x * x)));
}

// Whether the nodes compute that function of x: at points from -6 to 6, to what constants rounded to x's type allow.
bool computes(std::vector<ir::Node*> const& nodes, Numbers constants, ir::Value const* x, ops::FusedKind kind)
{
    constexpr double kStep = 0.171875;
    double const rounding = isNarrowFloat(x->type) ? 2e-3 : 1e-6;
    for (double at = -6; at <= 6; at += kStep) {
        constants[x] = at;
        for (ir::Node const* n : nodes) {
            auto const y = evaluate(*n, constants);
            if (!y)
                return false;
            constants[n->outputs[0]] = *y;
        }
        double const got = constants[nodes.back()->outputs[0]];
        if (!(std::fabs(got - gelu(kind, at)) <= rounding * (1 + std::fabs(at))))
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
            inside += int(std::count(n->inputs.begin(), n->inputs.end(), v));
        return g.useCount(v) == inside;
    };
    return closed(x) && std::all_of(nodes.begin(), nodes.end() - 1, [&](auto* n) { return closed(n->outputs[0]); });
}

} // namespace

std::optional<MatchedActivation> matchGelu(ir::Graph const& g, ir::Value const* x, recipe::Recipes const* refit)
{
    if (g.isOutput(x) || !isFloating(x->type))
        return std::nullopt;
    std::vector<ir::Node*> nodes;
    Numbers constants{{x, 0}};           // and x and results, with no meaning yet
    std::optional<ops::FusedKind> curve; // the two differ by less than FP16 constants do
    for (auto const& n : g.nodes) {
        bool reads = false,
             known = n->outputs.size() == 1 && (n->op == &ops::elementwise::def() || isErf(*n) || isTanh(*n));
        for (size_t i = 0; known && i < n->inputs.size(); ++i) {
            ir::Value const* v = n->inputs[i];
            if (constants.contains(v) && !v->isConstant())
                reads = true;
            else if (auto const number = numberOf(v, refit))
                constants[v] = *number;
            else
                known = false;
        }
        ir::Value const* y = known && reads ? n->outputs[0] : nullptr;
        if (!y || y->type != x->type || !(y->shape == x->shape))
            continue;
        constants[y] = 0;
        nodes.push_back(n.get());
        if (isErf(*n) || isTanh(*n))
            curve = isErf(*n) ? ops::FusedKind::kGeluErf : ops::FusedKind::kGeluTanh;
        if (nodes.size() > kMostNodes)
            return std::nullopt;
        if (curve && isClosed(g, x, nodes) && computes(nodes, constants, x, *curve))
            return MatchedActivation{ops::FusedActivation(*curve), nodes};
    }
    return std::nullopt;
}

} // namespace tw::passes
