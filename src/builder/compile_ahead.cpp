// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>

#include "base/format.h"
#include "builder/attempts.h"
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

constexpr DataType kRates[] = {DataType::kFloat, DataType::kHalf};

} // namespace

void CompileAhead::WantedList::add(std::string const& key, ops::Problem const& problem, bool isGlance)
{
    if (places_.try_emplace((isGlance ? "glance|" : "") + key, list.size()).second)
        list.push_back({problem, isGlance});
}

// Problems of all steps that have CUDA tactics.
void CompileAhead::collect(runtime::LoadedBlock const& block, runtime::Instance const& opt,
                           runtime::Instance const& max, WantedList& out) const
{
    for (size_t i = 0; i < block.steps.size(); ++i) {
        runtime::LoadedStep const& step = block.steps[i];
        for (size_t r = 0; r < step.regions.size(); ++r)
            collect(*step.regions[r], *opt.regions[i][r], *max.regions[i][r], out);
        if (!step.regions.empty())
            continue;
        ops::Problem p = runtime::problemOf(step, opt, max, options_.tune.workers->count(), options_.cuda.get());
        if (p.target.cuda)
            out.add(tune::choiceKey(p, options_.tune), p, false);
    }
}

void CompileAhead::collect(runtime::LoadedBlock const& block, Variants const& variants, WantedList& out) const
{
    for (runtime::LoadedStep const& step : block.steps) {
        for (auto const& region : step.regions)
            collect(*region, variants, out);
        auto const found = variants.find(step.node);
        for (size_t v = 0; found != variants.end() && v < found->second.size(); ++v)
            if (ops::Problem const& p = found->second[v]; p.target.cuda)
                out.add(tune::choiceKey(p, options_.tune), p, v > 0);
    }
}

// What the tuner will make kernels of: the choice that the cache has, else those worth a try by estimate.
std::vector<CompileAhead::Part> CompileAhead::partsOf(Wanted const& wanted, Originals const& originals,
                                                      ShapePoints const& points) const
{
    ops::Problem const& problem = wanted.problem;
    tune::Options options = options_.tune;
    options.backend = ops::Backend::kCuda;
    options.mostCandidates = wanted.isGlance ? kGlanceCandidates : options.mostCandidates;
    options.points = points.of(originalOf(problem, originals)); // part of the cache's keys
    options.log = nullptr;
    options.phases = nullptr;
    std::vector<Part> parts;
    std::vector<ops::Problem> open;
    std::vector<ops::Formats> seen;
    std::vector<ops::Tactic const*> const tactics = tune::candidates(*problem.node, options);
    auto look = [&](ops::Formats const& f) {
        if (contains(seen, f))
            return;
        seen.push_back(f);
        ops::Problem p = problem;
        ops::setFormats(p, f);
        auto const known = tune::cached(p, options);
        if (!known) {
            open.push_back(std::move(p));
            return;
        }
        auto const chosen =
            std::ranges::find_if(tactics, [&](ops::Tactic const* t) { return t->id() == known->tactic; });
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

// Libraries take their time to say what they have: they are asked on all workers.
void CompileAhead::addParts(WantedList const& wanted, Originals const& originals, ShapePoints const& points)
{
    tune::Phases::Scope const phase(options_.tune.phases, "what to compile");
    std::vector<std::vector<Part>> found(wanted.list.size());
    options_.tune.buildWorkers->run(int64_t(found.size()), [&](int64_t i, int) {
        found[size_t(i)] = partsOf(wanted.list[size_t(i)], originals, points);
    });
    for (std::vector<Part>& f : found)
        std::move(f.begin(), f.end(), std::back_inserter(parts_));
}

// Times of reformats are asked for before there are any: one of each type that may be. What is compiled depends on little
// more than the type.
void CompileAhead::addReformats(runtime::LoadedBlock const& block, runtime::Instance const& opt,
                                runtime::Instance const& max)
{
    auto const& values = block.graph->values();
    auto const at = std::ranges::find_if(values, [&](auto const& v) {
        return isFloating(v->type) && v->rank() >= leastRankOf(Format::kHWC8) && !v->host && !v->isConstant();
    });
    if (at == values.end())
        return;
    auto const index = size_t(block.indexOf(at->get()));
    tune::Options o = options_.tune;
    o.backend = ops::Backend::kCuda;
    Permissions const& permits = options_.tune.permits;
    for (int i = 0; i < kDataTypeCount; ++i) {
        auto const type = DataType(i);
        if (!isReal(type) || !permits.hasAll(needsOf(type)))
            continue;
        posed_.push_back(std::make_unique<ir::Graph>());
        Carrier const from{type, Format::kLinear}, to{type, pixelVectorsOf(type)};
        auto const p = poseReformat({**at, opt.values[index].dims, max.values[index].dims, from, to}, *block.graph, o,
                                    *posed_.back());
        for (ops::Tactic const* t : p.ok() ? tune::candidates(*p->node, o) : std::vector<ops::Tactic const*>())
            if (ops::supportsFormats(*t, *p).ok)
                parts_.push_back({*p, t, t->configs(*p).front()});
    }
}

void CompileAhead::start(runtime::LoadedBlock const& block, runtime::Instance const& opt, runtime::Instance const& max,
                         ShapePoints const& points)
{
    settle();
    WantedList wanted;
    collect(block, opt, max, wanted);
    addParts(wanted, {}, points);
    addReformats(block, opt, max);
    startThreads();
}

void CompileAhead::start(runtime::LoadedBlock const& block, runtime::Instance const& opt, runtime::Instance const& max,
                         Variants const& variants, Originals const& originals, ShapePoints const& points)
{
    settle();
    WantedList wanted;
    collect(block, variants, wanted);
    addParts(wanted, originals, points);
    addReformats(block, opt, max);
    startThreads();
}

void CompileAhead::startThreads()
{
    rates_ = options_.tune.heuristicOnly ? 0 : options_.tune.permits.has(Permission::kHalf) ? 2 : 1;
    next_ = 0;
    for (int i = 0; i < options_.tune.buildWorkers->count(); ++i)
        threads_.emplace_back([this] { work(); });
}

void CompileAhead::work()
{
    auto const all = rates_ + int64_t(parts_.size());
    for (int64_t i = next_++; i < all; i = next_++) {
        auto const begin = std::chrono::steady_clock::now();
        Part const* const part = i < rates_ ? nullptr : &parts_[size_t(i - rates_)];
        if (part)
            (void)part->tactic->build(part->problem, part->config).ok();
        else
            tune::Rates(options_.tune).prepare(kRates[i]);
        std::chrono::duration<double> const taken = std::chrono::steady_clock::now() - begin;
        count(part ? part->tactic->name() : "rates", taken.count());
    }
}

void CompileAhead::count(char const* tactic, double seconds)
{
    std::lock_guard lock(mutex_);
    sum_ += seconds;
    if (seconds > longest_) {
        longest_ = seconds;
        longestName_ = tactic;
    }
}

void CompileAhead::joinThreads()
{
    for (std::thread& t : threads_)
        t.join();
    threads_.clear();
}

CompileAhead::~CompileAhead()
{
    next_ = rates_ + int64_t(parts_.size());
    joinThreads();
}

void CompileAhead::settle()
{
    if (threads_.empty())
        return;
    tune::Phases::Scope const phase(options_.tune.phases, "compiling ahead");
    joinThreads();
    if (options_.log)
        options_.log->verbose("Compiled ahead: {} candidates, {} s of work, the longest {} s ({})", parts_.size(), sum_,
                              longest_, longestName_);
    parts_.clear();
    posed_.clear();
    sum_ = longest_ = 0;
}

} // namespace tw::builder
