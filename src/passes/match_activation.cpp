// SPDX-License-Identifier: Apache-2.0
#include "passes/match_activation.h"

#include <algorithm>
#include <cmath>

#include "ops/activation/op.h"
#include "ops/elementwise/op.h"
#include "passes/fuse_nodes.h"
#include "passes/node_kinds.h"
#include "passes/rewrite.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

using ops::elementwise::Operation;

// Of constants such as 1/6.
double roundingOf(DataType t)
{
    return isNarrowFloat(t) ? 1e-3 : 1e-6;
}

ops::activation::Attrs const* activationOf(ir::Node const* n)
{
    return n && n->op == &ops::activation::def() ? &n->attrsAs<ops::activation::Attrs>() : nullptr;
}

// f in y = f v (a product with a constant, or a division by it).
std::optional<double> factorOf(ir::Node const* n, ir::Value const* v, recipe::Recipes const* refit)
{
    if (is(n, Operation::kProd))
        return numberOf(n->inputs[n->inputs[0] == v ? 1 : 0], refit);
    if (is(n, Operation::kDiv) && n->inputs[0] == v)
        if (auto d = numberOf(n->inputs[1], refit); d && *d != 0)
            return 1 / *d;
    return std::nullopt;
}

bool multiplies(ir::Node const* n, ir::Value const* a, ir::Value const* b)
{
    return is(n, Operation::kProd) &&
           ((n->inputs[0] == a && n->inputs[1] == b) || (n->inputs[0] == b && n->inputs[1] == a));
}

// `first` is the reader of x that is not the product.
std::optional<MatchedActivation> matchFrom(ir::Graph const& g, ir::Value const* x, ir::Node* first, ir::Node* product,
                                           recipe::Recipes const* refit)
{
    using ops::FusedActivation;
    using ops::FusedKind;
    using ops::activation::Kind;
    auto const* gate = activationOf(first);
    if (gate && multiplies(product, x, first->outputs[0]) && nextOf(g, first) == product) {
        if (gate->kind == Kind::kSigmoid)
            return MatchedActivation{FusedActivation(FusedKind::kSwish), {first, product}};
        if (gate->kind == Kind::kHardSigmoid)
            return MatchedActivation{FusedActivation(FusedKind::kHardSwish, gate->alpha, gate->beta), {first, product}};
        return std::nullopt;
    }
    if (!is(first, Operation::kSum))
        return std::nullopt;
    auto const shift = numberOf(first->inputs[first->inputs[0] == x ? 1 : 0], refit);
    ir::Node* clip = nextOf(g, first);
    auto const* bounds = activationOf(clip);
    if (!shift || !bounds || bounds->kind != Kind::kClip || bounds->alpha != 0 || !(bounds->beta > 0))
        return std::nullopt;
    double const high = bounds->beta;
    auto scaled = [&](std::optional<double> f) { return f && std::fabs(*f * high - 1) < roundingOf(x->type); };
    std::vector<ir::Node*> nodes{first, clip};
    ir::Node* n = nextOf(g, clip);
    if (n && n != product && scaled(factorOf(n, clip->outputs[0], refit))) {
        nodes.push_back(n);
        if (nextOf(g, n) != product || !multiplies(product, x, n->outputs[0]))
            return std::nullopt;
        nodes.push_back(product);
    } else if (n == product && multiplies(product, x, clip->outputs[0])) {
        nodes.push_back(product);
        n = nextOf(g, product);
        if (!n || !scaled(factorOf(n, product->outputs[0], refit)))
            return std::nullopt;
        nodes.push_back(n);
    } else {
        return std::nullopt;
    }
    return MatchedActivation{FusedActivation(FusedKind::kHardSwish, float(1 / high), float(*shift / high)), nodes};
}

} // namespace

std::optional<MatchedActivation> matchActivation(ir::Graph const& g, ir::Value const* x, recipe::Recipes const* refit)
{
    if (g.isOutput(x) || g.useCount(x) != 2 || !isFloating(x->type))
        return std::nullopt;
    auto const readers = readersOf(g, x);
    if (readers.size() != 2)
        return std::nullopt;
    for (size_t i = 0; i < 2; ++i) {
        auto found = matchFrom(g, x, readers[i], readers[1 - i], refit);
        if (!found)
            continue;
        bool const same = std::all_of(found->nodes.begin(), found->nodes.end(), [&](ir::Node const* n) {
            return n->outputs[0]->type == x->type && n->outputs[0]->shape == x->shape;
        });
        if (same)
            return found;
    }
    return std::nullopt;
}

} // namespace tw::passes
