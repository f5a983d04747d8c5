// SPDX-License-Identifier: Apache-2.0
// The cells of an unrolled recurrence: one step after the other that computes the same of its state.
#pragma once

#include <memory>
#include <vector>

#include "passes/recurrent_cell.h"
#include "passes/unrolled_steps.h"

namespace tw::recipe {
class Recipes;
}

namespace tw::passes {

class UnrolledCells
{
public:
    // `chain`: values that may be the states.
    UnrolledCells(ir::Graph& g, UnrolledGraph const& known, CellTerms& terms, recipe::Recipes const* refit,
                  std::vector<ir::Value*> chain)
        : g_(g), known_(known), terms_(terms), refit_(refit), states_(std::move(chain))
    {}

    // False: they are none.
    bool read();
    // What all cells make of their state (leaf 0).
    int next() const { return next_; }
    StepReader::Cell const& size() const { return cell_; }
    // What may be a cell state: h' = f * g(S), S has a term of a function and of columns that are no state h.
    std::vector<CellState> cellStates() const;
    // How many of the last steps are the same cell, with this cell state (leaf -1: none): what follows is asked of these.
    size_t take(CellState const& c);

    size_t count() const { return readers_.size() - first_ + hasZeroStart(); }
    ir::Value* state(size_t step) const // 0: the initial one
    {
        return hasZeroStart() && step == 0 ? zeros_ : states_[first_ + step - hasZeroStart()];
    }
    // The cell state before a step, and behind the last one; null: there is none.
    ir::Value* cellState(size_t step) const;
    ir::Value* lastCellState() const { return cLast_; }
    // What a leaf is in each step; null where a step has none.
    std::vector<ir::Value*> valuesOf(int leaf) const;
    std::optional<int64_t> widthOf(ir::Shape const& s) const { return readers_.back()->widthOf(s); }
    StepReader const& reader(size_t step) const
    {
        return hasZeroStart() && step == 0 ? *zeroStart_ : *readers_[first_ + step - hasZeroStart()];
    }

private:
    std::unique_ptr<StepReader> read(ir::Value* h, int end, ir::Value const* state = nullptr) const;
    void takeLastState();
    ir::Value* leafAt(size_t t, int leaf) const;
    bool isNext(size_t t, ir::Value* v);
    ir::Value* findLastCellState() const;
    void takeStart();
    void takeZeroStart();
    bool hasZeroStart() const { return zeroStart_ != nullptr; }
    int withShared(int sum);
    int withZeros(int sum);
    int withLeaves(int sum, std::function<std::optional<int>(int)> const& leafOf);

    ir::Graph& g_;
    UnrolledGraph const& known_;
    CellTerms& terms_;
    recipe::Recipes const* const refit_;
    StepReader::Cell cell_;
    std::vector<ir::Value*> states_;                   // one more than readers_
    std::vector<std::unique_ptr<StepReader>> readers_; // of each step
    std::vector<std::optional<int>> sums_;             // of the next state
    int next_ = -1;                                    // the sum of all of them
    CellState c_{-1, -1};
    ir::Value* cLast_ = nullptr;
    size_t first_ = 0;            // step
    bool hasSharedStart_ = false; // the first step's state is its cell state, too
    // A step in front of the first one whose states are zeros, which are not seen in it.
    std::unique_ptr<StepReader> zeroStart_;
    ir::Value* zeros_ = nullptr;
};

} // namespace tw::passes
