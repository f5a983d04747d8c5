// SPDX-License-Identifier: Apache-2.0
// What a loop's body counts its trips by, and tensors that it goes along.
#pragma once

#include <optional>

#include "ops/loop/op.h"
#include "passes/rewrite.h"

namespace tw::passes {

// start + step * trip. Step 0: the same in all trips.
struct TripNumber
{
    ir::Dim start;
    int64_t step = 0;
    bool operator==(TripNumber const&) const = default;
};

class TripNumbers
{
public:
    // What `of` and `outside` are asked about is of this region: the body (1), or the condition (0), whose slices count
    // nothing, as it sees the last one behind the end.
    TripNumbers(ir::Node const& loop, recipe::Recipes const* refit, size_t region = 1);

    // One i32 of the region: carried values that a number is added to, slices of numbers in order, sums and differences of
    // these with what shape arithmetic knows.
    std::optional<TripNumber> of(ir::Value* v) const { return of(v, 0); }
    // What a value of the region that no trip changes is outside: what a capture is there, or a constant (of the region).
    // Null: it is no such thing.
    ir::Value* outside(ir::Value* v) const;
    // The tensor outside that a value of the region is slices of, and which; -1: of none.
    int iteratedOf(ir::Value const* v) const;
    ir::Value* iterated(int s) const { return loop_.inputs[at_.iteratedAt(size_t(s))]; }
    int axis(int s) const { return int(attrs_.iteratorAxes[size_t(s)]); }
    // What the numbers of slices, in order, are in the order of trips.
    TripNumber inTrips(int s, TripNumber const& inOrder) const;

    // Element k, in the order in which they lie, is start + step * k.
    std::optional<TripNumber> sequence(ir::Value* v) const;
    // The only element of an i32 of the graph around.
    std::optional<ir::Dim> number(ir::Value const* v) const;
    // How many trips there are at most; none where that is not known when shapes are.
    std::optional<ir::Dim> most() const;

private:
    std::optional<TripNumber> of(ir::Value* v, int depth) const;
    std::optional<TripNumber> ofCarried(size_t k, int depth) const;
    std::optional<TripNumber> ofSum(ir::Node const& n, int depth) const;

    ir::Node const& loop_;
    ir::Graph const& region_;
    ops::loop::Attrs const& attrs_;
    ops::loop::Layout const at_;
    recipe::Recipes const* const refit_;
};

// Slices of `x` along the axis as another input of the loop's regions; `like` is one of them, as the body knows it. Gives
// the body's input.
Result<ir::Value*> addIterator(ir::Graph& g, ir::Node& loop, ir::Value* x, int64_t axis, bool reverse,
                               ir::Shape const& like);

} // namespace tw::passes
