// SPDX-License-Identifier: Apache-2.0
#include "passes/recurrence/unrolled_cells.h"

#include <algorithm>

#include "base/tensor.h"
#include "passes/fuse_nodes.h"
#include "passes/node_kinds.h"
#include "passes/rewrite.h"
#include "passes/strided_view.h"
#include "tactic/registry.h"

namespace tw::passes {

using ir::Dim;
using ir::Shape;
using ops::elementwise::Operation;

namespace {

constexpr size_t kMostCandidates = 64; // for the state after the last step
constexpr int kMostOfZeros = 8;        // nodes between zeros and a value

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
    if (!takeLastState())
        reader_ = std::make_unique<StepReader>(known_, terms_, cell_, states_[states_.size() - 2],
                                               known_.positionOf(states_.back()) + 1);
    auto const sum = reader_->sumOf(states_.back());
    if (!sum)
        return false;
    next_ = *sum;
    for (size_t t = states_.size() - 1; t-- > 0;) {
        Step step;
        step.values[reader_->leaves()[0]] = states_[t];
        if (!reader_->hasSize(states_[t]) || !match(states_.back(), states_[t + 1], step))
            break;
        steps_.push_back(std::move(step));
    }
    std::ranges::reverse(steps_);
    return !steps_.empty();
}

// The state after the last product, which no product reads.
bool UnrolledCells::takeLastState()
{
    ir::Value* const h = states_.back();
    int const end = int(g_.nodes.size());
    reader_ = std::make_unique<StepReader>(known_, terms_, cell_, h, end);
    size_t tried = 0;
    for (int i = known_.positionOf(h) + 1; i < end && tried < kMostCandidates; ++i)
        for (ir::Value* v : g_.nodes[size_t(i)]->outputs) {
            if (!reader_->depends(v) || !reader_->hasSize(v) || rootOf(v) != v)
                continue;
            ++tried;
            Step before;
            before.values[h] = states_[states_.size() - 2];
            if (!match(v, h, before))
                continue;
            states_.push_back(v);
            return true;
        }
    return false;
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

ir::Value* UnrolledCells::valueAt(Step const& step, ir::Value* v)
{
    auto const at = step.values.find(rootOf(v));
    return at == step.values.end() ? nullptr : at->second;
}

// Whether `there` is in the step what `v` is in the last one: behind the same nodes of the same constants.
bool UnrolledCells::match(ir::Value* v, ir::Value* there, Step& step) const
{
    if (v->type != there->type || !(v->shape == there->shape))
        return false;
    ir::Value *const x = rootOf(v), *const y = rootOf(there);
    for (; there != y; there = there->producer->inputs[0])
        step.nodes.emplace_back(v, there->producer);
    if (step.isOfZeros && isZero(x)) {
        Step more = step; // with what is computed of zeros in vain
        if (matchNodes(x, y, more))
            step = std::move(more);
        return isZero(y);
    }
    if (auto const [at, isNew] = step.values.try_emplace(x, y); !isNew)
        return at->second == y;
    if (reader_->isLeaf(x))
        return true;
    if (x->isConstant())
        return areSame(x, y);
    ir::Value* const other = step.isOfZeros ? besideZeros(*x->producer, y->producer) : nullptr;
    return other ? match(other, y, step) : matchNodes(x, y, step);
}

bool UnrolledCells::matchNodes(ir::Value* v, ir::Value* there, Step& step) const
{
    ir::Node *const n = v->producer, *const m = there->producer;
    if (!n || !m || n->op != m->op || n->inputs.size() != m->inputs.size() || !ir::equalAttrs(*n->attrs, *m->attrs))
        return false;
    step.nodes.emplace_back(v, m);
    for (size_t i = 0; i < n->inputs.size(); ++i)
        if (!n->inputs[i] != !m->inputs[i] || (n->inputs[i] && !match(n->inputs[i], m->inputs[i], step)))
            return false;
    return true;
}

// Whether the value is zero where the states of the last step are.
bool UnrolledCells::isZero(ir::Value* v, int depth) const
{
    v = rootOf(v);
    if (v == reader_->leaves()[0] || v == c_ || numberOf(v, refit_) == 0.0)
        return true;
    ir::Node const* const n = v->producer;
    if (!n || depth > kMostOfZeros)
        return false;
    auto const isInputZero = [&](ir::Value* in) { return in && isZero(in, depth + 1); };
    if (is(n, Operation::kProd) || (n->op == &ops::matrix_multiply::def() && n->inputs.size() == 2))
        return std::ranges::any_of(n->inputs, isInputZero);
    bool const isLinear = is(n, Operation::kSum) || is(n, Operation::kSub) || n->op == &ops::slice::def() ||
                          n->op == &ops::concatenation::def();
    return isLinear && std::ranges::all_of(n->inputs, isInputZero);
}

// What is left of a sum with zeros, where `there` is no such sum; null: all of it.
ir::Value* UnrolledCells::besideZeros(ir::Node const& n, ir::Node const* there) const
{
    if (!is(&n, Operation::kSum) && !is(&n, Operation::kSub))
        return nullptr;
    for (size_t i = is(&n, Operation::kSum) ? 0 : 1; i < 2; ++i)
        if (isZero(n.inputs[i])) {
            bool const isSame =
                there && there->op == n.op && ir::equalAttrs(*there->attrs, *n.attrs) && isZero(there->inputs[i]);
            return isSame ? nullptr : n.inputs[1 - i];
        }
    return nullptr;
}

size_t UnrolledCells::take(CellState const& c)
{
    c_ = c.leaf < 0 ? nullptr : rootOf(reader_->leaves()[size_t(c.leaf)]);
    cLast_ = nullptr;
    size_t first = steps_.size() - 1;
    for (; first > 0; --first) {
        if (!c_)
            continue;
        ir::Value* const before = valueAt(steps_[first], c_);
        cLast_ = cLast_ ? cLast_ : nextCellState(steps_[first - 1], before, c.next);
        if (!cLast_ || valueAt(steps_[first - 1], cLast_) != before)
            break;
    }
    taken_.clear();
    for (size_t t = first; t < steps_.size(); ++t)
        taken_.push_back(&steps_[t]);
    if (first == 0 && takeZeroStart(c))
        taken_.insert(taken_.begin(), &zeroStart_);
    if (c_)
        ofCellState_ = known_.dependents(c_, known_.positionOf(states_.back()) + 1);
    return c_ && !cLast_ ? 0 : count();
}

// What makes the cell state of the last step that is `there` in this one; null: nothing.
ir::Value* UnrolledCells::nextCellState(Step const& step, ir::Value* there, int sum)
{
    for (auto const& [v, n] : step.nodes) {
        ir::Value* const made = const_cast<ir::Value*>(v);
        if (valueAt(step, made) == there && reader_->depends(made) && rootOf(made) == made &&
            reader_->sumOf(made) == sum)
            return made;
    }
    return nullptr;
}

// The step in front of all, which makes the first state without a product of one: of zeros.
bool UnrolledCells::takeZeroStart(CellState const& c)
{
    ir::Value *const h = states_[0], *const cell = c_ ? valueAt(steps_[0], c_) : nullptr;
    if (!h->producer || !ir::isStatic(h->shape) || (c_ && (!cell || !cell->producer)))
        return false;
    if (!zeros_) {
        Tensor const t(h->type, ir::extentsOf(h->shape));
        zeros_ = g_.addConstant(h->name + ".zeros", h->type, t.dims(), t.data());
    }
    zeroStart_ = {};
    zeroStart_.isOfZeros = true;
    zeroStart_.values[reader_->leaves()[0]] = zeros_;
    if (c_)
        zeroStart_.values[c_] = zeros_;
    if (!match(states_.back(), h, zeroStart_))
        return false;
    if (c_ && !cLast_)
        cLast_ = nextCellState(zeroStart_, cell, c.next);
    return !c_ || (cLast_ && valueAt(zeroStart_, cLast_) == cell);
}

std::vector<ir::Value*> UnrolledCells::valuesOf(int leaf) const
{
    auto list =
        mapped<ir::Value*>(taken_, [&](Step const* step) { return valueAt(*step, reader_->leaves()[size_t(leaf)]); });
    return list;
}

std::set<ir::Node*> UnrolledCells::nodes(bool ofStates) const
{
    std::set<ir::Node*> all;
    for (Step const* step : taken_)
        for (auto const& [v, n] : step->nodes)
            if (!ofStates || reader_->depends(v) || (c_ && ofCellState_.contains(v)))
                all.insert(n);
    return all;
}

} // namespace tw::passes
