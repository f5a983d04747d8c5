// SPDX-License-Identifier: Apache-2.0
#include "builder/types.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "builder/lowering.h"
#include "builder/variants.h"
#include "ir/op_def.h"
#include "tactic/cpu_tactic.h"

namespace tw::builder {

namespace {

constexpr char const* kFloatName = "FP32";

std::string nameOf(passes::Precisions const& p)
{
    return numberType(p.type).shown;
}

std::string microsecondsText(double us)
{
    return std::isfinite(us) ? fmt::format("{} us", us) : "no kernel";
}

// What is to be said of each node; its type is decided.
void explain(passes::Precisions const& p, GraphVariants const& variants, TypeSummary& out)
{
    for (auto const& [node, why] : p.kept)
        out.rivals[node].push_back({nameOf(p), 0, why});
    for (auto const& [node, why] : variants.whyNotFloat)
        out.rivals[node].push_back({kFloatName, 0, why});
}

void explainAll(std::set<ir::Node const*> const& nodes, std::string const& other, std::string const& why,
                TypeSummary& out)
{
    for (ir::Node const* n : nodes)
        out.rivals[n].push_back({other, 0, why});
}

void dropGone(ir::Graph const& g, TypeSummary& s)
{
    std::erase_if(s.rivals, [&](auto const& r) {
        return std::ranges::none_of(g.nodes, [&](auto const& n) { return n.get() == r.first; });
    });
}

// What is said of a node, for when the node itself has become part of another.
struct Told
{
    int id = 0;
    std::vector<std::string> layers;
    std::vector<plan::Rival> rivals;
};

std::vector<Told> tellAll(ir::Graph const& g, TypeSummary const& s)
{
    std::vector<Told> all;
    for (auto const& n : g.nodes) {
        auto const found = s.rivals.find(n.get());
        all.push_back({n->id, n->layers, found != s.rivals.end() ? found->second : std::vector<plan::Rival>()});
    }
    return all;
}

// `told`: of all nodes that there were. Passes may have made one of several: what was said of each is then said of it.
void handOver(std::vector<Told> const& told, ir::Graph const& g, TypeSummary& out)
{
    auto const isPart = [](std::vector<std::string> const& part, std::vector<std::string> const& of) {
        return std::ranges::all_of(part, [&](auto const& s) { return contains(of, s); });
    };
    std::set<int> before, after;
    for (Told const& t : told)
        before.insert(t.id);
    for (auto const& n : g.nodes)
        after.insert(n->id);
    out.rivals.clear();
    for (auto const& n : g.nodes)
        for (Told const& t : told) {
            bool const isMerged = !before.contains(n->id) && !after.contains(t.id) && isPart(t.layers, n->layers);
            if ((t.id == n->id || isMerged) && !t.rivals.empty())
                out.rivals[n.get()].insert(out.rivals[n.get()].end(), t.rivals.begin(), t.rivals.end());
        }
}

// Of nodes with two variants: those that are faster in f32, conversions counted, leave `p.narrow`.
Result<void> chooseByTime(ir::Graph& g, runtime::LoadedBlock const& block, runtime::Instance const& opt,
                          runtime::Instance const& max, Options const& options, TypeClocks const& clocks,
                          IoFormats const& io, GraphVariants const& variants, passes::Precisions& p, TypeSummary& out,
                          Log& log)
{
    if (clocks.prepare)
        clocks.prepare(variants.problems, variants.originals);
    TW_ASSIGN(auto const chosen,
              chooseVariants(g, block, opt, max, options.tune, clocks.timesOf, clocks.glance, io, variants.problems));
    out.microseconds = chosen.microseconds;
    std::string const narrow = nameOf(p);
    for (size_t i = 0; i < chosen.nodes.size(); ++i) {
        ir::Node const* n = g.nodes[i].get();
        VariantChoice const& c = chosen.nodes[i];
        out.floatMicroseconds += c.microseconds.back();
        if (c.microseconds.size() < 2)
            continue;
        bool const isNarrow = isNarrowFloat(variants.nodes.at(n).types[c.variant]);
        double const mine = c.microseconds[c.variant], other = c.microseconds[1 - c.variant];
        out.rivals[n].push_back({isNarrow ? kFloatName : narrow, std::isfinite(other) ? other : 0,
                                 (isNarrow ? narrow : kFloatName) + " takes " + microsecondsText(mine) +
                                     ", and the engine with the conversions that belong to it less time"});
        if (isNarrow)
            continue;
        p.narrow.erase(n);
        ++out.slower;
        log.verbose("FP32: '{}' takes {}, in {} {}", n->name, microsecondsText(mine), narrow, microsecondsText(other));
    }
    return {};
}

Result<TypeSummary> assignOne(ir::Graph& g, runtime::LoadedBlock const& block, runtime::Instance const* opt,
                              runtime::Instance const* max, Options const& options, TypePolicy policy,
                              TypeClocks const& clocks, IoFormats const& io, passes::NarrowWeights& weights, Log& log)
{
    TW_ASSIGN(passes::Precisions p, passes::choosePrecisions(g, passContext(options, log)));
    TypeSummary out;
    out.type = p.type;
    out.kept = int(p.kept.size());
    GraphVariants variants;
    if (policy == TypePolicy::kLeastTime && opt && max)
        TW_SET(variants, collectVariants(g, block, *opt, *max, options.tune, p, weights));
    explain(p, variants, out);
    if (policy == TypePolicy::kPreferred)
        explainAll(p.narrow, kFloatName, nameOf(p) + " wherever it is allowed made the faster engine", out);
    if (policy == TypePolicy::kFloat) {
        std::set<ir::Node const*> const preferred = std::exchange(p.narrow, p.bound);
        std::set<ir::Node const*> left;
        std::set_difference(preferred.begin(), preferred.end(), p.narrow.begin(), p.narrow.end(),
                            std::inserter(left, left.end()));
        explainAll(left, nameOf(p), "FP32 wherever it is allowed made the faster engine", out);
    }
    out.open = variants.open;
    out.floatMicroseconds = variants.open == int(p.narrow.size()) ? 0 : INFINITY;
    if (variants.open > 0)
        TW_TRY(chooseByTime(g, block, *opt, *max, options, clocks, io, variants, p, out, log));
    for (auto const& n : g.nodes)
        if (auto const kept = p.kept.find(n.get()); kept != p.kept.end())
            log.verbose("FP32: '{}' ({}): {}", n->name, n->op->name, kept->second);
    out.narrow = int(p.narrow.size());
    if (clocks.settle)
        clocks.settle();
    TW_ASSIGN(passes::Lowered const lowered, passes::lowerTo(g, p, weights));
    out.casts = lowered.casts;
    dropGone(g, out); // conversions of the network's own
    std::vector<Told> const told = tellAll(g, out);
    TW_TRY(lowerTyped(g, options, log));
    handOver(told, g, out);
    return out;
}

Result<TypeSummary> assignAll(ir::Graph& g, runtime::LoadedBlock const& block, runtime::Instance const* opt,
                              runtime::Instance const* max, Options const& options, TypePolicy policy,
                              TypeClocks const& clocks, IoFormats const& io, passes::NarrowWeights& weights, Log& log)
{
    TypeSummary sum;
    for (size_t i = 0; i < block.steps.size(); ++i)
        for (size_t r = 0; r < block.steps[i].regions.size(); ++r) {
            // Without shapes (they depend on data) there is nothing to time.
            bool const known = opt && max && r < opt->regions[i].size() && r < max->regions[i].size();
            TW_ASSIGN(TypeSummary inner,
                      assignAll(*g.nodes[i]->regions[r], *block.steps[i].regions[r],
                                known ? opt->regions[i][r].get() : nullptr, known ? max->regions[i][r].get() : nullptr,
                                options, policy, clocks, {}, weights, log));
            sum.add(std::move(inner));
        }
    TW_ASSIGN(TypeSummary own, assignOne(g, block, opt, max, options, policy, clocks, io, weights, log));
    sum.add(std::move(own));
    return sum;
}

} // namespace

void TypeSummary::add(TypeSummary&& other)
{
    type = other.type;
    narrow += other.narrow;
    kept += other.kept;
    open += other.open;
    slower += other.slower;
    casts += other.casts;
    microseconds += other.microseconds;
    floatMicroseconds += other.floatMicroseconds;
    rivals.merge(other.rivals);
}

bool choosesTypes(Options const& options)
{
    auto const& off = options.passes.disabled;
    auto const target = describe({.cuda = options.cuda.get()});
    return passes::narrowType(options.tune.permits, target) && options.formats == FormatPolicy::kLeastTime &&
           !options.tune.heuristicOnly && !options.tune.selector && options.passes.stopAfter < 0 &&
           !contains(off, kTypesPass) &&
           std::ranges::none_of(options.io, [](auto const& io) { return io.second.isDirect; });
}

Result<TypeSummary> assignTypes(ir::Graph& graph, runtime::LoadedBlock const& block, runtime::Instance const& opt,
                                runtime::Instance const& max, Options const& options, TypePolicy policy,
                                TypeClocks const& clocks, IoFormats const& io, passes::NarrowWeights& weights, Log& log)
{
    return assignAll(graph, block, &opt, &max, options, policy, clocks, io, weights, log);
}

} // namespace tw::builder
