// SPDX-License-Identifier: Apache-2.0
// Chooses the type of every node of a scheduled graph: passes::choosePrecisions says what is allowed, the clock decides.
// A node's variants are posed alone, tuned like any other problem, and chosen together with their formats; conversions
// are edges that cost what they take. Then the graph is rewritten once.
#pragma once

#include <map>
#include <vector>

#include "builder/build.h"
#include "builder/formats.h"
#include "passes/precision/precision.h"
#include "passes/target_info.h"
#include "runtime/block.h"

namespace tw::builder {

// The pass that gives layers the types that they prefer. Where the clock is asked, the builder does so in its place and runs
// what stands behind it again.
inline constexpr char const* kTypesPass = "lower_precision";

enum class TypePolicy
{
    kLeastTime, // solve
    kPreferred, // the narrow type wherever it is allowed
    kFloat,     // FP32 wherever it is allowed
};

struct TypeSummary
{
    DataType type = DataType::kHalf; // the narrow one
    int narrow = 0, kept = 0;        // layers in it; layers that must stay in FP32
    int open = 0;                    // layers that were timed in both
    int slower = 0;                  // of them, those that are in FP32
    int casts = 0;                   // conversions put in
    double microseconds = 0;         // of what could choose its type or format, with conversions
    double floatMicroseconds = 0;    // of the same in FP32, each by itself; infinite: not all were timed in it
    // By node: the types that it is not in, with times and reasons.
    std::map<ir::Node const*, std::vector<plan::Rival>> rivals;

    void add(TypeSummary&& other);
};

// What times nodes and conversions.
struct TypeClocks
{
    TimesOf timesOf; // preferred types, casts, reformats
    TimesOf glance;  // the other types
    // Nothing, where they are empty:
    std::function<void(Variants const&, Originals const&)> prepare = {}; // called before the first time is asked for
    std::function<void()> settle = {};                                   // after the last, before a graph is changed
};

// Whether a build asks the clock for types: a narrow one is permitted, and nothing but the least time decides. With estimates
// alone, an algorithm selector, formats fixed as a whole or reformats forbidden at inputs and outputs, the pass
// lower_precision gives every layer the type that it prefers.
bool choosesTypes(Options const& options);

// Regions are done too. `block`, `opt` and `max` belong to the graph as it is and are stale afterwards.
Result<TypeSummary> assignTypes(ir::Graph& graph, runtime::LoadedBlock const& block, runtime::Instance const& opt,
                                runtime::Instance const& max, Options const& options, TypePolicy policy,
                                TypeClocks const& clocks, IoFormats const& io, passes::NarrowWeights& weights,
                                Log& log);

// Describes a machine to passes, its GPU where it has one: the one place where what the device layers know becomes a
// passes::TargetInfo.
passes::TargetInfo describe(ops::Target const& target);

} // namespace tw::builder
