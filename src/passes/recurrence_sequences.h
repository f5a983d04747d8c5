// SPDX-License-Identifier: Apache-2.0
// Sequences that a cell reads, as the graph around it makes them.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "passes/cell_algebra.h"
#include "passes/recurrence_node.h"

namespace tw::recipe {
class Recipes;
}

namespace tw::passes {

// The steps of `v` along `axis`, each of the shape `slice`, which is v's without the axis: some dimensions of it are the
// sequences, `rows` of them, the rest are columns. None where that is not so.
std::optional<Sequence> sequenceOf(ir::Value* v, int axis, bool reverse, ir::Shape const& slice, ir::Dim const& rows);

// Reads columns of sequences that are added to gates as sums of products, which become the cell's own: products in front
// of the cell or, where they are none, a product with ones on the diagonal.
class SequenceReader
{
public:
    SequenceReader(ir::Graph& g, CellTerms& terms, recipe::Recipes const* refit, std::string name)
        : g_(g), terms_(terms), refit_(refit), name_(std::move(name))
    {}
    // None where they have more than 2048 columns. Leaves of the sum: f's, or sequences that resolved() knows.
    std::optional<int> resolve(Sequence const& q, CellFactor const& f);
    Sequence const* resolved(int leaf) const; // null: it is none

private:
    std::optional<int> resolveProducts(Sequence const& q, CellFactor const& f);
    ir::Value* diagonal(DataType type, int64_t n);
    int leafOf(Sequence const& like, ir::Value* v, CellReader const& reader);

    ir::Graph& g_;
    CellTerms& terms_;
    recipe::Recipes const* const refit_;
    std::string const name_;
    std::vector<Sequence> resolved_;
    std::map<int64_t, ir::Value*> diagonals_;
};

} // namespace tw::passes
