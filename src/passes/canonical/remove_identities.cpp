// SPDX-License-Identifier: Apache-2.0
// Removes nodes that give their input back, and joins shuffles.
//   identity of the same type, shuffle / slice / resize / padding / pooling that changes nothing, concatenation of one,
//   scale by 1 and 0, x + 0, x * 1, x^1, reduction of no axis        ->  the input
//   relu(relu(x))        ->  relu(x), which has the names of both
//   shuffle(shuffle(x))  ->  shuffle(x), where one can say both
// Any form. Stands after simplify_shapes, which turns dynamic parameters into attributes. A graph output keeps its
// name and stays the output of a node: one fed by a graph input or a constant keeps its identity.
#include <algorithm>

#include "ops/activation/op.h"
#include "ops/concatenation/op.h"
#include "ops/elementwise/op.h"
#include "ops/identity/op.h"
#include "ops/padding/op.h"
#include "ops/pooling/op.h"
#include "ops/reduce/op.h"
#include "ops/resize/op.h"
#include "ops/scale/op.h"
#include "ops/shuffle/op.h"
#include "ops/slice/op.h"
#include "passes/list.h"
#include "passes/node_kinds.h"
#include "passes/rewrite.h"
#include "recipe/recipes.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

using ir::composed, ir::isIdentity;

bool isAll(std::vector<int64_t> const& v, int64_t wanted)
{
    return std::ranges::all_of(v, [&](int64_t e) { return e == wanted; });
}

bool reshapes(ir::Node const& shuffle)
{
    return shuffle.attrsAs<ops::shuffle::Attrs>().hasReshape || hasInput(shuffle, 1);
}

// --- what changes nothing ---

bool shuffleIsIdentity(ir::Node const& n, ir::Value const& x, ir::Value const& y)
{
    auto const& a = n.attrsAs<ops::shuffle::Attrs>();
    if (!reshapes(n))
        return isIdentity(composed(a.firstTranspose, a.secondTranspose));
    return isIdentity(a.firstTranspose) && isIdentity(a.secondTranspose) && x.shape == y.shape;
}

bool sliceIsIdentity(ir::Node const& n, ir::Value const& x, ir::Value const& y)
{
    auto const& a = n.attrsAs<ops::slice::Attrs>();
    return !hasInput(n, 1) && !hasInput(n, 3) && isAll(a.start, 0) && isAll(a.stride, 1) && x.shape == y.shape;
}

bool resizeIsIdentity(ir::Node const& n, ir::Value const& x, ir::Value const& y)
{
    auto const& a = n.attrsAs<ops::resize::Attrs>();
    bool const sameScale = std::ranges::all_of(a.scales, [](double s) { return s == 1; });
    return sameScale && x.shape == y.shape;
}

bool poolingIsIdentity(ir::Node const& n, ir::Value const& x, ir::Value const& y)
{
    auto const& a = n.attrsAs<ops::pooling::Attrs>();
    return isAll(a.window, 1) && isAll(a.strides, 1) && isAll(a.prePadding, 0) && isAll(a.postPadding, 0) &&
           x.shape == y.shape;
}

bool scaleIsIdentity(ir::Node const& n)
{
    double const neutral[] = {0, 1, 0, 1};
    for (size_t i = 1; i < n.inputs.size(); ++i)
        if (!allEqual(n.inputs[i], neutral[i]))
            return false;
    return true;
}

// The input that an element-wise operation with a neutral constant gives back; -1: none.
int neutralInput(ir::Node const& n, ir::Value const& y)
{
    using enum ops::elementwise::Operation;
    auto const op = n.attrsAs<ops::elementwise::Attrs>().operation;
    bool const symmetric = op == kSum || op == kProd;
    if (!symmetric && op != kSub && op != kDiv && op != kPow)
        return -1;
    double const neutral = op == kSum || op == kSub ? 0 : 1;
    for (int i = 0; i < (symmetric ? 2 : 1); ++i) {
        ir::Value const *x = n.inputs[size_t(i)], *other = n.inputs[size_t(1 - i)];
        if (other->isConstant() && x->type == y.type && x->shape == y.shape && allEqual(other, neutral))
            return i;
    }
    return -1;
}

bool isRelu(ir::Node const& n)
{
    return n.op == &ops::activation::def() && n.attrsAs<ops::activation::Attrs>().kind == ops::activation::Kind::kRelu;
}

// The input that output 0 equals; -1: it is computed.
int passedThrough(ir::Node const& n, recipe::Recipes const* refit)
{
    if (n.inputs.empty() || !n.inputs[0] || n.outputs.size() != 1)
        return -1;
    for (ir::Value const* v : n.inputs)
        if (v && refit && refit->reaches(*v))
            return -1;
    ir::Value const &x = *n.inputs[0], &y = *n.outputs[0];
    if (n.op == &ops::elementwise::def())
        return neutralInput(n, y);
    if (x.type != y.type)
        return -1;
    bool same = false;
    if (n.op == &ops::identity::def())
        same = true;
    else if (n.op == &ops::shuffle::def())
        same = shuffleIsIdentity(n, x, y);
    else if (n.op == &ops::slice::def())
        same = sliceIsIdentity(n, x, y);
    else if (n.op == &ops::resize::def())
        same = resizeIsIdentity(n, x, y);
    else if (n.op == &ops::pooling::def())
        same = poolingIsIdentity(n, x, y);
    else if (n.op == &ops::scale::def())
        same = scaleIsIdentity(n);
    else if (n.op == &ops::concatenation::def())
        same = n.inputs.size() == 1;
    else if (n.op == &ops::padding::def())
        same = isAll(n.attrsAs<ops::padding::Attrs>().pre, 0) && isAll(n.attrsAs<ops::padding::Attrs>().post, 0);
    else if (n.op == &ops::reduce::def())
        same = n.attrsAs<ops::reduce::Attrs>().axes == 0 && n.attrsAs<ops::reduce::Attrs>().isBare();
    else if (isRelu(n))
        same = x.producer && isRelu(*x.producer) && canJoin(*x.producer, n);
    return same ? 0 : -1;
}

// --- shuffle(shuffle(x)) ---

// The attributes of one shuffle that does both; the reshape dimensions of `first` or `second` may be its input 1, which
// `dims` then is.
std::optional<ops::shuffle::Attrs> joined(ir::Graph const& g, ir::Node const& first, ir::Node const& second,
                                          ir::Value*& dims)
{
    auto const &a = first.attrsAs<ops::shuffle::Attrs>(), &b = second.attrsAs<ops::shuffle::Attrs>();
    auto inputOne = [](ir::Node const& n) { return n.inputs.size() > 1 ? n.inputs[1] : nullptr; };
    ops::shuffle::Attrs out;
    dims = nullptr;
    if (!reshapes(first)) {
        out = b;
        out.firstTranspose = composed(composed(a.firstTranspose, a.secondTranspose), b.firstTranspose);
        dims = inputOne(second);
        return out;
    }
    if (!reshapes(second)) {
        out = a;
        out.secondTranspose = composed(composed(a.secondTranspose, b.firstTranspose), b.secondTranspose);
        dims = inputOne(first);
        return out;
    }
    if (!isIdentity(composed(a.secondTranspose, b.firstTranspose)))
        return std::nullopt;
    ir::Shape const c = permuted(first.inputs[0]->shape, a.firstTranspose);
    auto const direct = reshapeDims(g, c, unpermuted(second.outputs[0]->shape, b.secondTranspose));
    if (!direct)
        return std::nullopt;
    out.firstTranspose = a.firstTranspose;
    out.reshape = direct->dims;
    out.hasReshape = true;
    out.zeroIsPlaceholder = direct->placeholder;
    out.secondTranspose = b.secondTranspose;
    return out;
}

// `first` costs nothing where it only renames dimensions: then `second` may read past it although others need it.
bool transposesNothing(ir::Node const& n)
{
    auto const& a = n.attrsAs<ops::shuffle::Attrs>();
    return isIdentity(a.firstTranspose) && isIdentity(a.secondTranspose);
}

Result<bool> joinShuffles(ir::Graph& g, ir::Node& second)
{
    if (second.op != &ops::shuffle::def())
        return false;
    ir::Value* between = second.inputs[0];
    ir::Node* first = between->producer;
    if (!first || first->op != &ops::shuffle::def() || !canJoin(*first, second))
        return false;
    bool const only = onlyProducer(g, between) != nullptr;
    if (!only && !transposesNothing(*first))
        return false;
    ir::Value* dims = nullptr;
    auto attrs = joined(g, *first, second, dims);
    if (!attrs)
        return false;
    if (isIdentity(attrs->firstTranspose))
        attrs->firstTranspose.clear();
    if (isIdentity(attrs->secondTranspose))
        attrs->secondTranspose.clear();
    ir::Shape const before = second.outputs[0]->shape;
    auto oldAttrs = std::move(second.attrs);
    auto const oldInputs = second.inputs;
    second.attrs = std::make_unique<ops::shuffle::Attrs>(std::move(*attrs));
    second.inputs = dims ? std::vector<ir::Value*>{first->inputs[0], dims} : std::vector<ir::Value*>{first->inputs[0]};
    auto inferred = g.inferNode(second);
    if (!inferred.ok() || !(second.outputs[0]->shape == before)) {
        second.attrs = std::move(oldAttrs);
        second.inputs = oldInputs;
        TW_TRY(g.inferNode(second));
        return false;
    }
    if (only) {
        joinOrigins(second, *first, second);
        g.eraseNode(first);
    }
    return true;
}

} // namespace

Result<bool> removeIdentities(ir::Graph& g, PassContext const& ctx)
{
    bool changed = false;
    for (size_t i = 0; i < g.nodes.size(); ++i) {
        size_t const count = g.nodes.size();
        TW_ASSIGN(bool const wasJoined, joinShuffles(g, *g.nodes[i]));
        changed = changed || wasJoined;
        i -= count - g.nodes.size();
        ir::Node* n = g.nodes[i].get();
        int const from = passedThrough(*n, ctx.recipes);
        if (from < 0 || !replaceValue(g, n->outputs[0], n->inputs[size_t(from)]))
            continue;
        if (isRelu(*n)) { // the one that stays does the work of both
            ir::Node* const first = n->inputs[0]->producer;
            joinOrigins(*first, *first, *n);
            ctx.log.info("fused {}", first->name);
        }
        g.eraseNode(n);
        --i;
        changed = true;
    }
    if (changed)
        g.eraseUnusedValues();
    return changed;
}

} // namespace tw::passes
