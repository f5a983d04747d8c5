// SPDX-License-Identifier: Apache-2.0
// Makes one op `recurrence` of a loop, or of the part of one, that is an RNN, LSTM or GRU cell over a sequence.
//   before: loop(h0, x, W, R) { h = tanh(x[i] W + h R + b), stack h }        after: recurrence(x, R, W, b, h0)
// A cell is known by what it computes (passes/recurrence/recurrence.h), so gates may come out of one product or several, x and
// h may be one row or two, and products with x may stand in front of the loop. States that a condition keeps past the
// length of a sequence (passes/loops/step_limit.h) are a cell with lengths. What else the body does stays a loop over
// the states of all steps: the next cell of a stack of layers is then one of its own. Layers then read sequences in the
// order in which they lie (passes/recurrence/recurrence.h). Any form. Stands after
// hoist_invariants and constants_into_regions, and before remove_dead of the next round, which takes what is left.
// Leaves alone: loops that a condition can end or whose trips are not the steps of the sequence; cells without input, or
// whose cell state others read in each step; layers with wishes of the user; weights that may be refitted, which must
// stay as the user gave them; sequences added to gates as they are, of more than kMostColumns columns.
#include <algorithm>
#include <set>

#include "base/tensor.h"
#include "ops/concatenation/op.h"
#include "ops/elementwise/op.h"
#include "ops/loop/op.h"
#include "ops/matrix_multiply/op.h"
#include "ops/slice/op.h"
#include "passes/fuse_nodes.h"
#include "passes/list.h"
#include "passes/loops/step_limit.h"
#include "passes/recurrence/recurrence.h"
#include "passes/rewrite.h"
#include "passes/strided_view.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

using ir::Dim;
using ir::Shape;

class RecurrenceFuser
{
public:
    RecurrenceFuser(ir::Graph& g, PassContext const& ctx, ir::Node& loop)
        : g_(g), ctx_(ctx), loop_(loop), body_(*loop.regions[1]), attrs_(loop.attrsAs<ops::loop::Attrs>()), at_(attrs_),
          maker_(g, loop), sequences_(g, terms_, ctx.recipes, loop.name), numbers_(loop, ctx.recipes)
    {}

    Result<bool> run()
    {
        if (!ops::loop::isAlwaysTrue(*loop_.regions[0]) || at_.iterated == 0 || at_.count() >= loop_.inputs.size() ||
            !loop_.inputs[at_.count()] ||
            std::ranges::any_of(body_.nodes, [](auto const& n) { return n->outputs.empty(); }))
            return false;
        for (size_t i = 0; i < at_.carried; ++i) {
            TW_ASSIGN(bool const fused, fuse(i));
            if (fused)
                return true;
        }
        return false;
    }

private:
    bool isTrips(ir::Value const* v, Dim const& steps) const
    {
        if (!v)
            return true;
        if (v->content && v->content->size() == 1)
            return v->content->front() == steps;
        TensorRef const t = constantOf(v);
        return t.data && t.count() == 1 && steps.is(t.getInt(0));
    }
    Dim const& stepsOf(size_t s) const
    {
        return loop_.inputs[at_.iteratedAt(s)]->shape[size_t(attrs_.iteratorAxes[s])];
    }
    int inputOf(ir::Value const* v) const
    {
        auto const found = std::ranges::find(body_.inputs, v);
        return found == body_.inputs.end() ? -1 : int(found - body_.inputs.begin());
    }
    CellReader::Leaf leafOf(ir::Value* v) const
    {
        using Kind = CellReader::Leaf::Kind;
        if (v->isConstant())
            return {Kind::kInvariant, -1, v};
        int const i = inputOf(v);
        if (i < 0)
            return {};
        if (size_t(i) < at_.firstRegionCapture())
            return {Kind::kColumns, i, nullptr};
        return {Kind::kInvariant, -1, loop_.inputs[at_.inputOf(size_t(i))]};
    }

    // ---- sequences

    std::optional<Sequence> sequenceOf(size_t s, Dim const& rows) const
    {
        return tw::passes::sequenceOf(loop_.inputs[at_.iteratedAt(s)], int(attrs_.iteratorAxes[s]),
                                      attrs_.iteratorReverse[s] != 0, body_.inputs[at_.carried + s]->shape, rows);
    }
    std::optional<int> resolve(CellFactor const& f, Dim const& rows)
    {
        auto const q = sequenceOf(size_t(f.leaf) - at_.carried, rows);
        return q ? sequences_.resolve(*q, f) : std::nullopt;
    }
    std::optional<Sequence> sequenceAt(int leaf, Dim const& rows) const
    {
        Sequence const* const q = sequences_.resolved(leaf);
        return q ? std::optional(*q) : sequenceOf(size_t(leaf) - at_.carried, rows);
    }

    // ---- the cell

    // Rows and columns of a state: a column [H,1] is one row.
    static std::pair<Dim, Dim> sizesOf(ir::Value const& h)
    {
        if (h.rank() == 0 || (h.rank() > 1 && h.shape.back().is(1)))
            return {1, ir::volume(h.shape)};
        return {ir::volume(Shape(h.shape.begin(), h.shape.end() - 1)), h.shape.back()};
    }

    // What is next of carried value k inside of the length, and that length. It keeps its value past it.
    std::optional<LimitedValue> limitedState(size_t k, Dim const& rows) const
    {
        auto const v = limitedValueOf(numbers_, body_.outputs[k], rows);
        return v && rootOf(v->other) == body_.inputs[k] ? v : std::nullopt;
    }
    // What carried value k becomes in a step that all sequences have, if its length is the cell's.
    ir::Value* nextOf(size_t k, Dim const& rows) const
    {
        auto const v = limitedState(k, rows);
        if (v.has_value() != limited_.has_value() || (v && !v->limit.isSame(limited_->limit)))
            return nullptr;
        return v ? v->next : body_.outputs[k];
    }
    Result<bool> fuse(size_t i)
    {
        ir::Value const& h = *body_.inputs[i];
        auto const [rows, hidden] = sizesOf(h);
        if (!isFloating(h.type) || !hidden.isConst() || hidden.value() < 1 || body_.outputs[i] == body_.inputs[i])
            return false;
        CellReader reader(terms_, rows, h.type, ctx_.recipes, [this](ir::Value* v) { return leafOf(v); });
        rows_ = rows;
        limited_ = limitedState(i, rows);
        next_ = limited_ ? limited_->next : body_.outputs[i];
        auto const next = reader.columns(next_, 0, hidden.value());
        if (!next)
            return false;
        std::vector<CellState> others;
        for (size_t k = 0; k < at_.carried; ++k) {
            if (k == i)
                continue;
            bool const alike =
                body_.inputs[k]->type == h.type && reader.widthOf(body_.inputs[k]->shape) == hidden.value();
            ir::Value* const v = alike ? nextOf(k, rows) : nullptr;
            auto const sum = v ? reader.columns(v, 0, hidden.value()) : std::nullopt;
            others.push_back({int(k), sum.value_or(-1)});
        }
        Dim const rowsOf = rows;
        auto const cell = matchCell(terms_, {int(i), *next}, others, hidden.value(),
                                    [&](CellFactor const& f) { return resolve(f, rowsOf); });
        if (!cell || !mayTake(*cell, reader, i, rows))
            return false;
        std::map<int, Sequence> sequences;
        for (int leaf : leavesOf(*cell))
            sequences.emplace(leaf, *sequenceAt(leaf, rows));
        std::set<ir::Node const*> known;
        for (auto const& n : g_.nodes)
            known.insert(n.get());
        TW_ASSIGN(bool const made, make(*cell, i, sequences));
        for (size_t k = g_.nodes.size(); !made && k-- > 0;) // what was tried
            if (!known.contains(g_.nodes[k].get()))
                g_.eraseNode(g_.nodes[k].get());
        return made;
    }
    Result<bool> make(RecurrentCell const& cell, size_t i, std::map<int, Sequence> const& sequences)
    {
        TW_ASSIGN(ir::Value * lengths, lengthsOfAll());
        TW_ASSIGN(ir::Node * n, makeRecurrence(maker_, cell, sequences, loop_.inputs[i],
                                               cell.c < 0 ? nullptr : loop_.inputs[size_t(cell.c)], lengths));
        if (!n)
            return false;
        return replace(cell, i, *n);
    }

    bool mayTake(RecurrentCell const& cell, CellReader const& reader, size_t i, Dim const& rows)
    {
        auto const leave = [&](char const* why) {
            ctx_.log.verbose("the recurrent cell of {} stays a loop: {}", loop_.name, why);
            return false;
        };
        bool reverse = false;
        std::vector<int> const leaves = leavesOf(cell);
        for (int leaf : leaves) {
            auto const q = sequenceAt(leaf, rows);
            if (!q || q->width < 1 || (leaf != leaves[0] && q->reverse != reverse))
                return leave("its inputs do not go the same way");
            reverse = q->reverse;
            Dim const& steps = q->isBehind() ? q->lead.back() : q->lead[size_t(q->axis)];
            if (!isTrips(loop_.inputs[at_.count()], steps))
                return leave("its trips are not known to be the steps of its input");
            auto const plus = limited_ ? limited_->limit.plusInSteps(steps, reverse) : std::optional<int64_t>(0);
            if (!plus)
                return leave("its lengths do not count the steps of its input");
            plus_ = *plus;
        }
        if (limited_ &&
            (hasWish(*limited_->node) || (cell.c >= 0 && hasWish(*rootOf(body_.outputs[size_t(cell.c)])->producer))))
            return leave("the user has a wish for one of its layers");
        for (ir::Node const* n : reader.nodes())
            if (hasWish(*n))
                return leave("the user has a wish for one of its layers");
        if (!isAlone(cell, i))
            return leave("others read its states");
        return true;
    }
    // Whether what else the body gives needs no more of the cell than its new state.
    bool isAlone(RecurrentCell const& cell, size_t i) const
    {
        std::set<ir::Value const*> needed;
        for (size_t k = 0; k < body_.outputs.size(); ++k)
            if (k != i && int(k) != cell.c && !isZeroPastTheEnd(k))
                needed.insert(body_.outputs[k]);
        for (auto n = body_.nodes.rbegin(); n != body_.nodes.rend(); ++n)
            for (ir::Value const* v : (*n)->outputs)
                if (needed.contains(v) && v != body_.outputs[i])
                    needed.insert((*n)->inputs.begin(), (*n)->inputs.end());
        return !needed.contains(body_.inputs[i]) && (cell.c < 0 || !needed.contains(body_.inputs[size_t(cell.c)]));
    }

    // ---- lengths

    // Whether the body's output k is the cell's next state inside of the length, and zeros past it.
    bool isZeroPastTheEnd(size_t k) const
    {
        auto const v = limited_ && k >= at_.carried ? limitedValueOf(numbers_, body_.outputs[k], rows_) : std::nullopt;
        return v && v->limit.isSame(limited_->limit) && rootOf(v->next) == rootOf(next_) &&
               numberOf(v->other, ctx_.recipes) == 0.0;
    }
    // Null where sequences have all steps.
    Result<ir::Value*> lengthsOfAll()
    {
        if (!limited_)
            return static_cast<ir::Value*>(nullptr);
        using namespace ops::elementwise;
        ir::Value* v = maker_.brought(limited_->limit.length);
        if (plus_ == 0)
            return v;
        Extents const ones = Extents::ones(v->rank());
        // Lengths at the end of the integers must not wrap: all steps, or none, they are with and without.
        int64_t const most = plus_ > 0 ? INT32_MAX - plus_ : INT32_MIN - plus_;
        TW_ASSIGN(v, maker_.value(def(), Attrs(plus_ > 0 ? Operation::kMin : Operation::kMax),
                                  {v, maker_.filled(DataType::kInt32, ones, double(most))}, "bounded"));
        return maker_.sum(v, maker_.filled(DataType::kInt32, ones, double(plus_)));
    }

    // ---- in place of the loop

    // y, the states of all steps, as stack k has them; null where it cannot be.
    Result<ir::Value*> stackOf(size_t k, ir::Value* y, bool reverse)
    {
        ir::Value* const none = nullptr;
        ir::Value const& out = *loop_.outputs[at_.carried + k];
        if (!isTrips(loop_.inputs.size() > at_.lengthAt(k) ? loop_.inputs[at_.lengthAt(k)] : nullptr, y->shape[0]) ||
            !(ir::volume(out.shape) == ir::volume(y->shape)))
            return none;
        if (reverse != (attrs_.stackReverse[k] != 0)) {
            if (!ir::isStatic(y->shape))
                return none;
            std::vector<int64_t> start(y->shape.size(), 0), size;
            for (Dim const& d : y->shape)
                size.push_back(d.value());
            start[0] = size[0] - 1;
            TW_ASSIGN(y, maker_.part(y, start, size, -1));
        }
        size_t const axis = size_t(attrs_.stackAxes[k]);
        Shape shape = out.shape;
        std::rotate(shape.begin(), shape.begin() + int64_t(axis), shape.begin() + int64_t(axis) + 1);
        TW_ASSIGN(y, maker_.reshaped(y, shape));
        std::vector<int64_t> order;
        for (size_t d = 0; d < shape.size(); ++d)
            order.push_back(int64_t(d < axis ? d + 1 : d == axis ? 0 : d));
        return y ? maker_.transposed(y, order) : Result<ir::Value*>(none);
    }
    // What takes the place of the loop's outputs (null: nothing does), and the states of all steps for what else the body
    // does, where that reads them.
    struct Results
    {
        std::vector<ir::Value*> outputs;
        ir::Value* states = nullptr;
    };
    Result<std::optional<Results>> resultsOf(RecurrentCell const& cell, size_t i, ir::Node& n)
    {
        Results r;
        r.outputs.assign(loop_.outputs.size(), nullptr);
        ir::Value *const next = body_.outputs[i], *y = n.outputs[0];
        if (limited_ && areStatesRead(i, cell.c)) {
            TW_ASSIGN(y, keptStates(maker_, n));
            if (!y)
                return std::optional<Results>();
        }
        TW_ASSIGN(r.outputs[i], maker_.reshaped(n.outputs[1], loop_.outputs[i]->shape));
        bool complete = r.outputs[i] != nullptr;
        for (size_t k = at_.carried; k < r.outputs.size(); ++k) {
            bool const isZero = isZeroPastTheEnd(k);
            if (!isZero && rootOf(body_.outputs[k]) != rootOf(next))
                continue;
            TW_ASSIGN(r.outputs[k], stackOf(k - at_.carried, isZero ? n.outputs[0] : y, isReverse(n)));
            complete = complete && (!isZero || r.outputs[k]);
        }
        if (cell.c >= 0) {
            TW_ASSIGN(r.outputs[size_t(cell.c)], maker_.reshaped(n.outputs[2], loop_.outputs[size_t(cell.c)]->shape));
            complete = complete && r.outputs[size_t(cell.c)];
        }
        Shape shape = loop_.outputs[i]->shape;
        shape.insert(shape.begin(), y->shape[0]);
        TW_ASSIGN(r.states, maker_.reshaped(y, shape));
        for (size_t k = 0; k < r.outputs.size(); ++k)
            complete = complete && (!r.outputs[k] || r.outputs[k]->shape == loop_.outputs[k]->shape);
        return complete && r.states ? std::optional(std::move(r)) : std::nullopt;
    }
    // Whether what else the loop gives needs the states of all steps.
    bool areStatesRead(size_t i, int c) const
    {
        for (size_t k = 0; k < loop_.outputs.size(); ++k)
            if (k != i && int(k) != c && !isZeroPastTheEnd(k) && g_.useCount(loop_.outputs[k]) > 0)
                return true;
        return false;
    }
    static bool isReverse(ir::Node const& n)
    {
        return n.attrsAs<ops::recurrence::Attrs>().direction == ops::recurrence::Direction::kReverse;
    }
    Result<bool> replace(RecurrentCell const& cell, size_t i, ir::Node& n)
    {
        TW_ASSIGN(auto const results, resultsOf(cell, i, n));
        if (!results)
            return false;
        for (size_t k = 0; k < results->outputs.size(); ++k)
            if (results->outputs[k] && g_.useCount(loop_.outputs[k]) > 0)
                TW_TRY(maker_.replace(loop_.outputs[k], results->outputs[k]));
        ctx_.log.info("fused {}", n.name);
        ir::Value* const next = body_.outputs[i];
        body_.outputs[i] = body_.inputs[i];
        if (cell.c >= 0)
            body_.outputs[size_t(cell.c)] = body_.inputs[size_t(cell.c)];
        if (std::ranges::all_of(loop_.outputs, [&](ir::Value const* v) { return g_.useCount(v) == 0; })) {
            g_.eraseNode(&loop_);
            return true;
        }
        TW_TRY(iterateOver(results->states, next, isReverse(n)));
        return true;
    }
    // What else the body does reads the states of all steps.
    Result<void> iterateOver(ir::Value* states, ir::Value* next, bool reverse)
    {
        if (body_.useCount(next) == 0)
            return {};
        TW_ASSIGN(ir::Value * state, addIterator(g_, loop_, states, 0, reverse, next->shape));
        body_.replaceAllUses(next, state);
        return {};
    }

    ir::Graph& g_;
    PassContext const& ctx_;
    ir::Node& loop_;
    ir::Graph& body_;
    ops::loop::Attrs const attrs_;
    ops::loop::Layout const at_;
    NodeMaker maker_;
    CellTerms terms_;
    SequenceReader sequences_;
    TripNumbers const numbers_;
    std::optional<LimitedValue> limited_; // the cell's next state, where sequences have lengths
    Dim rows_;                            // of its state
    ir::Value* next_ = nullptr;           // inside of the length, or in all steps
    int64_t plus_ = 0;                    // steps more than the length
};

} // namespace

Result<bool> fuseRecurrence(ir::Graph& g, PassContext const& ctx)
{
    bool changed = false;
    for (size_t i = 0; i < g.nodes.size(); ++i) {
        ir::Node& n = *g.nodes[i];
        if (n.op->regions != ir::RegionKind::kLoop)
            continue;
        TW_ASSIGN(bool const fused, RecurrenceFuser(g, ctx, n).run());
        if (fused)
            i = size_t(-1); // from the start: nodes have moved, and there may be another cell
        changed = changed || fused;
    }
    TW_ASSIGN(bool const turned, dropTranspositions(g));
    g.eraseUnusedValues(); // also what was tried
    return changed || turned;
}

} // namespace tw::passes
