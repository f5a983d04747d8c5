// SPDX-License-Identifier: Apache-2.0
// Chooses the format of every value of a scheduled graph, so that the time of all nodes and of the reformats between
// them is least, and puts the reformat nodes in. Graph inputs and outputs, constants and host values stay linear.
#pragma once

#include <functional>

#include "base/result.h"
#include "runtime/block.h"
#include "tune/tuner.h"

namespace tw::builder {

enum class FormatPolicy
{
    kLeastTime,    // solve
    kLinear,       // everything linear
    kChannelsLast, // channels-last wherever some tactic can
};

struct FormatSummary
{
    int nodes = 0;                                   // that could choose
    int nonLinear = 0;                               // of them, those that work in other than linear formats
    int reformats = 0;                               // nodes put in
    double microseconds = 0, linearMicroseconds = 0; // of the nodes that could choose and the reformats
    bool isExact = true;

    bool changed() const { return nonLinear > 0 || reformats > 0; }
    void add(FormatSummary const& other)
    {
        nodes += other.nodes;
        nonLinear += other.nonLinear;
        reformats += other.reformats;
        microseconds += other.microseconds;
        linearMicroseconds += other.linearMicroseconds;
        isExact = isExact && other.isExact;
    }
};

// Time of the best tactic for a problem in each of the combinations of formats, in microseconds.
using TimesOf = std::function<std::vector<Result<double>>(ops::Problem const&, std::vector<ops::Formats> const&)>;

// `block`, `opt` and `max` belong to the graph as it is; they are stale once it has changed. Regions are done too.
Result<FormatSummary> assignFormats(ir::Graph& graph, runtime::LoadedBlock const& block, runtime::Instance const& opt,
                                    runtime::Instance const& max, tune::Options const& options, FormatPolicy policy,
                                    TimesOf const& timesOf);

} // namespace tw::builder
