// SPDX-License-Identifier: Apache-2.0
// Which cell of ops/recurrence sums of a loop's body are.
#pragma once

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "ops/recurrence/op.h"
#include "passes/cell_algebra.h"

namespace tw::recipe {
class Recipes;
}

namespace tw::passes {

// `scale` times a block of a matrix (a product) or of a vector (a bias).
struct CellBlock
{
    CellFactor factor;
    double scale = 1;
};
// What a product with an input reads: columns of a leaf.
struct CellSource
{
    int leaf = 0;
    int64_t begin = 0, count = 0;
    auto operator<=>(CellSource const&) const = default;
};
struct CellGate
{
    std::vector<std::pair<CellSource, CellBlock>> x;
    std::vector<CellBlock> h;
    std::vector<CellBlock> bias, stateBias, peepholes;
    double number = 0, stateNumber = 0; // parts of the biases that are the same for all columns
};
struct RecurrentCell
{
    ops::recurrence::Attrs attrs;
    std::vector<CellGate> gates; // in the op's order
    bool hasPeepholes = false;
    int c = -1; // the leaf of the cell state
};

// The states by their leaves, and the sums that are next.
struct CellState
{
    int leaf = 0;
    int next = 0;
};
// Columns of a leaf that are added to a gate as they are, as a sum of products, vectors and numbers.
using ResolveColumns = std::function<std::optional<int>(CellFactor const&)>;

std::optional<RecurrentCell> matchCell(CellTerms& terms, CellState const& h, std::vector<CellState> const& others,
                                       int64_t hidden, ResolveColumns const& resolve);

// Whether refit reaches a constant of the cell.
bool isRefitted(RecurrentCell const& cell, recipe::Recipes const* refit);

} // namespace tw::passes
