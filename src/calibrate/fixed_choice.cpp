// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fixed_choice.h"

#include <algorithm>
#include <cmath>

#include "runtime/engine.h"
#include "tune/candidates.h"

namespace tw::calibrate {

namespace {

struct Candidate
{
    ops::Tactic const* tactic = nullptr;
    ops::Config config;
    double estimate = INFINITY;
};

// Best first.
std::vector<Candidate> candidatesFor(ops::Problem const& problem, tune::Options const& options)
{
    std::vector<Candidate> list;
    for (ops::Tactic const* t : tune::candidates(*problem.node, options)) {
        if (t->traits().rounding != ops::Rounding::kPlain || !ops::supportsFormats(*t, problem).ok)
            continue;
        for (ops::Config const& config : t->configs(problem)) {
            double const estimate = t->estimate(problem, config);
            list.push_back({t, config, estimate > 0 ? estimate : INFINITY});
        }
    }
    std::stable_sort(list.begin(), list.end(),
                     [](Candidate const& a, Candidate const& b) { return a.estimate < b.estimate; });
    return list;
}

// No tactic where nothing fits: loading takes the op's plain one then.
plan::Choice choose(ops::Problem const& problem, tune::Options const& options)
{
    for (Candidate const& c : candidatesFor(problem, options))
        if (auto image = c.tactic->build(problem, c.config); image.ok()) {
            plan::Choice out;
            out.tactic = c.tactic->id();
            out.name = c.tactic->name();
            out.version = c.tactic->version();
            out.config = c.config;
            out.image = std::move(*image);
            return out;
        }
    return {};
}

} // namespace

Result<builder::FormatSummary> assignFixedFormats(ir::Graph& g, runtime::LoadedBlock const& block,
                                                  runtime::Instance const& shapes,
                                                  std::span<ops::TacticProvider const* const> providers)
{
    tune::Options options;
    options.providers = providers;
    options.heuristicOnly = true;
    auto const timesOf = [&](ops::Problem const& problem, std::vector<ops::Formats> const& formats) {
        std::vector<Result<double>> times;
        for (ops::Formats const& f : formats) {
            ops::Problem in = problem;
            ops::setFormats(in, f);
            std::vector<Candidate> const list = candidatesFor(in, options);
            if (list.empty())
                times.push_back(unsupported("no tactic works in these formats"));
            else
                times.push_back(std::isfinite(list[0].estimate) ? list[0].estimate : 0.);
        }
        return times;
    };
    return builder::assignFormats(g, block, shapes, shapes, options, {}, timesOf, {});
}

plan::Block chooseFixed(runtime::LoadedBlock const& block, runtime::Instance const& shapes,
                        std::span<ops::TacticProvider const* const> providers)
{
    tune::Options options;
    options.providers = providers;
    plan::Block out;
    for (size_t i = 0; i < block.steps.size(); ++i) {
        runtime::LoadedStep const& step = block.steps[i];
        plan::Step chosen;
        chosen.node = int32_t(i);
        for (size_t r = 0; r < step.regions.size(); ++r)
            chosen.regions.push_back(chooseFixed(*step.regions[r], *shapes.regions[i][r], providers));
        if (step.regions.empty())
            chosen.choice = choose(runtime::problemOf(step, shapes, shapes, 1), options);
        out.steps.push_back(std::move(chosen));
    }
    return out;
}

} // namespace tw::calibrate
