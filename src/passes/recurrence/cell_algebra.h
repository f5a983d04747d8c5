// SPDX-License-Identifier: Apache-2.0
// What columns of a value are, as a sum of products, however layers spell it: the sums of a loop's body by which
// fuse_recurrence knows a cell. (1 - z) * n + z * h, n + z * (h - n) and h * z + n - z * n are one sum of three terms.
// A value holds `rows` rows (sequences), each a flat run of columns; what is the same in all rows is a vector.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ops/activation/op.h"
#include "passes/rewrite.h"

namespace tw::passes {

// What is multiplied in a term. Columns [begin, begin + count) of a leaf, of a vector, or of a product of `sum` (as wide
// as `rows`) and rows [row, row + rows) of a matrix; a function of `sum`, or `sum` clipped.
struct CellFactor
{
    enum class Kind
    {
        kColumns,
        kVector,
        kProduct,
        kFunction,
        kClip,
    };
    Kind kind = Kind::kColumns;
    int leaf = -1;
    ir::Value* value = nullptr;    // vector or matrix
    bool transposed = false;       // the matrix has a row for each column
    int64_t height = 0, width = 0; // of the matrix as it is multiplied
    int64_t begin = 0, count = 0, row = 0, rows = 0;
    int sum = -1;
    ops::activation::Attrs function; // clip: alpha to beta
};

// Coefficients of products of factors, by the factors' sorted numbers; without factors: a number for every column.
using CellTerm = std::vector<int>;
using CellSum = std::map<CellTerm, double>;

// Equal factors and sums have equal numbers.
class CellTerms
{
public:
    int factor(CellFactor const& f);
    int sum(CellSum const& s);
    CellFactor const& factorAt(int i) const { return factors_[size_t(i)]; }
    CellSum const& sumAt(int i) const { return sums_[size_t(i)]; }
    int one(CellFactor const& f) { return sum({{{factor(f)}, 1}}); }

    int added(int a, int b, double scaleOfB);
    std::optional<int> multiplied(int a, int b); // none where it would be long
    // The only factor, where the sum is that; else -1.
    int onlyFactor(int s) const;

private:
    std::deque<CellFactor> factors_; // references stay good
    std::deque<CellSum> sums_;
    std::map<std::string, int> factorIds_, sumIds_;
};

// How many dimensions together are `wanted` elements, from the first on; none: no number of them is.
std::optional<size_t> prefixOf(ir::Shape const& s, ir::Dim const& wanted);

// Reads values of one graph.
class CellReader
{
public:
    // What a value that no node of the cell makes stands for. Invariant: the same in all rows and trips.
    struct Leaf
    {
        enum class Kind
        {
            kNone,
            kColumns,
            kInvariant,
        };
        Kind kind = Kind::kNone;
        int number = -1;            // of columns
        ir::Value* value = nullptr; // that is invariant, as the graph outside sees it
    };
    using LeafOf = std::function<Leaf(ir::Value*)>;

    CellReader(CellTerms& terms, ir::Dim rows, DataType type, recipe::Recipes const* refit, LeafOf leafOf)
        : terms_(terms), rows_(std::move(rows)), type_(type), refit_(refit), leafOf_(std::move(leafOf))
    {}
    // The sum that columns [begin, begin + count) are; none where they are no such thing.
    std::optional<int> columns(ir::Value* v, int64_t begin, int64_t count);
    // Columns of a row; none where the value has no such rows.
    std::optional<int64_t> widthOf(ir::Shape const& s) const;
    std::set<ir::Node*> const& nodes() const { return nodes_; } // that were read

private:
    int prefixOf(ir::Shape const& s) const; // dimensions of rows; -1: none
    std::optional<int> operand(ir::Shape const& out, ir::Value* v, int64_t begin, int64_t count);
    std::optional<int> invariant(ir::Value* v, int64_t begin, int64_t count);
    std::optional<int> ofNode(ir::Node& n, ir::Value* v, int64_t begin, int64_t count);
    std::optional<int> ofElementwise(ir::Node& n, int64_t begin, int64_t count);
    std::optional<int> ofActivation(ir::Node& n, int64_t begin, int64_t count);
    std::optional<int> ofShuffle(ir::Node& n, int64_t begin, int64_t count);
    std::optional<int> ofSlice(ir::Node& n, int64_t begin, int64_t count);
    std::optional<int> ofConcatenation(ir::Node& n, int64_t begin, int64_t count);
    std::optional<int> ofProduct(ir::Node& n, int64_t begin, int64_t count);
    std::optional<int> productOf(ir::Value* x, CellFactor matrix);
    // Where a concatenation among what makes v has its joints.
    void joints(ir::Value* v, int64_t at, std::set<int64_t>& list) const;
    ir::Value* matrixOf(ir::Value* v) const;

    CellTerms& terms_;
    ir::Dim const rows_;
    DataType const type_;
    recipe::Recipes const* const refit_;
    LeafOf const leafOf_;
    std::set<ir::Node*> nodes_;
    int depth_ = 0;
};

} // namespace tw::passes
