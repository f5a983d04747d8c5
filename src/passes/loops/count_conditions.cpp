// SPDX-License-Identifier: Apache-2.0
// A condition that compares the number of a trip with what no trip changes becomes a count.
//   before: loop(i = 0, n) { while i < n: f(i), i + 1 }        after: loop(i = 0, n, count = n) { f(i), i + 1 }
// Known by its meaning: < <= > >=, negated or not, numbers on either side, up or down by any step from a start that is
// known when shapes are; several joined by `and`; bools from around the loop. ONNX carries the condition of the next
// trip: what a trip computes of its own numbers is taken for the next one, and the first bool, where it is not seen to
// be the same condition, decides alone whether there is a first trip. A count that shapes decide is known to the host,
// so that nobody is asked between trips; one on the device needs no kernels in each trip. Any form; expects inferred
// shapes. Stands behind hoist_invariants, which brings what is compared with in front of the loop, and in front of
// iterate_gathers and fuse_recurrence, which ask for counts. Leaves alone: conditions of which one part is of another
// kind, or reads slices; numbers that go away from their end, or could wrap before they are there, because such loops
// have none (a number of 2^31 - 1 that only the run knows and that i <= n never exceeds counts as so many trips);
// layers with wishes.
#include <algorithm>
#include <cstdlib>

#include "base/tensor.h"
#include "ops/elementwise/op.h"
#include "ops/loop/op.h"
#include "ops/select/op.h"
#include "passes/list.h"
#include "passes/loops/step_limit.h"
#include "passes/recurrence/recurrence.h"
#include "passes/rewrite.h"
#include "passes/strided_view.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

using ir::Dim;
using ir::Range;
using ops::elementwise::Operation;

constexpr int kMostJoined = 32; // of what `and` joins
constexpr Range kIntegers{INT32_MIN, INT32_MAX};

bool isWithin(Range const& r, Range const& of)
{
    return r.lo >= of.lo && r.hi <= of.hi;
}
Range common(Range const& a, Range const& b)
{
    return {std::max(a.lo, b.lo), std::min(a.hi, b.hi)};
}

// What is asked of a bool: that it is `holds`.
struct Ask
{
    ir::Value* value = nullptr;
    bool holds = true;
};

// plus - minus + rest, of i32 that shape arithmetic knows (rest) or does not.
struct Difference
{
    ir::Value const *plus = nullptr, *minus = nullptr;
    Dim rest;
    bool operator==(Difference const&) const = default;
    std::optional<Dim> known() const { return plus || minus ? std::nullopt : std::optional(rest); }
};

// What a bool is `holds` by: all of these.
struct Parts
{
    std::vector<StepLimit> limits;
    std::vector<Ask> outside;
    std::vector<std::pair<size_t, bool>> carried; // which, and what it must be
    bool never = false;
};

// The two sides of and(a, b), or of not(or(a, b)).
ir::Node const* joinOf(Ask const& ask)
{
    ir::Node const* const n = ask.value->producer;
    if (!n || n->op != &ops::elementwise::def())
        return nullptr;
    Operation const o = n->attrsAs<ops::elementwise::Attrs>().operation;
    return o == (ask.holds ? Operation::kAnd : Operation::kOr) ? n : nullptr;
}

class Counter
{
public:
    Counter(ir::Graph& g, PassContext const& ctx, ir::Node& loop)
        : g_(g), ctx_(ctx), loop_(loop), condition_(*loop.regions[0]), body_(*loop.regions[1]),
          at_(loop.attrsAs<ops::loop::Attrs>()), inCondition_(loop, ctx.recipes, 0), inBody_(loop, ctx.recipes, 1),
          maker_(g, loop)
    {}

    Result<bool> run()
    {
        auto const stays = [](auto const& n) { return n->outputs.empty() || hasWish(*n); };
        if (ops::loop::isAlwaysTrue(condition_) || std::ranges::any_of(condition_.nodes, stays) || !read())
            return false;
        std::vector<Amount> amounts;
        for (Limit const& l : limits_) {
            auto const a = amountOf(l);
            if (!a)
                return false;
            amounts.push_back(*a);
        }
        return replace(amounts);
    }

private:
    // Trips go on as long as it holds; trip 0 is made whatever it says where `isBehindFirst`. `isOfNext`: computed by the
    // trip before.
    struct Limit
    {
        StepLimit limit;
        bool isOfNext = false, isBehindFirst = false;
    };
    // ceil((plus - minus + rest) / step) trips, or what is known.
    struct Amount
    {
        ir::Value *plus = nullptr, *minus = nullptr;
        int64_t rest = 0, step = 1;
        bool isBounded = true;    // the difference cannot leave the integers
        Range range = kIntegers;  // of the number of trips
        std::optional<Dim> known; // it
        bool isBehindFirst = false;
    };

    // ---- what the condition is made of

    bool read()
    {
        Parts now;
        if (!collect(inCondition_, condition_, {condition_.outputs[0], true}, now, 0))
            return false;
        for (StepLimit const& l : now.limits)
            limits_.push_back({l});
        most_ = now.never ? 0 : most_;
        gates_ = now.outside;
        for (auto const& [k, holds] : now.carried) {
            Parts next;
            if (!collect(inBody_, body_, {body_.outputs[k], holds}, next, 0))
                return false;
            // In a trip that is made, what the condition asks for holds.
            for (auto const& c : next.carried)
                if (!contains(now.carried, c))
                    return false;
            for (StepLimit& l : next.limits)
                l.number.start = l.number.start - Dim(l.number.step);
            std::vector<bool> const asked = askedOfFirst({loop_.inputs[k], holds}, next.limits);
            for (size_t i = 0; i < next.limits.size(); ++i)
                limits_.push_back({next.limits[i], true, !asked[i]});
            later_.insert(later_.end(), next.outside.begin(), next.outside.end());
            if (next.never)
                most_ = std::min<int64_t>(most_, 1);
        }
        return !limits_.empty() || most_ < INT32_MAX;
    }
    std::optional<bool> boolOf(ir::Value const* v) const
    {
        if (v->content && v->content->size() == 1 && v->content->front().isConst())
            return v->content->front().value() != 0;
        TensorRef const t = constantOf(v);
        bool const isKnown = t.data && t.count() == 1 && !refitReaches(*v, ctx_.recipes);
        return isKnown ? std::optional(t.getInt(0) != 0) : std::nullopt;
    }
    bool collect(TripNumbers const& numbers, ir::Graph const& region, Ask ask, Parts& parts, int depth) const
    {
        ask.value = behindNots(ask.value, ask.holds);
        ir::Value* const v = ask.value;
        if (depth > kMostJoined || v->type != DataType::kBool || !ir::volume(v->shape).is(1))
            return false;
        if (auto const known = boolOf(v)) {
            parts.never = parts.never || *known != ask.holds;
            return true;
        }
        if (auto limit = stepLimitOf(numbers, v)) {
            limit->holds = limit->holds == ask.holds;
            parts.limits.push_back(*limit);
            return true;
        }
        if (ir::Node const* const join = joinOf(ask))
            return collect(numbers, region, {join->inputs[0], ask.holds}, parts, depth + 1) &&
                   collect(numbers, region, {join->inputs[1], ask.holds}, parts, depth + 1);
        for (size_t k = 0; k < at_.carried; ++k)
            if (region.inputs[k] == v) {
                parts.carried.emplace_back(k, ask.holds);
                return true;
            }
        ir::Value* const outer = numbers.outside(v);
        if (outer)
            parts.outside.push_back({outer, ask.holds});
        return outer != nullptr;
    }

    // ---- the first trip

    // Which of the limits, taken for trip 0, the first bool asks for. Where it asks for anything else, it becomes a gate,
    // and none.
    std::vector<bool> askedOfFirst(Ask const& first, std::vector<StepLimit> const& limits)
    {
        std::vector<bool> asked(limits.size(), false);
        bool never = false;
        if (isAskedFor(first, limits, asked, never, 0)) {
            most_ = never ? 0 : most_;
            return asked;
        }
        gates_.push_back(first);
        return std::vector<bool>(limits.size(), false);
    }
    bool isAskedFor(Ask ask, std::vector<StepLimit> const& limits, std::vector<bool>& asked, bool& never,
                    int depth) const
    {
        ask.value = behindNots(ask.value, ask.holds);
        if (depth > kMostJoined)
            return false;
        if (auto const known = boolOf(ask.value)) {
            never = never || *known != ask.holds;
            return true;
        }
        if (auto c = comparisonOf(ask.value); c && c->a->type == DataType::kInt32) {
            c->holds = c->holds == ask.holds;
            Difference const d = c->holds ? minus(c->b, c->a, 0) : minus(c->a, c->b, 1);
            if (auto const known = d.known()) {
                Range const r = known->range(g_.symbols);
                never = never || r.hi < 1;
                if (r.hi < 1 || r.lo >= 1)
                    return true;
            }
            bool found = false;
            for (size_t i = 0; i < limits.size(); ++i)
                if (distanceOf(limits[i]) == d)
                    asked[i] = found = true;
            return found;
        }
        ir::Node const* const join = joinOf(ask);
        return join && isAskedFor({join->inputs[0], ask.holds}, limits, asked, never, depth + 1) &&
               isAskedFor({join->inputs[1], ask.holds}, limits, asked, never, depth + 1);
    }
    Difference minus(ir::Value* a, ir::Value* b, int64_t more) const
    {
        Difference d{nullptr, nullptr, more};
        if (auto const known = inBody_.number(rootOf(a)))
            d.rest = d.rest + *known;
        else
            d.plus = rootOf(a);
        if (auto const known = inBody_.number(rootOf(b)))
            d.rest = d.rest - *known;
        else
            d.minus = rootOf(b);
        return d;
    }
    // Above 0 while the limit holds in trip 0.
    Difference distanceOf(StepLimit const& l) const
    {
        Difference d;
        if (auto const length = inBody_.number(l.length))
            d.rest = *length;
        else
            d.plus = rootOf(l.length);
        d.rest = d.rest + Dim(l.plus) - l.number.start;
        if (!l.holds) { // number - length - plus + 1
            std::swap(d.plus, d.minus);
            d.rest = Dim(1) - d.rest;
        }
        return d;
    }

    // ---- how many trips

    // The carried value that the numbers start from, and how far from it.
    std::optional<std::pair<ir::Value*, int64_t>> baseOf(Dim const& start) const
    {
        if (start.isConst())
            return std::pair<ir::Value*, int64_t>(nullptr, start.value());
        for (size_t k = 0; k < at_.carried; ++k)
            if (auto const first = inBody_.number(loop_.inputs[k]))
                if (Dim const more = start - *first; more.isConst())
                    return std::pair(loop_.inputs[k], more.value());
        return {};
    }
    Range rangeOf(Dim const& d) const { return common(d.range(g_.symbols), kIntegers); }

    std::optional<Amount> amountOf(Limit const& l) const
    {
        StepLimit const& s = l.limit;
        auto const length = inBody_.number(s.length);
        auto const base = baseOf(s.number.start);
        Difference const distance = distanceOf(s);
        if (!base || std::abs(s.number.step) > INT32_MAX)
            return {};
        if ((s.number.step > 0) != s.holds) { // away from the end
            auto const known = distance.known();
            bool const isOver = known && known->range(g_.symbols).hi < 1;
            return isOver ? std::optional(fixed(0, l.isBehindFirst)) : std::nullopt;
        }
        Range const ofLength = length ? rangeOf(*length) : kIntegers;
        if (!isWithin(firstOf(l, *base), kIntegers) || !ends(s, ofLength, length && length->isConst()))
            return {};
        int64_t const sign = s.holds ? 1 : -1, ofConstant = length && length->isConst() ? length->value() : 0;
        Amount a{.step = std::abs(s.number.step), .isBehindFirst = l.isBehindFirst};
        a.rest = sign * (ofConstant + s.plus - base->second) + (s.holds ? 0 : 1);
        ir::Value* const varying = length && length->isConst() ? nullptr : s.length;
        a.plus = s.holds ? varying : base->first;
        a.minus = s.holds ? base->first : varying;
        Range r = differenceOf(a);
        if (auto const known = distance.known()) {
            a.known = a.step == 1 ? *known : ceilDiv(*known, Dim(a.step));
            r = common(r, known->range(g_.symbols));
        }
        if (a.known && a.known->isConst())
            return fixed(a.known->value(), l.isBehindFirst);
        // The sum with step - 1 is a number, too.
        a.isBounded = isWithin({r.lo, ir::addSat(r.hi, a.step - 1)}, kIntegers);
        if (!a.isBounded && (a.step != 1 || (a.plus && a.minus)))
            return {};
        r = common(r, kIntegers);
        a.range = {ir::ceilDivInt(r.lo, a.step), ir::ceilDivInt(r.hi, a.step)};
        return behindFirst(a);
    }
    static Amount fixed(int64_t trips, bool isBehindFirst)
    {
        trips = std::clamp<int64_t>(trips, isBehindFirst ? 1 : 0, INT32_MAX);
        return {.range = {trips, trips}, .known = Dim(trips)};
    }
    static Amount behindFirst(Amount a)
    {
        a.isBehindFirst = a.isBehindFirst && a.range.lo < 1;
        if (a.isBehindFirst) {
            a.known.reset();
            a.range = {1, std::max<int64_t>(a.range.hi, 1)};
        }
        return a;
    }
    // Of the number that is compared first.
    Range firstOf(Limit const& l, std::pair<ir::Value*, int64_t> const& base) const
    {
        Range const r = base.first ? rangeOf(*inBody_.number(base.first)) : Range{0, 0};
        int64_t const more = base.second + (l.isOfNext ? l.limit.number.step : 0);
        return {r.lo + more, r.hi + more};
    }
    // Whether numbers come to the end without a wrap. By steps of 1 there is one length where they do not, which is left
    // to those who ask for 2^31 trips, unless it is that length for certain.
    static bool ends(StepLimit const& s, Range const& length, bool isFixed)
    {
        int64_t const step = s.number.step;
        if (step == 1 || step == -1)
            return !isFixed || (step > 0 ? length.hi + s.plus <= INT32_MAX : length.lo + s.plus - 1 >= INT32_MIN);
        return step > 0 ? length.hi + s.plus - 1 + step <= INT32_MAX : length.lo + s.plus + step >= INT32_MIN;
    }
    Range differenceOf(Amount const& a) const
    {
        auto const rangeOfValue = [&](ir::Value* v) {
            auto const known = v ? inBody_.number(v) : std::optional(Dim(0));
            return known ? rangeOf(*known) : kIntegers;
        };
        Range const plus = rangeOfValue(a.plus), minus = rangeOfValue(a.minus);
        return {plus.lo - minus.hi + a.rest, plus.hi - minus.lo + a.rest};
    }

    // ---- the count

    Result<ir::Value*> scalar(ir::Value* v)
    {
        TW_ASSIGN(ir::Value * s, maker_.reshaped(maker_.brought(v), {}));
        return s ? Result<ir::Value*>(s)
                 : internalError("layer '{}': '{}' is more than one number", loop_.name, v->name);
    }
    ir::Value* number(int64_t n) { return maker_.filled(DataType::kInt32, {}, double(n)); }
    Result<ir::Value*> combined(Operation o, ir::Value* a, ir::Value* b)
    {
        return maker_.value(ops::elementwise::def(), ops::elementwise::Attrs(o), {a, b},
                            ops::elementwise::kOperationNames[size_t(o)]);
    }
    Result<ir::Value*> countOf(Amount const& a)
    {
        if (a.known && a.known->isConst())
            return number(a.known->value());
        ir::Value *plus = nullptr, *minus = nullptr;
        if (a.plus)
            TW_SET(plus, scalar(a.plus));
        if (a.minus)
            TW_SET(minus, scalar(a.minus));
        if (!a.isBounded) {
            ir::Value*& v = plus ? plus : minus;
            int64_t const lo = plus ? INT32_MIN - a.rest : a.rest - INT32_MAX,
                          hi = plus ? INT32_MAX - a.rest : a.rest - INT32_MIN;
            if (lo > INT32_MIN)
                TW_SET(v, combined(Operation::kMax, v, number(std::min<int64_t>(lo, INT32_MAX))));
            if (hi < INT32_MAX)
                TW_SET(v, combined(Operation::kMin, v, number(std::max<int64_t>(hi, INT32_MIN))));
        }
        int64_t const rest = a.rest + a.step - 1;
        ir::Value* v = plus;
        if (!plus)
            v = number(rest);
        if (minus)
            TW_SET(v, combined(Operation::kSub, v, minus));
        if (plus && rest != 0)
            TW_SET(v, combined(Operation::kSum, v, number(rest)));
        if (a.step != 1)
            TW_SET(v, combined(Operation::kFloorDiv, v, number(a.step)));
        return a.isBehindFirst ? combined(Operation::kMax, v, number(1)) : Result<ir::Value*>(v);
    }
    Result<ir::Value*> gated(Ask const& gate, ir::Value* count, ir::Value* otherwise)
    {
        TW_ASSIGN(ir::Value * yes, scalar(gate.value));
        return maker_.value(ops::select::def(), ir::NoAttrs(),
                            {yes, gate.holds ? count : otherwise, gate.holds ? otherwise : count}, "trips");
    }

    Result<bool> replace(std::vector<Amount> const& amounts)
    {
        ir::Value* count = nullptr;
        std::optional<Dim> known;
        auto const lower = [&](ir::Value* v, std::optional<Dim> const& as) -> Result<void> {
            if (count && as && known && *as == *known)
                return {};
            known = count ? std::nullopt : as;
            if (!count) {
                count = v;
                return {};
            }
            TW_ASSIGN(count, combined(Operation::kMin, count, v));
            return {};
        };
        if (ir::Value* const given = at_.count() < loop_.inputs.size() ? loop_.inputs[at_.count()] : nullptr) {
            auto const most = inBody_.number(given);
            if (most && most->isConst()) {
                most_ = std::min(most_, std::max<int64_t>(most->value(), 0));
            } else {
                TW_ASSIGN(ir::Value * v, scalar(given));
                TW_TRY(lower(v, most));
            }
        }
        for (Amount const& a : amounts)
            if (a.known && a.known->isConst())
                most_ = std::min(most_, a.known->value());
        int64_t hi = INT32_MAX;
        for (Amount const& a : amounts) {
            if (a.known && a.known->isConst())
                continue;
            TW_ASSIGN(ir::Value * v, countOf(a));
            TW_TRY(lower(v, a.known));
            hi = std::min(hi, a.range.hi);
        }
        if (!count || most_ < hi) {
            TW_TRY(lower(number(most_), Dim(most_)));
        }
        for (Ask const& gate : later_) {
            TW_ASSIGN(ir::Value * one, combined(Operation::kMin, count, number(1)));
            TW_ASSIGN(count, gated(gate, count, one));
        }
        for (Ask const& gate : gates_)
            TW_SET(count, gated(gate, count, number(0)));
        loop_.inputs.resize(std::max(loop_.inputs.size(), at_.firstCapture()));
        loop_.inputs[at_.count()] = count;
        bool const yes = true;
        condition_.outputs[0] = condition_.addConstant("true", DataType::kBool, {}, &yes);
        TW_TRY(removeDead(condition_, ctx_));
        TW_TRY(g_.inferNode(loop_));
        ctx_.log.verbose("the condition of {} is a count", loop_.name);
        return true;
    }

    ir::Graph& g_;
    PassContext const& ctx_;
    ir::Node& loop_;
    ir::Graph &condition_, &body_;
    ops::loop::Layout const at_;
    TripNumbers const inCondition_, inBody_;
    NodeMaker maker_;
    std::vector<Limit> limits_;
    std::vector<Ask> gates_, later_; // of all trips, of all but the first
    int64_t most_ = INT32_MAX;       // trips
};

} // namespace

Result<bool> countConditions(ir::Graph& g, PassContext const& ctx)
{
    TW_ASSIGN(bool const changed, changeEach(g, isLoop, [&](ir::Node& loop) { return Counter(g, ctx, loop).run(); }));
    g.eraseUnusedValues(); // also what was tried
    return changed;
}

} // namespace tw::passes
