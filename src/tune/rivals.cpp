// SPDX-License-Identifier: Apache-2.0
#include "tune/rivals.h"

#include <algorithm>

#include "ir/op_def.h"
#include "tune/timing_cache.h"

namespace tw::tune {

namespace {

constexpr size_t kMostRivals = TimingCache::kMaxRivals, kMostReason = 300, kMostConfig = 16; // kept of each choice

std::string describe(Candidate const& c)
{
    return nameWithConfig(c.tactic->name(), c.config);
}

std::string describeIn(ops::Problem const& problem, Candidate const& c)
{
    ops::Formats const f = ops::formatsOf(problem);
    std::string text = describe(c) + " in ";
    for (size_t i = 0; i < f.inputs.size(); ++i)
        text += (i ? "," : "") + std::string(nameOf(f.inputs[i]));
    for (size_t i = 0; i < f.outputs.size(); ++i)
        text += (i ? "," : "->") + std::string(nameOf(f.outputs[i]));
    return text;
}

// Why good[i] was not chosen where good[winner] was.
std::string whyLost(std::vector<Candidate> const& good, size_t i, size_t winner, std::vector<double> const& times,
                    Options const& options)
{
    bool const isOther = good[i].group != good[winner].group;
    if (times[i] <= 0 || times[winner] <= 0)
        return isOther ? "other formats, not timed" : "stands behind the chosen one in the list";
    if (times[i] > times[winner]) {
        char why[80];
        std::snprintf(why, sizeof why, "%.2f times the %s of the chosen one%s", times[i] / times[winner],
                      options.heuristicOnly ? "estimate" : "time", isOther ? ", in other formats" : "");
        return why;
    }
    if (isOther)
        return "no slower by itself, but in other formats: those of all layers were chosen together, with what "
               "reformats cost";
    return options.selector ? "the algorithm selector chose another"
                            : "as fast, and stands behind the chosen one in the list";
}

} // namespace

std::string nameWithConfig(std::string name, ops::Config const& config)
{
    for (size_t i = 0; i < config.size() && i < kMostConfig; ++i)
        name += fmt::format("{}{}", i ? "," : "[", config[i]);
    return name + (config.empty() ? "" : "]");
}

Rivals::Rivals(std::span<ops::Problem const> problems, Options const& options)
    : problems_(problems), options_(options), texts_(problems.size()), unsupported_(problems.size()),
      refused_(problems.size())
{}

std::string Rivals::where() const
{
    ir::Node const& node = *problems_[0].node;
    return "layer '" + node.name + "' (" + node.op->name + ")";
}

void Rivals::refuse(Candidate const& c, std::string const& why, bool isUnsupported)
{
    auto& list = isUnsupported ? unsupported_ : refused_;
    list[size_t(c.group)].push_back(
        {describe(c), describeIn(problems_[size_t(c.group)], c), why.substr(0, kMostReason), c.group});
    texts_[size_t(c.group)] += std::string("\n  ") + c.tactic->name() + ": " + why;
    if (options_.log)
        options_.log->verbose("{}: tactic {} is out: {}", where(), c.tactic->name(), why);
}

std::vector<plan::Rival> Rivals::listFor(size_t g, std::vector<Candidate> const& good, size_t winner,
                                         std::vector<double> const& times) const
{
    std::vector<plan::Rival> list;
    for (size_t i = 0; i < good.size(); ++i)
        if (i != winner)
            list.push_back(
                {size_t(good[i].group) == g ? describe(good[i]) : describeIn(problems_[size_t(good[i].group)], good[i]),
                 times[i], whyLost(good, i, winner, times, options_)});
    std::ranges::stable_sort(
        list, [](plan::Rival const& a, plan::Rival const& b) { return a.microseconds < b.microseconds; });
    auto add = [&](std::vector<Refused> const& more) {
        for (Refused const& r : more)
            list.push_back({size_t(r.group) == g ? r.name : r.nameWithFormats, 0, r.why});
    };
    add(refused_[g]);
    add(unsupported_[g]);
    for (size_t other = 0; other < refused_.size(); ++other)
        if (other != g)
            add(refused_[other]);
    list.resize(std::min(list.size(), kMostRivals));
    return list;
}

} // namespace tw::tune
