// SPDX-License-Identifier: Apache-2.0
// Steps of an unrolled recurrence: which values of a graph are states that the same weights are multiplied with, one
// after the other, and what is computed of one of them, as sums of a cell's terms (passes/cell_algebra.h).
#pragma once

#include <memory>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "passes/cell_algebra.h"

namespace tw::recipe {
class Recipes;
}

namespace tw::passes {

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
    ir::Value* representative(ir::Value* v) const;
    // What is computed for v behind operands of products, steps of a tensor and constants; empty where that is much.
    ValueSet stepOfZeros(ir::Value* v) const;
    // Whether a product reads the value as it is, or as a part of its rows.
    bool isOperand(ir::Value const* v) const { return operands_.contains(v); }

private:
    void addOperands(ir::Value* v, std::vector<ir::Value*>& states);
    void findConstants();
    void findChains();

    ir::Graph const& g_;
    std::unordered_map<ir::Node const*, int> positions_;
    std::unordered_map<ir::Value const*, std::vector<ir::Node*>> readers_;
    std::unordered_map<ir::Value const*, ir::Value*> representatives_;
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
    // `state`: another value that is a leaf whatever it is; may be null.
    StepReader(UnrolledGraph const& g, CellTerms& terms, Cell const& cell, ir::Value* h, int end,
               ir::Value const* state = nullptr);
    // The first step of a recurrence that begins with zeros, of which nothing is left there: `dependents` is what the step
    // computes; `zeros` stands for the state.
    StepReader(UnrolledGraph const& g, CellTerms& terms, Cell const& cell, ir::Value* zeros, ValueSet dependents);
    StepReader(StepReader const&) = delete;

    std::optional<int> sumOf(ir::Value* v);
    bool hasSize(ir::Value const* v) const; // of a state
    std::optional<int64_t> widthOf(ir::Shape const& s) const { return reader_.widthOf(s); }
    bool depends(ir::Value const* v) const { return dependents_.contains(v); }
    std::vector<ir::Value*> const& leaves() const { return leaves_; }
    std::set<ir::Node*> const& allNodes() const { return reader_.nodes(); } // that were read

private:
    CellReader::Leaf leafOf(ir::Value* v);
    bool isSum(ir::Value* v, int depth) const;

    UnrolledGraph const& g_;
    Cell const cell_;
    ir::Value const* const state_;
    ValueSet const dependents_;
    std::vector<ir::Value*> leaves_;
    CellReader reader_;
};

} // namespace tw::passes
