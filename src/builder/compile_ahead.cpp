// SPDX-License-Identifier: Apache-2.0
#include "builder/compile_ahead.h"

#include <algorithm>
#include <map>

#include "builder/chooser.h"
#include "runtime/engine.h"
#include "tune/candidates.h"
#include "tune/phases.h"
#include "tune/region_key.h"
#include "tune/rivals.h"
#include "tune/tuner.h"

namespace tw::builder {

namespace {

// Problems of all steps that have CUDA tactics, equal ones once.
void collectProblems(runtime::LoadedBlock const& block, runtime::Instance const& opt, runtime::Instance const& max,
                     Options const& options, std::map<std::string, ops::Problem>& out)
{
    for (size_t i = 0; i < block.steps.size(); ++i) {
        runtime::LoadedStep const& step = block.steps[i];
        for (size_t r = 0; r < step.regions.size() && r < opt.regions[i].size() && r < max.regions[i].size(); ++r)
            collectProblems(*step.regions[r], *opt.regions[i][r], *max.regions[i][r], options, out);
        if (!step.regions.empty())
            continue;
        ops::Problem p = runtime::problemOf(step, opt, max, options.tune.workers->count(), options.cuda.get());
        if (p.cuda)
            out.try_emplace(tune::regionKey(p, options.fingerprint), std::move(p));
    }
}

struct Part
{
    ops::Problem problem;
    ops::Tactic const* tactic;
    ops::Config config;
};

std::vector<Part> partsOf(std::map<std::string, ops::Problem> const& problems, Originals const& originals,
                          ShapePoints const& points, Options const& options)
{
    tune::Phases::Scope const phase(options.tune.phases, "what to compile");
    tune::Options tuneOptions = options.tune;
    tuneOptions.backend = ops::Backend::kCuda;
    std::vector<Part> parts;
    for (auto const& [key, problem] : problems) {
        tuneOptions.points = points.of(originalOf(problem, originals)); // part of the cache's keys
        for (ops::Tactic const* t : tune::candidates(*problem.node, tuneOptions))
            for (ops::Formats const& formats : t->formats(problem)) {
                ops::Problem p = problem;
                ops::setFormats(p, formats);
                auto const known = tune::cached(p, tuneOptions);
                if ((known && known->tactic != t->id()) || !ops::supportsFormats(*t, p).ok)
                    continue;
                for (ops::Config const& config : known ? std::vector<ops::Config>(1, known->config) : t->configs(p))
                    parts.push_back({p, t, config});
            }
    }
    return parts;
}

// The candidates of a glance (chooser.h).
void addGlance(ops::Problem const& problem, Originals const& originals, ShapePoints const& points,
               Options const& options, std::vector<Part>& parts)
{
    tune::Options tuneOptions = options.tune;
    tuneOptions.backend = ops::Backend::kCuda;
    tuneOptions.mostCandidates = kGlanceCandidates;
    tuneOptions.points = points.of(originalOf(problem, originals));
    tuneOptions.log = nullptr;
    std::vector<ops::Problem> problems;
    auto add = [&](ops::Formats const& f) {
        ops::Problem p = problem;
        ops::setFormats(p, f);
        if (std::none_of(problems.begin(), problems.end(), [&](auto const& q) { return ops::formatsOf(q) == f; }) &&
            !tune::cached(p, tuneOptions))
            problems.push_back(std::move(p));
    };
    for (ops::Tactic const* t : tune::candidates(*problem.node, tuneOptions))
        for (ops::Formats const& f : t->formats(problem))
            add(f);
    if (problems.empty())
        return;
    tune::Rivals rivals(problems, tuneOptions);
    std::vector<tune::Candidate> reserve;
    for (tune::Candidate const& c : tune::prune(tune::collectCandidates(problems, tuneOptions, rivals), problems,
                                                reserve, rivals, kGlanceCandidates))
        parts.push_back({problems[size_t(c.group)], c.tactic, c.config});
}

void compile(std::vector<Part> const& parts, Options const& options)
{
    tune::Phases::Scope const phase(options.tune.phases, "compiling ahead");
    options.tune.buildWorkers->run(int64_t(parts.size()), [&](int64_t i, int) {
        Part const& part = parts[size_t(i)];
        (void)part.tactic->build(part.problem, part.config).ok();
    });
}

} // namespace

void compileAhead(runtime::LoadedBlock const& block, runtime::Instance const& opt, runtime::Instance const& max,
                  ShapePoints const& points, Options const& options)
{
    std::map<std::string, ops::Problem> problems;
    collectProblems(block, opt, max, options, problems);
    compile(partsOf(problems, {}, points, options), options);
}

void compileAhead(Variants const& variants, Originals const& originals, ShapePoints const& points,
                  Options const& options)
{
    std::map<std::string, ops::Problem> problems;
    std::map<std::string, ops::Problem> others;
    for (auto const& [node, list] : variants)
        for (size_t v = 0; v < list.size(); ++v)
            if (list[v].cuda)
                (v == 0 ? problems : others).try_emplace(tune::regionKey(list[v], options.fingerprint), list[v]);
    std::vector<Part> parts = partsOf(problems, originals, points, options);
    for (auto const& [key, problem] : others)
        addGlance(problem, originals, points, options, parts);
    compile(parts, options);
}

} // namespace tw::builder
