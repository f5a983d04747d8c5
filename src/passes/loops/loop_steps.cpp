// SPDX-License-Identifier: Apache-2.0
#include "passes/loops/loop_steps.h"

#include <algorithm>
#include <cmath>

#include "base/tensor.h"
#include "ops/elementwise/op.h"
#include "ops/fill/op.h"
#include "passes/fuse_nodes.h"
#include "passes/rewrite.h"
#include "passes/strided_view.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

using ops::elementwise::Operation;

constexpr int kMostSums = 16; // one in the other

bool isSumOrDifference(ir::Node const& n)
{
    if (n.op != &ops::elementwise::def())
        return false;
    Operation const o = n.attrsAs<ops::elementwise::Attrs>().operation;
    return o == Operation::kSum || o == Operation::kSub;
}
bool isSub(ir::Node const& n)
{
    return n.attrsAs<ops::elementwise::Attrs>().operation == Operation::kSub;
}

} // namespace

TripNumbers::TripNumbers(ir::Node const& loop, recipe::Recipes const* refit, size_t region)
    : loop_(loop), region_(*loop.regions[region]), attrs_(loop.attrsAs<ops::loop::Attrs>()), at_(attrs_), refit_(refit)
{}

std::optional<ir::Dim> TripNumbers::number(ir::Value const* v) const
{
    return onlyElementOf(v, refit_);
}

std::optional<ir::Dim> TripNumbers::most() const
{
    return at_.count() < loop_.inputs.size() ? number(loop_.inputs[at_.count()]) : std::nullopt;
}

ir::Value* TripNumbers::outside(ir::Value* v) const
{
    if (v->isConstant())
        return v;
    auto const first = region_.inputs.begin() + int64_t(at_.firstRegionCapture());
    auto const found = std::find(first, region_.inputs.end(), v);
    return found == region_.inputs.end() ? nullptr : loop_.inputs[at_.inputOf(size_t(found - region_.inputs.begin()))];
}

int TripNumbers::iteratedOf(ir::Value const* v) const
{
    for (size_t s = 0; s < at_.iterated && &region_ == loop_.regions[1].get(); ++s)
        if (region_.inputs[at_.carried + s] == v)
            return int(s);
    return -1;
}

TripNumber TripNumbers::inTrips(int s, TripNumber const& inOrder) const
{
    if (attrs_.iteratorReverse[size_t(s)] == 0)
        return inOrder;
    ir::Dim const& extent = iterated(s)->shape[size_t(axis(s))];
    return {inOrder.start + ir::Dim(inOrder.step) * (extent - ir::Dim(1)), -inOrder.step};
}

std::optional<TripNumber> TripNumbers::sequence(ir::Value* v) const
{
    ir::Value* const root = rootOf(v);
    if (root->type != DataType::kInt32)
        return {};
    if (TensorRef const t = constantOf(root); t.data) {
        if (t.count() < 1 || refitReaches(*root, refit_))
            return {};
        int64_t const first = t.getInt(0), step = t.count() > 1 ? t.getInt(1) - first : 1;
        for (int64_t k = 0; k < t.count(); ++k)
            if (t.getInt(k) != first + step * k)
                return {};
        return TripNumber{first, step};
    }
    ir::Node const* const n = root->producer;
    if (!n || n->op != &ops::fill::def() || root->rank() != 1)
        return {};
    auto const& a = n->attrsAs<ops::fill::Attrs>();
    if (std::trunc(a.alpha) != a.alpha || std::trunc(a.beta) != a.beta || std::fabs(a.alpha) > INT32_MAX ||
        std::fabs(a.beta) > INT32_MAX)
        return {};
    bool const given = n->inputs.size() > 2 && n->inputs[1] && n->inputs[2];
    auto const start = given ? number(n->inputs[1]) : std::optional(ir::Dim(int64_t(a.alpha)));
    auto const step = given ? number(n->inputs[2]) : std::optional(ir::Dim(int64_t(a.beta)));
    if (a.operation != ops::fill::Operation::kLinspace || !start || !step || !step->isConst())
        return {};
    return TripNumber{*start, step->value()};
}

std::optional<TripNumber> TripNumbers::of(ir::Value* v, int depth) const
{
    v = rootOf(v);
    if (v->type != DataType::kInt32 || !ir::volume(v->shape).is(1) || depth > kMostSums)
        return {};
    if (ir::Value const* const fixed = outside(v)) {
        auto const start = number(fixed);
        return start ? std::optional(TripNumber{*start, 0}) : std::nullopt;
    }
    if (int const s = iteratedOf(v); s >= 0) {
        auto const inOrder = sequence(iterated(s));
        return inOrder ? std::optional(inTrips(s, *inOrder)) : std::nullopt;
    }
    for (size_t k = 0; k < at_.carried; ++k)
        if (region_.inputs[k] == v)
            return ofCarried(k, depth);
    return v->producer && isSumOrDifference(*v->producer) ? ofSum(*v->producer, depth) : std::nullopt;
}

std::optional<TripNumber> TripNumbers::ofCarried(size_t k, int depth) const
{
    if (&region_ != loop_.regions[1].get())
        return TripNumbers(loop_, refit_).ofCarried(k, depth);
    ir::Node const* const n = rootOf(region_.outputs[k])->producer;
    auto const start = number(loop_.inputs[k]);
    if (!n || !start || !isSumOrDifference(*n))
        return {};
    for (size_t i = 0; i < (isSub(*n) ? 1U : 2U); ++i) {
        if (rootOf(n->inputs[i]) != region_.inputs[k])
            continue;
        auto const by = of(n->inputs[1 - i], depth + 1);
        if (by && by->step == 0 && by->start.isConst())
            return TripNumber{*start, isSub(*n) ? -by->start.value() : by->start.value()};
    }
    return {};
}

std::optional<TripNumber> TripNumbers::ofSum(ir::Node const& n, int depth) const
{
    auto const a = of(n.inputs[0], depth + 1), b = a ? of(n.inputs[1], depth + 1) : std::nullopt;
    if (!a || !b)
        return {};
    return isSub(n) ? TripNumber{a->start - b->start, a->step - b->step}
                    : TripNumber{a->start + b->start, a->step + b->step};
}

Result<ir::Value*> addIterator(ir::Graph& g, ir::Node& loop, ir::Value* x, int64_t axis, bool reverse,
                               ir::Shape const& like)
{
    auto& attrs = loop.attrsAs<ops::loop::Attrs>();
    ops::loop::Layout const at(attrs);
    loop.inputs.resize(std::max(loop.inputs.size(), at.firstCapture()));
    loop.inputs.insert(loop.inputs.begin() + int64_t(at.lengthAt(0)), x);
    attrs.iteratorAxes.push_back(axis);
    attrs.iteratorReverse.push_back(reverse);
    for (auto& r : loop.regions) {
        r->addInput(x->name, x->type, like);
        std::rotate(r->inputs.begin() + int64_t(at.firstRegionCapture()), r->inputs.end() - 1, r->inputs.end());
    }
    TW_TRY(g.inferNode(loop));
    return loop.regions[1]->inputs[at.firstRegionCapture()];
}

} // namespace tw::passes
