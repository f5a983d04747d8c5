// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <iterator>

#include "base/format.h"
#include "builder/attempts.h"
#include "builder/chooser.h"
#include "builder/reformats.h"
#include "runtime/engine.h"
#include "tune/candidates.h"
#include "tune/checkers_ahead.h"
#include "tune/phases.h"
#include "tune/rates.h"
#include "tune/region_key.h"
#include "tune/rivals.h"
#include "tune/tuner.h"

namespace tw::builder {

namespace {

constexpr DataType kRates[] = {DataType::kFloat, DataType::kHalf};
constexpr int kCompilersPerChecker = 4; // threads: compiling is more work

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
CompileAhead::Asked CompileAhead::asked(Wanted const& wanted, Originals const& originals,
                                        ShapePoints const& points) const
{
    ops::Problem const& problem = wanted.problem;
    tune::Options options = options_.tune;
    options.backend = ops::Backend::kCuda;
    options.mostCandidates = wanted.isGlance ? kGlanceCandidates : options.mostCandidates;
    options.points = points.of(originalOf(problem, originals)); // part of the cache's keys
    options.log = nullptr;
    options.phases = nullptr;
    Asked out;
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
            out.parts.push_back({std::move(p), *chosen, known->config});
    };
    for (ops::Tactic const* t : tactics)
        for (ops::Formats const& f : t->formats(problem))
            look(f);
    if (open.empty())
        return out;
    out.isOpen = true;
    tune::Rivals rivals(open, options);
    std::vector<tune::Candidate> reserve;
    for (tune::Candidate const& c :
         tune::prune(tune::collectCandidates(open, options, rivals), open, reserve, rivals, options.mostCandidates))
        out.parts.push_back({open[size_t(c.group)], c.tactic, c.config});
    out.points = std::move(options.points);
    return out;
}

// Libraries take their time to say what they have: they are asked on all workers.
void CompileAhead::addParts(WantedList const& wanted, Originals const& originals, ShapePoints const& points)
{
    tune::Phases::Scope const phase(options_.tune.phases, "what to compile");
    std::vector<Asked> found(wanted.list.size());
    options_.tune.buildWorkers->run(int64_t(found.size()), [&](int64_t i, int) {
        found[size_t(i)] = asked(wanted.list[size_t(i)], originals, points);
    });
    std::vector<tune::CheckersAhead::Region> checked;
    for (size_t i = 0; i < found.size(); ++i) {
        std::ranges::move(found[i].parts, std::back_inserter(parts_));
        if (found[i].isOpen)
            checked.push_back({wanted.list[i].problem, std::move(found[i].points)});
    }
    if (options_.tune.checkers)
        options_.tune.checkers->start(std::move(checked),
                                      std::max(options_.tune.buildWorkers->count() / kCompilersPerChecker, 1),
                                      *options_.tune.buildWorkers);
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
    addReformats(block, opt, max); // asked for early, and long to compile
    addParts(wanted, {}, points);
    startThreads();
}

void CompileAhead::start(runtime::LoadedBlock const& block, runtime::Instance const& opt, runtime::Instance const& max,
                         Variants const& variants, Originals const& originals, ShapePoints const& points)
{
    settle();
    WantedList wanted;
    collect(block, variants, wanted);
    addReformats(block, opt, max);
    addParts(wanted, originals, points);
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
    seconds_[tactic] += seconds;
}

void CompileAhead::joinThreads()
{
    for (std::thread& t : threads_)
        t.join();
    threads_.clear();
}

CompileAhead::~CompileAhead()
{
    stopCheckers();
    next_ = rates_ + int64_t(parts_.size());
    joinThreads();
}

void CompileAhead::stopCheckers()
{
    if (options_.tune.checkers)
        options_.tune.checkers->stop();
}

// The sum, and what took most of it.
void CompileAhead::report() const
{
    constexpr size_t kMostNamed = 6;
    std::vector<std::pair<double, std::string>> list;
    double sum = 0;
    for (auto const& [tactic, seconds] : seconds_) {
        list.emplace_back(seconds, tactic);
        sum += seconds;
    }
    std::ranges::sort(list, std::greater());
    list.resize(std::min(list.size(), kMostNamed));
    std::string most;
    for (auto const& [seconds, tactic] : list)
        most += fmt::format("{}{} {:.2f}", most.empty() ? "" : ", ", tactic, seconds);
    if (options_.log)
        options_.log->verbose("Compiled ahead: {} candidates, {:.2f} s of work: {}", parts_.size(), sum, most);
}

void CompileAhead::settle()
{
    stopCheckers();
    if (threads_.empty())
        return;
    tune::Phases::Scope const phase(options_.tune.phases, "compiling ahead");
    joinThreads();
    report();
    parts_.clear();
    posed_.clear();
    seconds_.clear();
}

} // namespace tw::builder
