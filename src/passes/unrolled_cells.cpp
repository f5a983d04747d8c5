// SPDX-License-Identifier: Apache-2.0
#include "passes/unrolled_cells.h"

#include <algorithm>

#include "base/tensor.h"
#include "passes/strided_view.h"

namespace tw::passes {

using ir::Dim;
using ir::Shape;

namespace {

constexpr size_t kMostCandidates = 64; // for the state after the last step

bool findPath(ir::Value* of, ir::Value* to, std::vector<size_t>& path, int depth)
{
    constexpr int kDeepest = 6; // a product and a sum, with reshapes
    if (of == to)
        return true;
    for (size_t i = 0; of->producer && depth < kDeepest && i < of->producer->inputs.size(); ++i) {
        path.push_back(i);
        if (of->producer->inputs[i] && findPath(of->producer->inputs[i], to, path, depth + 1))
            return true;
        path.pop_back();
    }
    return false;
}

// The value that is to `c` what `c` is to `next`: behind the same inputs of the same ops. Null: there is none.
ir::Value* before(ir::Value* next, ir::Value* c)
{
    std::vector<size_t> path;
    if (next == c || !findPath(next, c, path, 0))
        return nullptr;
    for (size_t i : path) {
        ir::Node const *const a = next->producer, *const b = c->producer;
        if (!b || a->op != b->op || i >= b->inputs.size() || !b->inputs[i])
            return nullptr;
        next = a->inputs[i];
        c = b->inputs[i];
    }
    return c;
}

} // namespace

bool UnrolledCells::read()
{
    ir::Value const& h = *states_.back();
    if (!isFloating(h.type) || h.rank() == 0)
        return false;
    bool const isOne = h.rank() == 1 || h.shape.back().is(1); // row or column
    Dim const width = isOne ? ir::volume(h.shape) : h.shape.back();
    if (!width.isConst() || width.value() < 1)
        return false;
    cell_ = {isOne ? Dim(1) : ir::volume(Shape(h.shape.begin(), h.shape.end() - 1)), width.value(), h.type, refit_};
    for (size_t t = 0; t + 1 < states_.size(); ++t) {
        readers_.push_back(read(states_[t], known_.positionOf(states_[t + 1]) + 1));
        sums_.push_back(readers_[t]->hasSize(states_[t]) ? readers_[t]->sumOf(states_[t + 1]) : std::nullopt);
    }
    if (!sums_.back())
        return false;
    next_ = *sums_.back();
    takeLastState();
    return true;
}

std::unique_ptr<StepReader> UnrolledCells::read(ir::Value* h, int end, ir::Value const* state) const
{
    return std::make_unique<StepReader>(known_, terms_, cell_, h, end, state);
}

// The state after the last product, which no product reads.
void UnrolledCells::takeLastState()
{
    ir::Value* const h = states_.back();
    int const end = int(g_.nodes.size());
    size_t tried = 0;
    ValueSet const of = known_.dependents(h, end);
    for (int i = known_.positionOf(h) + 1; i < end && tried < kMostCandidates; ++i)
        for (ir::Value* v : g_.nodes[size_t(i)]->outputs) {
            if (!of.contains(v) || !readers_[0]->hasSize(v) || rootOf(v) != v)
                continue;
            ++tried;
            auto last = read(h, i + 1);
            if (last->sumOf(v) != next_)
                continue;
            readers_.push_back(std::move(last));
            sums_.emplace_back(next_);
            states_.push_back(v);
            return;
        }
}

std::vector<CellState> UnrolledCells::cellStates() const
{
    std::vector<CellState> list;
    CellSum const& next = terms_.sumAt(next_);
    if (next.size() != 1 || next.begin()->first.size() != 2)
        return list;
    for (int f : next.begin()->first) {
        CellFactor const& function = terms_.factorAt(f);
        if (function.kind != CellFactor::Kind::kFunction)
            continue;
        for (auto const& [term, scale] : terms_.sumAt(function.sum))
            for (int k : term)
                if (term.size() == 2 && terms_.factorAt(k).kind == CellFactor::Kind::kColumns &&
                    terms_.factorAt(k).leaf > 0)
                    list.push_back({terms_.factorAt(k).leaf, function.sum});
    }
    return list;
}

ir::Value* UnrolledCells::leafAt(size_t t, int leaf) const
{
    auto const& leaves = readers_[t]->leaves();
    return size_t(leaf) < leaves.size() ? leaves[size_t(leaf)] : nullptr;
}

size_t UnrolledCells::take(CellState const& c)
{
    size_t const last = readers_.size() - 1;
    c_ = c;
    hasSharedStart_ = false;
    zeroStart_ = nullptr;
    first_ = readers_.size();
    for (size_t t = last + 1; t-- > 0;) {
        if (sums_[t] != next_ || (c.leaf >= 0 && t < last && !isNext(t, leafAt(t + 1, c.leaf))))
            break;
        first_ = t;
    }
    cLast_ = c.leaf >= 0 ? findLastCellState() : nullptr;
    if (c.leaf >= 0 && first_ > 0 && first_ <= last)
        takeStart();
    if (first_ == 0 && !hasSharedStart_)
        takeZeroStart();
    return count();
}

bool UnrolledCells::isNext(size_t t, ir::Value* v)
{
    return v && readers_[t]->depends(v) && readers_[t]->sumOf(v) == c_.next;
}

ir::Value* UnrolledCells::findLastCellState() const
{
    ir::Value *const from = states_[states_.size() - 2], *const to = states_.back();
    int const end = known_.positionOf(to);
    auto last = read(from, end + 1); // what is tried here is no part of the cell
    if (last->sumOf(to) != next_)
        return nullptr;
    for (int i = known_.positionOf(from) + 1; i < end; ++i)
        for (ir::Value* v : g_.nodes[size_t(i)]->outputs)
            if (last->depends(v) && rootOf(v) == v && last->sumOf(v) == c_.next)
                return v;
    return nullptr;
}

// The step in front of the first one, where its cell state is a constant or the same value as its state.
void UnrolledCells::takeStart()
{
    size_t const t = first_ - 1;
    ir::Value* const c = leafAt(first_, c_.leaf);
    ir::Value* const next = first_ + 1 < readers_.size() ? leafAt(first_ + 1, c_.leaf) : cLast_;
    ir::Value* const to = next ? before(next, c) : nullptr;
    if (!to || !readers_[t]->hasSize(states_[t]))
        return;
    auto start = read(states_[t], known_.positionOf(states_[t + 1]) + 1, to);
    auto const sum = start->sumOf(states_[t + 1]), cells = start->sumOf(c);
    bool const shared = to == states_[t];
    if (!start->depends(c) || sum != (shared ? withShared(next_) : next_) ||
        cells != (shared ? withShared(c_.next) : c_.next))
        return;
    readers_[t] = std::move(start);
    hasSharedStart_ = shared;
    first_ = t;
}

// The step in front of all, which makes the first state without a product of one: of zeros.
void UnrolledCells::takeZeroStart()
{
    ir::Value *const h = states_[0], *const c = c_.leaf >= 0 ? leafAt(0, c_.leaf) : nullptr;
    if (!h->producer || !ir::isStatic(h->shape) || (c_.leaf >= 0 && (!c || !c->producer)) ||
        !readers_.back()->hasSize(h))
        return;
    ValueSet const made = known_.stepOfZeros(h);
    if (made.empty() || (c && !made.contains(c)))
        return;
    if (!zeros_) {
        Tensor const t(h->type, ir::extentsOf(h->shape));
        zeros_ = g_.addConstant(h->name + ".zeros", h->type, t.dims(), t.data());
    }
    auto start = std::make_unique<StepReader>(known_, terms_, cell_, zeros_, made);
    if (start->sumOf(h) == withZeros(next_) && (!c || start->sumOf(c) == withZeros(c_.next)))
        zeroStart_ = std::move(start);
}

// The sum of other leaves; none: what is multiplied with it is zero.
int UnrolledCells::withLeaves(int sum, std::function<std::optional<int>(int)> const& leafOf)
{
    CellSum out;
    for (auto const& [term, scale] : CellSum(terms_.sumAt(sum))) {
        CellTerm changed;
        bool isZero = false;
        for (int f : term) {
            CellFactor factor = terms_.factorAt(f);
            if (factor.kind == CellFactor::Kind::kColumns) {
                auto const leaf = leafOf(factor.leaf);
                isZero = isZero || !leaf;
                factor.leaf = leaf.value_or(0);
            } else if (factor.sum >= 0) {
                factor.sum = withLeaves(factor.sum, leafOf);
                isZero = isZero || (factor.kind == CellFactor::Kind::kProduct && terms_.sumAt(factor.sum).empty());
            }
            changed.push_back(terms_.factor(factor));
        }
        std::sort(changed.begin(), changed.end());
        if (!isZero && (out[changed] += scale) == 0)
            out.erase(changed);
    }
    return terms_.sum(out);
}

// The sum where the cell state is leaf 0, and leaves behind it are one further ahead.
int UnrolledCells::withShared(int sum)
{
    return withLeaves(sum, [&](int leaf) { return leaf == c_.leaf ? 0 : leaf - (leaf > c_.leaf); });
}

// The sum where the states are zeros.
int UnrolledCells::withZeros(int sum)
{
    return withLeaves(sum, [&](int leaf) {
        bool const isState = leaf == 0 || leaf == c_.leaf;
        return isState ? std::nullopt : std::optional(leaf - (c_.leaf >= 0 && leaf > c_.leaf));
    });
}

ir::Value* UnrolledCells::cellState(size_t step) const
{
    if (c_.leaf < 0 || (step == 0 && hasZeroStart()))
        return c_.leaf < 0 ? nullptr : zeros_;
    return step == 0 && hasSharedStart_ ? states_[first_] : leafAt(first_ + step - hasZeroStart(), c_.leaf);
}

std::vector<ir::Value*> UnrolledCells::valuesOf(int leaf) const
{
    std::vector<ir::Value*> list;
    if (hasZeroStart()) {
        size_t const i = size_t(leaf - (c_.leaf >= 0 && leaf > c_.leaf));
        list.push_back(i < zeroStart_->leaves().size() ? zeroStart_->leaves()[i] : nullptr);
    }
    for (size_t t = first_; t < readers_.size(); ++t)
        list.push_back(leafAt(t, leaf - (t == first_ && hasSharedStart_ && leaf > c_.leaf)));
    return list;
}

} // namespace tw::passes
