// SPDX-License-Identifier: Apache-2.0
// The cells of an unrolled recurrence: one step after the other that computes the same of its state.
#pragma once

#include <memory>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "passes/recurrence/cell_algebra.h"
#include "passes/recurrence/recurrence.h"

namespace tw::passes {

// Steps of an unrolled recurrence: which values of a graph are states that the same weights are multiplied with, one
// after the other, and what is computed of one of them, as sums of a cell's terms (passes/recurrence/cell_algebra.h).
using ValueSet = std::unordered_set<ir::Value const*>;

// What one asks of a graph that does not change meanwhile.
class UnrolledGraph
{
public:
    explicit UnrolledGraph(ir::Graph const& g);

    // Values that products with the same weights read, each computed of the one before, in order of execution.
    std::vector<std::vector<ir::Value*>> const& chains() const { return chains_; }
    // -1: no node makes it.
    int positionOf(ir::Value const* v) const { return v->producer ? positions_.at(v->producer) : -1; }
    int positionOf(ir::Node const* n) const { return positions_.at(n); }
    bool contains(ir::Node const* n) const { return positions_.contains(n); }
    // What is computed of `v` by the nodes before position `end`, and v.
    ValueSet dependents(ir::Value const* v, int end) const;
    std::vector<ir::Node*> const& readersOf(ir::Value const* v) const;
    // The first constant with these elements.
    ir::Value* firstOf(ir::Value* constant) const;
    // Whether a product reads the value as it is, or as a part of its rows.
    bool isOperand(ir::Value const* v) const { return operands_.contains(v); }

private:
    void addOperands(ir::Value* v, std::vector<ir::Value*>& states);
    void findChains();

    ir::Graph const& g_;
    std::unordered_map<ir::Node const*, int> positions_;
    std::unordered_map<ir::Value const*, std::vector<ir::Node*>> readers_;
    ValueSet operands_;
    std::vector<std::vector<ir::Value*>> chains_;
};

// Reads what is computed of the state `h`. Leaf 0 is h; the others are numbered as they are met: values that do not
// depend on h and are no sums.
class StepReader
{
public:
    struct Cell
    {
        ir::Dim rows;
        int64_t hidden = 0;
        DataType type = DataType::kFloat;
        recipe::Recipes const* refit = nullptr;
    };
    StepReader(UnrolledGraph const& g, CellTerms& terms, Cell const& cell, ir::Value* h, int end);
    StepReader(StepReader const&) = delete;

    std::optional<int> sumOf(ir::Value* v);
    bool hasSize(ir::Value const* v) const; // of a state
    std::optional<int64_t> widthOf(ir::Shape const& s) const { return reader_.widthOf(s); }
    bool depends(ir::Value const* v) const { return dependents_.contains(v); }
    bool isLeaf(ir::Value* v) const;
    std::vector<ir::Value*> const& leaves() const { return leaves_; }

private:
    CellReader::Leaf leafOf(ir::Value* v);
    bool isSum(ir::Value* v, int depth) const;

    UnrolledGraph const& g_;
    Cell const cell_;
    ValueSet const dependents_;
    std::vector<ir::Value*> leaves_;
    CellReader reader_;
};

// The last step is read, and what its values are in the steps before is found by going through the same nodes.
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

    size_t count() const { return taken_.size(); }
    ir::Value* state(size_t step) const // 0: the initial one
    {
        return step < count() ? valueAt(*taken_[step], reader_->leaves()[0]) : states_.back();
    }
    // The cell state before a step, and behind the last one; null: there is none.
    ir::Value* cellState(size_t step) const { return c_ ? valueAt(*taken_[step], c_) : nullptr; }
    ir::Value* lastCellState() const { return cLast_; }
    // What a leaf is in each step, whatever shape it has been given; null where a step has none.
    std::vector<ir::Value*> valuesOf(int leaf) const;
    std::optional<int64_t> widthOf(ir::Shape const& s) const { return reader_->widthOf(s); }
    // The nodes of all steps, or those alone that compute something of a state or cell state.
    std::set<ir::Node*> nodes(bool ofStates) const;

private:
    // What values of the last step are in another one, both behind reshapes; and the nodes that make these, beside what
    // they make in the last step.
    struct Step
    {
        std::unordered_map<ir::Value const*, ir::Value*> values;
        std::vector<std::pair<ir::Value const*, ir::Node*>> nodes;
        bool isOfZeros = false; // both states are zeros, and what is computed of them may be missing
    };
    static ir::Value* valueAt(Step const& step, ir::Value* v);
    bool match(ir::Value* v, ir::Value* there, Step& step) const;
    bool matchNodes(ir::Value* v, ir::Value* there, Step& step) const;
    bool isZero(ir::Value* v, int depth = 0) const;
    ir::Value* besideZeros(ir::Node const& n, ir::Node const* there) const;
    ir::Value* nextCellState(Step const& step, ir::Value* there, int sum);
    bool takeLastState();
    bool takeZeroStart(CellState const& c);

    ir::Graph& g_;
    UnrolledGraph const& known_;
    CellTerms& terms_;
    recipe::Recipes const* const refit_;
    StepReader::Cell cell_;
    std::vector<ir::Value*> states_;
    std::unique_ptr<StepReader> reader_; // of the last step
    int next_ = -1;                      // the sum of its next state
    std::vector<Step> steps_;            // all that have the same nodes
    Step zeroStart_;                     // in front of them
    ir::Value* zeros_ = nullptr;
    std::vector<Step const*> taken_;
    ir::Value *c_ = nullptr, *cLast_ = nullptr; // the cell state in front of the last step and behind it
    ValueSet ofCellState_;
};

} // namespace tw::passes
