// SPDX-License-Identifier: Apache-2.0
// Makes one op `recurrence` of the copies of an RNN, LSTM or GRU cell that a sequence was unrolled into.
//   before: h1 = tanh(x0 W + h0 R + b), h2 = tanh(x1 W + h1 R + b), ..
//   after: y = recurrence(x, R, W, b, h0), h1 = y[0], h2 = y[1], ..
// A cell is known by what it computes (passes/recurrence/recurrence.h), steps by the weights that one state after the other is
// multiplied with (passes/recurrence/unrolled_cells.h). Inputs that are the steps of one tensor are read there, others are put
// together; stacks of the states are y itself. A first cell may lack what is multiplied with an initial state of zeros. Any
// form. Stands before fold_constants, which would fold the products with such states to constants: that cell then stays
// apart, as does every one that is spelled in another way than those behind it. Leaves alone: single cells; inputs that depend on states, cell states and gates that others
// read; layers with wishes of the user; weights that may be refitted.
#include <algorithm>

#include "ops/gather/op.h"
#include "passes/list.h"
#include "passes/recurrence/recurrence.h"
#include "passes/recurrence/unrolled_cells.h"
#include "passes/rewrite.h"
#include "passes/strided_view.h"
#include "recipe/recipes.h"

namespace tw::passes {

namespace {

using ir::Dim;
using ir::Shape;

// What a leaf is in each step.
struct Input
{
    std::vector<ir::Value*> values;
    ir::Value* whole = nullptr; // the tensor that they are steps of, along `axis`; null: of none
    int axis = 0;
    std::vector<int64_t> steps;
};

class Unrolled
{
public:
    Unrolled(ir::Graph& g, PassContext const& ctx, UnrolledGraph const& known, std::vector<ir::Value*> chain)
        : g_(g), ctx_(ctx), known_(known), cells_(g, known, terms_, ctx.recipes, std::move(chain)),
          sequences_(g, terms_, ctx.recipes, "cell")
    {}

    // Whether it did; where not, touched() tells that nodes have moved.
    Result<bool> run()
    {
        if (!cells_.read())
            return false;
        std::vector<CellState> candidates = cells_.cellStates();
        candidates.push_back({-1, -1});
        for (CellState const& c : candidates) {
            TW_ASSIGN(bool const fused, fuse(c));
            if (fused || touched_)
                return fused;
        }
        return false;
    }
    bool touched() const { return touched_; }

private:
    // ---- inputs

    std::optional<Input> inputOf(int leaf) const
    {
        Input in;
        in.values = cells_.valuesOf(leaf);
        for (ir::Value const* v : in.values)
            if (!v || !(ir::volume(v->shape) == ir::volume(in.values.back()->shape)))
                return {};
        auto const first = stepOf(in.values[0]);
        for (ir::Value* v : in.values) {
            auto const step = stepOf(v);
            if (!first || !step || step->x != first->x || step->axis != first->axis)
                return in;
            in.steps.push_back(step->start);
        }
        in.whole = first->x;
        in.axis = first->axis;
        if (!wholeOf(in))
            in.whole = nullptr;
        return in;
    }
    static bool isAll(Input const& in, bool reverse)
    {
        int64_t const n = int64_t(in.steps.size());
        for (int64_t t = 0; in.whole && t < n; ++t)
            if (in.steps[size_t(t)] != (reverse ? n - 1 - t : t))
                return false;
        return in.whole && in.whole->shape[size_t(in.axis)].is(n);
    }
    std::optional<Sequence> wholeOf(Input const& in) const
    {
        Shape slice = in.whole->shape;
        slice.erase(slice.begin() + in.axis);
        return tw::passes::sequenceOf(in.whole, in.axis, false, slice, cells_.size().rows);
    }
    // Columns that are added to gates as they are.
    std::optional<int> resolve(CellFactor const& f)
    {
        auto const in = inputOf(f.leaf);
        auto const q = in && in->whole ? wholeOf(*in) : std::nullopt;
        auto const sum = q ? sequences_.resolve(*q, f) : std::nullopt;
        if (!sum)
            return {};
        for (auto const& [term, scale] : terms_.sumAt(*sum))
            for (int k : term)
                if (terms_.factorAt(k).kind == CellFactor::Kind::kProduct)
                    for (auto const& inner : terms_.sumAt(terms_.factorAt(k).sum))
                        for (int x : inner.first)
                            if (int const leaf = terms_.factorAt(x).leaf; sequences_.resolved(leaf))
                                if (sources_.try_emplace(leaf, f.leaf).first->second != f.leaf &&
                                    inputOf(sources_[leaf])->steps != in->steps)
                                    return {};
        return sum;
    }

    // ---- the cell

    std::string const& name() const { return cells_.state(cells_.count())->name; }
    bool leave(char const* why) const
    {
        ctx_.log.verbose("the unrolled cells of {} stay apart: {}", name(), why);
        return false;
    }
    Result<bool> fuse(CellState const& c)
    {
        if (cells_.take(c) < 2)
            return false;
        sources_.clear();
        std::vector<CellState> others;
        if (c.leaf >= 0)
            others.push_back(c);
        auto const cell = matchCell(terms_, {0, cells_.next()}, others, cells_.size().hidden,
                                    [&](CellFactor const& f) { return resolve(f); });
        if (!cell || (cell->c >= 0) != (c.leaf >= 0))
            return false;
        nodes_ = cells_.nodes(true);
        inputs_.clear();
        for (int leaf : leavesOf(*cell)) {
            auto const in = inputOf(sequences_.resolved(leaf) ? sources_.at(leaf) : leaf);
            if (!in)
                return leave("its inputs have different shapes");
            inputs_.emplace(leaf, *in);
        }
        return mayTake(*cell) ? make(*cell) : Result<bool>(false);
    }
    bool mayTake(RecurrentCell const& cell)
    {
        for (ir::Node const* n : cells_.nodes(false)) {
            if (hasWish(*n))
                return leave("the user has a wish for one of its layers");
            for (ir::Value const* v : n->inputs) // each step may have weights of its own, which are equal now
                if (v && ctx_.recipes && ctx_.recipes->reaches(*v))
                    return leave("its weights may be refitted");
        }
        if (isRefitted(cell, ctx_.recipes))
            return leave("its weights may be refitted");
        ValueSet taken{cells_.lastCellState()};
        for (size_t t = 1; t <= cells_.count(); ++t)
            taken.insert(cells_.state(t));
        for (ir::Node const* n : nodes_)
            for (ir::Value const* v : n->outputs) {
                auto const& readers = known_.readersOf(v);
                bool const inside =
                    !g_.isOutput(v) && std::ranges::all_of(readers, [&](ir::Node* r) { return nodes_.contains(r); });
                if (!inside && !taken.contains(v))
                    return leave("others read its gates or cell states");
            }
        for (auto const& [leaf, in] : inputs_)
            if (in.values.front() == in.values.back() && !sources_.contains(leaf) && !in.whole)
                return leave("its input is the same in all steps");
        return true;
    }

    // ---- the op

    // Moves what the inputs are computed by in front of the first cell, and gives that cell's first node; null: they are
    // computed of states.
    ir::Node* makeRoom()
    {
        size_t first = g_.nodes.size();
        for (ir::Node const* n : nodes_)
            first = std::min(first, size_t(known_.positionOf(n)));
        ValueSet wanted{cells_.state(0), cells_.cellState(0)}; // or null
        for (auto const& [leaf, in] : inputs_)
            wanted.insert(in.values.begin(), in.values.end());
        std::set<ir::Node const*> moved;
        for (size_t i = g_.nodes.size(); i-- > first;) {
            ir::Node* const n = g_.nodes[i].get();
            if (std::ranges::none_of(n->outputs, [&](auto const* v) { return wanted.contains(v); }))
                continue;
            if (nodes_.contains(n))
                return nullptr;
            moved.insert(n);
            wanted.insert(n->inputs.begin(), n->inputs.end());
        }
        auto const rest = std::stable_partition(g_.nodes.begin() + int64_t(first), g_.nodes.end(),
                                                [&](auto const& n) { return moved.contains(n.get()); });
        return rest->get();
    }
    // None where a shape cannot be said.
    Result<std::optional<Sequence>> sequenceOf(NodeMaker& maker, int leaf, Input const& in, bool reverse)
    {
        if (!in.whole)
            return stackOf(maker, in, reverse);
        Sequence const* const resolved = sequences_.resolved(leaf);
        auto q = resolved ? std::optional(*resolved) : wholeOf(in);
        q->reverse = reverse;
        if (isAll(in, reverse))
            return q;
        if (q->isBehind())
            return resolved ? std::optional<Sequence>() : stackOf(maker, in, reverse);
        Shape shape = q->lead;
        shape.push_back(Dim(q->width));
        TW_ASSIGN(q->value, maker.reshaped(q->value, shape));
        if (!q->value)
            return std::optional<Sequence>();
        TW_ASSIGN(q->value, steps(maker, q->value, q->axis, in.steps));
        q->lead[size_t(q->axis)] = Dim(int64_t(in.steps.size()));
        return q;
    }
    Result<std::optional<Sequence>> stackOf(NodeMaker& maker, Input const& in, bool reverse)
    {
        int64_t const width = cells_.widthOf(in.values[0]->shape).value_or(0);
        std::vector<ir::Value*> parts;
        for (ir::Value* v : in.values) {
            TW_ASSIGN(ir::Value * part, maker.reshaped(v, {Dim(1), cells_.size().rows, Dim(width)}));
            if (!part)
                return std::optional<Sequence>();
            parts.push_back(part);
        }
        if (reverse)
            std::ranges::reverse(parts);
        TW_ASSIGN(ir::Value * all, maker.joined(parts, 0));
        return std::optional(Sequence{all, {Dim(int64_t(parts.size())), cells_.size().rows}, 0, width, reverse});
    }
    Result<ir::Value*> steps(NodeMaker& maker, ir::Value* v, int axis, std::vector<int64_t> const& list)
    {
        std::vector<int32_t> const numbers(list.begin(), list.end());
        ir::Value* const index = g_.addConstant("steps", DataType::kInt32, {int64_t(list.size())}, numbers.data());
        ops::gather::Attrs a;
        a.axis = axis;
        return maker.value(ops::gather::def(), a, {v, index}, "steps");
    }
    Result<bool> make(RecurrentCell const& cell)
    {
        bool const reverse =
            std::ranges::any_of(inputs_, [](auto const& i) { return isAll(i.second, true); }) &&
            std::ranges::all_of(inputs_, [](auto const& i) { return !i.second.whole || isAll(i.second, true); });
        ir::Node* const before = makeRoom();
        if (!before)
            return leave("its inputs depend on its states");
        touched_ = true;
        NodeMaker maker(g_, *before);
        std::map<int, Sequence> sequences;
        for (auto const& [leaf, in] : inputs_) {
            TW_ASSIGN(auto const q, sequenceOf(maker, leaf, in, reverse));
            if (!q)
                return takeBack();
            sequences.emplace(leaf, *q);
        }
        TW_ASSIGN(ir::Node * n, makeRecurrence(maker, cell, sequences, cells_.state(0), cells_.cellState(0)));
        if (!n)
            return takeBack();
        setLayers(*n);
        ctx_.log.info("fused {} steps to {}", cells_.count(), n->name);
        TW_TRY(replaceStates(maker, *n, reverse));
        eraseCells();
        return true;
    }
    bool takeBack()
    {
        for (size_t i = g_.nodes.size(); i-- > 0;)
            if (ir::Node* const n = g_.nodes[i].get(); !known_.contains(n))
                g_.eraseNode(n);
        return leave("the shapes of its inputs cannot be said");
    }
    void setLayers(ir::Node& n) const
    {
        n.layers.clear();
        for (auto const& cell : g_.nodes)
            if (nodes_.contains(cell.get()))
                for (std::string const& layer : cell->layers)
                    if (!contains(n.layers, layer))
                        n.layers.push_back(layer);
    }
    bool isReadOutside(ir::Value const* v) const
    {
        auto const& readers = known_.readersOf(v);
        return g_.isOutput(v) || std::ranges::any_of(readers, [&](ir::Node* r) { return !nodes_.contains(r); });
    }
    Result<void> replaceStates(NodeMaker& maker, ir::Node& n, bool reverse)
    {
        int64_t const count = int64_t(cells_.count());
        bool isLastAlone = true;
        for (int64_t k = 1; k < count; ++k)
            isLastAlone = isLastAlone && !isReadOutside(cells_.state(size_t(k)));
        for (int64_t k = 0; k < count; ++k) {
            ir::Value* const h = cells_.state(size_t(k) + 1);
            if (!isReadOutside(h))
                continue;
            ir::Value* v = n.outputs[1];
            if (!isLastAlone) {
                auto const index = int32_t(reverse ? count - 1 - k : k);
                ops::gather::Attrs a;
                ir::Value* const step = g_.addConstant("step", DataType::kInt32, {}, &index);
                TW_ASSIGN(v, maker.value(ops::gather::def(), a, {n.outputs[0], step}, "step"));
            }
            TW_TRY(replace(maker, h, v));
        }
        ir::Value* const c = cells_.lastCellState();
        return c && isReadOutside(c) ? replace(maker, c, n.outputs[2]) : Result<void>();
    }
    Result<void> replace(NodeMaker& maker, ir::Value* from, ir::Value* with)
    {
        TW_ASSIGN(with, maker.reshaped(with, from->shape));
        if (!with)
            return internalError("the state {} cannot be given its shape", from->name);
        return maker.replace(from, with);
    }
    void eraseCells()
    {
        for (size_t i = g_.nodes.size(); i-- > 0;) {
            ir::Node* const n = g_.nodes[i].get();
            if (nodes_.contains(n) &&
                std::ranges::all_of(n->outputs, [&](ir::Value const* v) { return g_.useCount(v) == 0; }))
                g_.eraseNode(n);
        }
    }

    ir::Graph& g_;
    PassContext const& ctx_;
    UnrolledGraph const& known_;
    CellTerms terms_;
    UnrolledCells cells_;
    SequenceReader sequences_;
    std::map<int, int> sources_;  // the leaf that a sequence of sequences_ was found at
    std::map<int, Input> inputs_; // by leaves of the cell
    std::set<ir::Node*> nodes_;   // of all cells
    bool touched_ = false;
};

} // namespace

Result<bool> fuseUnrolledRecurrence(ir::Graph& g, PassContext const& ctx)
{
    bool changed = false;
    std::set<ir::Value const*> refused;
    for (bool again = true; again;) {
        again = false;
        UnrolledGraph const known(g);
        for (auto const& chain : known.chains()) {
            if (refused.contains(chain.back()))
                continue;
            Unrolled cells(g, ctx, known, chain);
            TW_ASSIGN(bool const fused, cells.run());
            changed = changed || fused;
            again = fused || cells.touched(); // nodes have moved
            if (again && !fused)
                refused.insert(chain.back());
            if (again)
                break;
        }
    }
    TW_ASSIGN(bool const joined, joinSelections(g));
    g.eraseUnusedValues(); // also what was tried
    return changed || joined;
}

} // namespace tw::passes
