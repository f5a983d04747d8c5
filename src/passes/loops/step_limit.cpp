// SPDX-License-Identifier: Apache-2.0
#include "passes/loops/step_limit.h"

#include <algorithm>
#include <cstdlib>

#include "ops/elementwise/op.h"
#include "ops/select/op.h"
#include "ops/shuffle/op.h"
#include "ops/unary/op.h"
#include "passes/node_kinds.h"
#include "passes/strided_view.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

using ops::elementwise::Operation;

std::optional<Operation> operationOf(ir::Value const* v)
{
    ir::Node const* const n = v->producer;
    return n && n->op == &ops::elementwise::def() ? std::optional(n->attrsAs<ops::elementwise::Attrs>().operation)
                                                  : std::nullopt;
}

// The same elements in the same shape; importers may make a reshape for each reader.
bool haveSameElements(ir::Value* a, ir::Value* b)
{
    return a == b || (rootOf(a) == rootOf(b) && a->shape == b->shape);
}
bool haveSameInputs(ir::Node const& a, ir::Node const& b)
{
    return (haveSameElements(a.inputs[0], b.inputs[0]) && haveSameElements(a.inputs[1], b.inputs[1])) ||
           (haveSameElements(a.inputs[0], b.inputs[1]) && haveSameElements(a.inputs[1], b.inputs[0]));
}

bool isNot(ir::Value const* v)
{
    return is(v->producer, ops::unary::Operation::kNot);
}

// With `numberIsA` the limit is b.
StepLimit limitOf(Comparison const& c, TripNumber const& number, ir::Value* length, bool numberIsA)
{
    // length < number is not number < length + 1
    return {number, rootOf(length), numberIsA ? 0 : 1, numberIsA == c.holds};
}

// Axis `axis` of a transposed matrix, of what it is made of.
std::pair<ir::Value*, int> behindTransposition(ir::Value* v, int axis)
{
    ir::Node const* const n = v->producer;
    if (!isShuffle(n) || v->rank() != 2)
        return {v, axis};
    auto const& a = n->attrsAs<ops::shuffle::Attrs>();
    if (a.hasReshape || !a.secondTranspose.empty() || a.firstTranspose.empty())
        return {v, axis};
    return {n->inputs[0], int(a.firstTranspose[size_t(axis)])};
}

// A condition for all steps at once, which the loop goes along.
std::optional<StepLimit> ofSlices(TripNumbers const& numbers, int s)
{
    bool holds = true;
    auto [v, axis] = behindTransposition(numbers.iterated(s), numbers.axis(s));
    if (isNot(v)) {
        holds = false;
        v = v->producer->inputs[0];
    }
    auto c = v->producer ? comparisonOf(v) : std::nullopt;
    if (!c || !(rootOf(v) == v))
        return {};
    c->holds = c->holds == holds;
    for (bool isA : {true, false}) {
        ir::Value *const number = isA ? c->a : c->b, *const length = isA ? c->b : c->a;
        auto const inOrder = numbers.sequence(number);
        if (!inOrder || number->rank() != v->rank() || length->rank() != v->rank() ||
            !(number->shape[size_t(axis)] == v->shape[size_t(axis)]) || !length->shape[size_t(axis)].is(1) ||
            !(ir::volume(number->shape) == number->shape[size_t(axis)]))
            continue;
        return limitOf(*c, numbers.inTrips(s, *inOrder), length, isA);
    }
    return {};
}

} // namespace

ir::Value* behindNots(ir::Value* v, bool& holds)
{
    for (v = rootOf(v); isNot(v); v = rootOf(v->producer->inputs[0]))
        holds = !holds;
    return v;
}

std::optional<Comparison> comparisonOf(ir::Value* v)
{
    bool holds = true;
    v = behindNots(v, holds);
    auto const o = operationOf(v);
    if (!o)
        return {};
    ir::Value *const a = v->producer->inputs[0], *const b = v->producer->inputs[1];
    if (*o == Operation::kLess)
        return Comparison{a, b, holds};
    if (*o == Operation::kGreater)
        return Comparison{b, a, holds};
    if (*o != Operation::kOr)
        return {};
    for (auto const& [one, other] : {std::pair(rootOf(a), rootOf(b)), std::pair(rootOf(b), rootOf(a))}) {
        auto const first = operationOf(one);
        if ((first != Operation::kLess && first != Operation::kGreater) || operationOf(other) != Operation::kEqual ||
            !haveSameInputs(*one->producer, *other->producer))
            continue;
        auto const c = comparisonOf(one); // a <= b is not b < a
        return Comparison{c->b, c->a, !holds};
    }
    return {};
}

std::optional<int64_t> StepLimit::plusInSteps(ir::Dim const& steps, bool reverse) const
{
    ir::Dim const first = reverse ? number.start - steps + ir::Dim(1) : number.start;
    constexpr int64_t kMost = 1 << 30; // numbers further on may wrap on their way
    if (number.step != (reverse ? -1 : 1) || !first.isConst() || std::abs(first.value()) > kMost)
        return {};
    return plus - first.value();
}

std::optional<StepLimit> stepLimitOf(TripNumbers const& numbers, ir::Value* condition)
{
    bool holds = true;
    ir::Value* const v = behindNots(condition, holds);
    if (int const s = numbers.iteratedOf(v); s >= 0) {
        auto limit = ofSlices(numbers, s);
        if (limit)
            limit->holds = limit->holds == holds;
        return limit;
    }
    auto const c = comparisonOf(condition);
    if (!c)
        return {};
    for (bool isA : {true, false}) {
        auto const number = numbers.of(isA ? c->a : c->b);
        ir::Value* const length = numbers.outside(rootOf(isA ? c->b : c->a));
        if (number && number->step != 0 && length && length->type == DataType::kInt32)
            return limitOf(*c, *number, length, isA);
    }
    return {};
}

std::optional<LimitedValue> limitedValueOf(TripNumbers const& numbers, ir::Value* v, ir::Dim const& rows)
{
    ir::Value* const root = rootOf(v);
    ir::Node const* const n = root->producer;
    if (!n || n->op != &ops::select::def())
        return {};
    auto const limit = stepLimitOf(numbers, n->inputs[0]);
    if (!limit)
        return {};
    // One for all columns; sequences are all dimensions but the last, or there is one alone.
    ir::Shape const& c = n->inputs[0]->shape;
    ir::Dim const count = ir::volume(c), lengths = ir::volume(limit->length->shape);
    bool const forAll = count.is(1) && lengths.is(1);
    bool const forEach = count == rows && lengths == rows && !c.empty() && c.back().is(1) &&
                         std::equal(c.begin(), c.end() - 1, root->shape.begin(), root->shape.end() - 1);
    size_t const next = limit->holds ? 1 : 2;
    if ((!forAll && !forEach) || !(n->inputs[next]->shape == root->shape))
        return {};
    return LimitedValue{*limit, n->inputs[next], n->inputs[3 - next], n};
}

} // namespace tw::passes
