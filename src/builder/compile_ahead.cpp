// SPDX-License-Identifier: Apache-2.0
#include "builder/compile_ahead.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <map>
#include <mutex>

#include "builder/chooser.h"
#include "builder/reformats.h"
#include "runtime/engine.h"
#include "tune/candidates.h"
#include "tune/phases.h"
#include "tune/rates.h"
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

// What the tuner will make kernels of: the choice that the cache has, else those worth a try by estimate.
std::vector<Part> partsOf(ops::Problem const& problem, tune::Options const& options)
{
    std::vector<Part> parts;
    std::vector<ops::Problem> open;
    std::vector<ops::Formats> seen;
    std::vector<ops::Tactic const*> const tactics = tune::candidates(*problem.node, options);
    auto look = [&](ops::Formats const& f) {
        if (std::find(seen.begin(), seen.end(), f) != seen.end())
            return;
        seen.push_back(f);
        ops::Problem p = problem;
        ops::setFormats(p, f);
        auto const known = tune::cached(p, options);
        if (!known) {
            open.push_back(std::move(p));
            return;
        }
        auto const chosen = std::find_if(tactics.begin(), tactics.end(),
                                         [&](ops::Tactic const* t) { return t->id() == known->tactic; });
        if (chosen != tactics.end() && ops::supportsFormats(**chosen, p).ok)
            parts.push_back({std::move(p), *chosen, known->config});
    };
    for (ops::Tactic const* t : tactics)
        for (ops::Formats const& f : t->formats(problem))
            look(f);
    if (open.empty())
        return parts;
    tune::Rivals rivals(open, options);
    std::vector<tune::Candidate> reserve;
    for (tune::Candidate const& c :
         tune::prune(tune::collectCandidates(open, options, rivals), open, reserve, rivals, options.mostCandidates))
        parts.push_back({open[size_t(c.group)], c.tactic, c.config});
    return parts;
}

// Of problems at a glance (chooser.h), or with all candidates. Libraries take their time to answer: they are asked on
// all workers.
void addParts(std::vector<Part>& parts, std::map<std::string, ops::Problem> const& problems, bool isGlance,
              Originals const& originals, ShapePoints const& points, Options const& options)
{
    tune::Phases::Scope const phase(options.tune.phases, "what to compile");
    std::vector<ops::Problem const*> list;
    std::vector<tune::Options> each;
    for (auto const& [key, problem] : problems) {
        tune::Options o = options.tune;
        o.backend = ops::Backend::kCuda;
        o.mostCandidates = isGlance ? kGlanceCandidates : o.mostCandidates;
        o.points = points.of(originalOf(problem, originals)); // part of the cache's keys
        o.log = nullptr;
        o.phases = nullptr;
        list.push_back(&problem);
        each.push_back(std::move(o));
    }
    std::vector<std::vector<Part>> found(list.size());
    options.tune.buildWorkers->run(
        int64_t(list.size()), [&](int64_t i, int) { found[size_t(i)] = partsOf(*list[size_t(i)], each[size_t(i)]); });
    for (std::vector<Part>& f : found)
        std::move(f.begin(), f.end(), std::back_inserter(parts));
}

// The longest work and the sum of all, for the log.
class Stopwatch
{
public:
    void add(char const* tactic, double seconds)
    {
        std::lock_guard lock(mutex_);
        sum_ += seconds;
        if (seconds > longest_) {
            longest_ = seconds;
            name_ = tactic;
        }
    }
    std::string str() const
    {
        return std::to_string(sum_) + " s of work, the longest " + std::to_string(longest_) + " s (" + name_ + ")";
    }

private:
    std::mutex mutex_;
    double sum_ = 0, longest_ = 0;
    std::string name_;
};

// And what the rates of limits are measured with.
void compile(std::vector<Part> const& parts, Options const& options)
{
    tune::Phases::Scope const phase(options.tune.phases, "compiling ahead");
    constexpr DataType kRates[] = {DataType::kFloat, DataType::kHalf};
    int64_t const rates = options.tune.heuristicOnly ? 0 : options.half ? 2 : 1;
    Stopwatch watch;
    options.tune.buildWorkers->run(rates + int64_t(parts.size()), [&](int64_t i, int) {
        auto const begin = std::chrono::steady_clock::now();
        if (i < rates)
            tune::Rates(options.tune).prepare(kRates[i]);
        else
            (void)parts[size_t(i - rates)]
                .tactic->build(parts[size_t(i - rates)].problem, parts[size_t(i - rates)].config)
                .ok();
        std::chrono::duration<double> const taken = std::chrono::steady_clock::now() - begin;
        watch.add(i < rates ? "rates" : parts[size_t(i - rates)].tactic->name(), taken.count());
    });
    if (options.log)
        options.log->verbose("Compiled ahead: " + std::to_string(parts.size()) + " candidates, " + watch.str());
}

// Times of reformats are asked for before there are any: one of each floating type. What is compiled depends on little
// more than the type.
void addReformats(std::vector<Part>& parts, runtime::LoadedBlock const& block, runtime::Instance const& opt,
                  runtime::Instance const& max, Options const& options, std::vector<std::unique_ptr<ir::Graph>>& posed)
{
    auto const& values = block.graph->values();
    auto const at = std::find_if(values.begin(), values.end(), [&](auto const& v) {
        return isFloating(v->type) && v->rank() >= leastRankOf(Format::kHWC8) && !v->host && !v->isConstant();
    });
    if (at == values.end())
        return;
    auto const index = size_t(block.indexOf(at->get()));
    tune::Options o = options.tune;
    o.backend = ops::Backend::kCuda;
    for (DataType type : {DataType::kFloat, DataType::kHalf}) {
        posed.push_back(std::make_unique<ir::Graph>());
        Carrier const from{type, Format::kLinear}, to{type, Format::kHWC8};
        auto const p = poseReformat({**at, opt.values[index].dims, max.values[index].dims, from, to}, *block.graph, o,
                                    *posed.back());
        for (ops::Tactic const* t : p.ok() ? tune::candidates(*p->node, o) : std::vector<ops::Tactic const*>())
            if ((type == DataType::kFloat || options.half) && ops::supportsFormats(*t, *p).ok)
                parts.push_back({*p, t, t->configs(*p).front()});
    }
}

} // namespace

void compileAhead(runtime::LoadedBlock const& block, runtime::Instance const& opt, runtime::Instance const& max,
                  ShapePoints const& points, Options const& options)
{
    std::map<std::string, ops::Problem> problems;
    collectProblems(block, opt, max, options, problems);
    std::vector<std::unique_ptr<ir::Graph>> posed;
    std::vector<Part> parts;
    addReformats(parts, block, opt, max, options, posed);
    addParts(parts, problems, false, {}, points, options);
    compile(parts, options);
}

void compileAhead(runtime::LoadedBlock const& block, runtime::Instance const& opt, runtime::Instance const& max,
                  Variants const& variants, Originals const& originals, ShapePoints const& points,
                  Options const& options)
{
    std::map<std::string, ops::Problem> problems;
    std::map<std::string, ops::Problem> others;
    for (auto const& [node, list] : variants)
        for (size_t v = 0; v < list.size(); ++v)
            if (list[v].cuda)
                (v == 0 ? problems : others).try_emplace(tune::regionKey(list[v], options.fingerprint), list[v]);
    std::vector<std::unique_ptr<ir::Graph>> posed;
    std::vector<Part> parts;
    addReformats(parts, block, opt, max, options, posed);
    addParts(parts, problems, false, originals, points, options);
    addParts(parts, others, true, originals, points, options);
    compile(parts, options);
}

} // namespace tw::builder
