// SPDX-License-Identifier: Apache-2.0
// Conditions of a loop's body that hold up to a length of each sequence, and the states that they keep.
#pragma once

#include "passes/loops/loop_steps.h"

namespace tw::passes {

// The condition is `number < length + plus`, where `holds`, else the contrary.
struct StepLimit
{
    TripNumber number;
    ir::Value* length = nullptr; // i32, outside (or a constant of the body)
    int64_t plus = 0;
    bool holds = true;
    bool isSame(StepLimit const& o) const { return number == o.number && length == o.length && plus == o.plus; }
    // What is added to the length so that it counts steps of a sequence that trips go along, of which the first or the
    // last one comes first. None: trips and numbers do not go the same way.
    std::optional<int64_t> plusInSteps(ir::Dim const& steps, bool reverse) const;
};

// (a < b) == holds, of any spelling; none: the bool is no comparison by order.
struct Comparison
{
    ir::Value *a = nullptr, *b = nullptr;
    bool holds = true;
};
std::optional<Comparison> comparisonOf(ir::Value* v);
// What is negated; each negation turns `holds`.
ir::Value* behindNots(ir::Value* v, bool& holds);

// none: `condition`, a bool of the region that `numbers` reads, is no such thing.
std::optional<StepLimit> stepLimitOf(TripNumbers const& numbers, ir::Value* condition);

// value = select(condition, next, other), or the other way round, where `next` is taken up to the length.
struct LimitedValue
{
    StepLimit limit;
    ir::Value *next = nullptr, *other = nullptr;
    ir::Node const* node = nullptr;
};
// `rows`: how many sequences there are. The length is for each of them, or one for all.
std::optional<LimitedValue> limitedValueOf(TripNumbers const& numbers, ir::Value* v, ir::Dim const& rows);

} // namespace tw::passes
