// SPDX-License-Identifier: Apache-2.0
// Chooses the format of every value of a scheduled graph, so that the time of all nodes and of the reformats between
// them is least, and has the reformats put in. Constants and host values stay linear; graph inputs and outputs are in
// one of the formats that the client allows.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "builder/carriers.h"
#include "runtime/block.h"
#include "tune/options.h"

namespace tw::builder {

enum class FormatPolicy
{
    kLeastTime,    // solve
    kLinear,       // everything linear
    kChannelsLast, // channels-last wherever some tactic can
};

struct FormatChoice
{
    FormatPolicy policy = FormatPolicy::kLeastTime;
    // Of kLeastTime: 0 is the assignment that takes the least time; from 1 on those that take nearly as little, as
    // clocks err and layers alone do not feel their neighbours. Nothing: the least, and the others are not looked for.
    std::optional<int> near = {};
};

// Formats of the network's inputs and outputs, by name; what is not named is linear.
struct IoFormat
{
    std::vector<Format> allowed{Format::kLinear}; // at least one; among equally cheap ones the first is taken
    bool isDirect = false;                        // no reformat between it and the layers beside it: else an error
};
using IoFormats = std::map<std::string, IoFormat>;

struct FormatSummary
{
    int nodes = 0;                                   // that could choose
    int nonLinear = 0;                               // of them, those that work in other than linear formats
    int reformats = 0;                               // nodes put in
    int io = 0;                                      // network inputs and outputs in other than linear formats
    double microseconds = 0, linearMicroseconds = 0; // of the nodes that could choose and the reformats
    bool isExact = true;
    int near = 0; // other assignments that take nearly as little time, where that was asked

    bool changed() const { return nonLinear > 0 || reformats > 0 || io > 0; }
    void add(FormatSummary const& other)
    {
        nodes += other.nodes;
        nonLinear += other.nonLinear;
        reformats += other.reformats;
        io += other.io;
        microseconds += other.microseconds;
        linearMicroseconds += other.linearMicroseconds;
        isExact = isExact && other.isExact;
    }
};

// Time of the best tactic for a problem in each of the combinations of formats, in microseconds.
using TimesOf = std::function<std::vector<Result<double>>(ops::Problem const&, std::vector<ops::Formats> const&)>;

// The problems that a node may be: it itself posed in each type that it may have (passes::poseNode). What is not named
// is as it stands.
using Variants = std::map<ir::Node const*, std::vector<ops::Problem>>;
using Originals = std::map<ir::Node const*, ir::Node const*>; // of posed nodes
// The problem of the node that a posed one stands for.
inline ops::Problem originalOf(ops::Problem problem, Originals const& originals)
{
    auto const at = originals.find(problem.node);
    problem.node = at == originals.end() ? problem.node : at->second;
    return problem;
}
struct VariantChoice
{
    size_t variant = 0;
    std::vector<double> microseconds; // of each in its best formats; infinite: none works
};
struct VariantChoices
{
    std::vector<VariantChoice> nodes; // in the graph's order
    double microseconds = 0;          // of the nodes that could choose, the casts and the reformats
};
// The variants with which nodes, casts and reformats together take the least time. The graph stays as it is; regions are
// not looked at. `glance` times what is not the first variant of its node.
Result<VariantChoices> chooseVariants(ir::Graph& graph, runtime::LoadedBlock const& block, runtime::Instance const& opt,
                                      runtime::Instance const& max, tune::Options const& options,
                                      TimesOf const& timesOf, TimesOf const& glance, IoFormats const& io,
                                      Variants const& variants);

// `block`, `opt` and `max` belong to the graph as it is; they are stale once it has changed. Regions are done too.
// `settle`: called when no more times are asked for, before the graph is changed.
Result<FormatSummary> assignFormats(
    ir::Graph& graph, runtime::LoadedBlock const& block, runtime::Instance const& opt, runtime::Instance const& max,
    tune::Options const& options, FormatChoice const& choice, TimesOf const& timesOf, IoFormats const& io,
    std::function<void()> const& settle = [] {});

// What a node may be: its variants, each in the combinations of formats that its tactics offer.
struct Label
{
    size_t variant = 0;
    ops::Formats formats;
};
struct Labels
{
    ir::Node const* node = nullptr;
    std::vector<ops::Problem> variants; // the node as it is, or posed in each of the types that it may have
    std::vector<Label> list;            // linear first
    std::vector<double> costs;
    int chosen = 0;

    Label const& choice() const { return list[size_t(chosen)]; }
    Carrier input(size_t label, size_t i) const
    {
        Label const& l = list[label];
        return {variants[l.variant].inputs[i].type, l.formats.inputs[i]};
    }
    Carrier output(size_t label, size_t i) const
    {
        Label const& l = list[label];
        return {variants[l.variant].outputs[i].type, l.formats.outputs[i]};
    }
};

// Of step `i` of the block; `posed`: its variants, null: itself. Costs are 0.
Labels collectLabels(runtime::LoadedBlock const& block, size_t i, runtime::Instance const& opt,
                     runtime::Instance const& max, tune::Options const& options,
                     std::vector<ops::Problem> const* posed);
// Costs of one variant.
void timeLabels(Labels& labels, size_t variant, runtime::LoadedBlock const& block, runtime::Instance const& opt,
                TimesOf const& timesOf);
// Among estimates, 0 says "unknown": the tactics that have none are the plain ones.
void guessUnknown(Labels& labels);
// Leaves no labels of other variants.
void keepFirstVariant(Labels& labels);

} // namespace tw::builder
