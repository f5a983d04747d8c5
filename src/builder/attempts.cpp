// SPDX-License-Identifier: Apache-2.0
#include "builder/attempts.h"

#include <algorithm>
#include <cmath>

#include "base/hash.h"
#include "builder/compile_ahead.h"
#include "builder/points.h"
#include "builder/shapes.h"
#include "runtime/engine.h"
#include "runtime/profile_shapes.h"
#include "tactic/packed_constants.h"
#include "tune/region_key.h"
#include "tune/timing_cache.h"

namespace tw::builder {

namespace {

// Chooses formats and tactics for a copy of the contents' graph and loads its kernels.
class AttemptMaker
{
public:
    AttemptMaker(plan::Contents const& contents, ir::Graph const* apart, Options const& options, Chooser& chooser)
        : contents_(contents), apart_(apart), options_(options), chooser_(chooser)
    {}

    Result<Attempt> make(FormatPolicy policy, ir::Graph const& graph)
    {
        Attempt a;
        a.policy = policy;
        a.graph = graph.clone();
        a.block = runtime::outlineBlock(*a.graph);
        TW_ASSIGN(runtime::NetworkShapes shapes, runtime::resolveProfiles(contents_, *a.block, {.withMinimum = true}));
        if (options_.maxMemoryBytes > 0)
            TW_TRY(checkTuningMemory(*a.block, shapes.opt(), options_.maxMemoryBytes));
        chooser_.setMinimum(shapes.profiles[0].min.get());
        ShapePoints points(contents_, *a.block);
        chooser_.setPoints(&points);
        auto timesOf = [&](ops::Problem const& problem, std::vector<ops::Formats> const& formats) {
            std::vector<Result<double>> times;
            for (Result<plan::Choice> const& c : chooser_.chooseEach(problem, formats, true))
                times.push_back(c.ok() ? Result<double>(c->microseconds) : c.error());
            return times;
        };
        if (options_.cuda)
            compileAhead(*a.block, shapes.opt(), shapes.max(), points, options_);
        TW_ASSIGN(a.summary, assignFormats(*a.graph, *a.block, shapes.opt(), shapes.max(), options_.tune, policy,
                                           timesOf, options_.io));
        if (a.summary.changed()) {
            TW_TRY(ir::verify(*a.graph));
            a.block = runtime::outlineBlock(*a.graph);
            TW_ASSIGN(shapes, runtime::resolveProfiles(contents_, *a.block, {.withMinimum = true}));
            chooser_.setMinimum(shapes.profiles[0].min.get());
            points = ShapePoints(contents_, *a.block);
        }
        if (options_.cuda && a.summary.changed()) // reformats
            compileAhead(*a.block, shapes.opt(), shapes.max(), points, options_);
        TW_ASSIGN(a.root, chooser_.choose(*a.block, shapes.opt(), shapes.max()));
        chooser_.setMinimum(nullptr);
        chooser_.setPoints(nullptr);
        // Kernels tell their workspaces: load them as the runtime will.
        runtime::LoadOptions load{options_.tune.providers, options_.fingerprint};
        load.threads = options_.tune.workers->count();
        load.workers = options_.tune.buildWorkers;
        load.cuda = options_.cuda;
        load.packed = &packed_;
        TW_TRY(runtime::loadKernels(*a.block, &a.root, shapes.opt(), shapes.max(), load));
        return a;
    }

    Result<Attempt> makeBest(Log& log)
    {
        bool const isDirect =
            std::any_of(options_.io.begin(), options_.io.end(), [](auto const& io) { return io.second.isDirect; });
        bool const isFree = options_.formats == FormatPolicy::kLeastTime && !options_.tune.selector && !options_.cuda &&
                            !isDirect; // which leaves no assignment but by least time
        std::string const key = isFree ? graphKey() : std::string();
        ir::Graph const* graph = contents_.graph.get();
        tune::TimingCache* const cache = options_.tune.heuristicOnly ? nullptr : options_.tune.cache;
        if (auto const hit = cache && isFree ? cache->find(key) : std::nullopt; hit && !hit->config.empty()) {
            FormatPolicy const known = hit->config[0] == int64_t(FormatPolicy::kLinear) ? FormatPolicy::kLinear
                                       : hit->config[0] == int64_t(FormatPolicy::kChannelsLast)
                                           ? FormatPolicy::kChannelsLast
                                           : FormatPolicy::kLeastTime;
            return make(known, apart_ && hit->config.size() > 1 && hit->config[1] ? *apart_ : *graph);
        }
        TW_ASSIGN(Attempt first, make(options_.formats, *graph));
        logSummary(first.summary, log);
        if (!isFree || options_.tune.heuristicOnly || first.summary.nodes == 0 ||
            first.summary.microseconds > kMostMicroseconds)
            return first;
        std::vector<Attempt> attempts;
        attempts.push_back(std::move(first));
        bool isApart = false;
        if (apart_)
            if (auto other = make(options_.formats, *apart_); other.ok()) {
                attempts.push_back(std::move(*other));
                TW_ASSIGN(Confirmation const c, time(attempts));
                isApart = c.fastest == 1;
                if (!c.microseconds.empty())
                    log.info("Expansions and depthwise convolutions in bands: the engine takes " +
                             std::to_string(c.microseconds[0]) + " us, layer by layer " +
                             std::to_string(c.microseconds[1]) + " us" + (isApart ? ", apart" : ", in bands"));
                attempts.erase(attempts.begin() + !isApart);
                graph = isApart ? apart_ : graph;
            }
        FormatSummary const s = attempts[0].summary;
        if (s.nonLinear < s.nodes && s.nonLinear > 0)
            if (auto other = make(FormatPolicy::kChannelsLast, *graph); other.ok())
                attempts.push_back(std::move(*other));
        if (s.nonLinear > 0 && s.linearMicroseconds < kWorthTrying * s.microseconds)
            if (auto other = make(FormatPolicy::kLinear, *graph); other.ok())
                attempts.push_back(std::move(*other));
        TW_ASSIGN(Confirmation const c, time(attempts));
        for (size_t i = 0; i < c.microseconds.size(); ++i)
            log.info(std::string("Formats ") + nameOf(attempts[i].policy) + ": the engine takes " +
                     std::to_string(c.microseconds[i]) + " us" + (int(i) == c.fastest ? ", taken" : ""));
        Attempt& best = attempts[size_t(c.fastest)];
        if (cache)
            cache->insert(key, tune::CacheEntry{0, {int64_t(best.policy), isApart}, 0, {}});
        return std::move(best);
    }

private:
    Result<Confirmation> time(std::vector<Attempt> const& attempts)
    {
        if (attempts.size() < 2)
            return Confirmation{};
        std::vector<Tensor> storage;
        TW_ASSIGN(auto inputs, runtime::profileInputs(contents_, 0, runtime::Select::kOpt, storage));
        return confirm(attempts, inputs, *options_.tune.workers, kBudgetMilliseconds);
    }
    static char const* nameOf(FormatPolicy p)
    {
        return p == FormatPolicy::kLinear         ? "all linear"
               : p == FormatPolicy::kChannelsLast ? "all channels-last"
                                                  : "by least time";
    }
    static void logSummary(FormatSummary const& s, Log& log)
    {
        if (s.nodes == 0)
            return;
        log.info("Formats: " + std::to_string(s.nonLinear) + " of " + std::to_string(s.nodes) +
                 " layers that can work in other than linear formats do, with " + std::to_string(s.reformats) +
                 " reformats: " + std::to_string(s.microseconds) + " us" +
                 (std::isfinite(s.linearMicroseconds) ? ", all linear " + std::to_string(s.linearMicroseconds) + " us"
                                                      : std::string()) +
                 (s.isExact ? "" : " (not searched to the end)"));
    }
    // What the decision depends on: every layer with its shapes.
    std::string graphKey() const
    {
        auto const block = runtime::outlineBlock(*contents_.graph);
        auto const shapes = runtime::resolveProfiles(contents_, *block);
        Hasher h;
        for (runtime::LoadedStep const& step : block->steps)
            if (shapes.ok())
                h.text(tune::cacheKey(
                    runtime::problemOf(step, shapes->opt(), shapes->max(), options_.tune.workers->count()),
                    options_.tune));
        for (auto const& [name, io] : options_.io) {
            h.text(name);
            for (Format f : io.allowed)
                h.text(tw::nameOf(f));
        }
        return options_.fingerprint + "|formats of a graph|" + std::to_string(h.value());
    }

    static constexpr double kMostMicroseconds = 300'000; // of one run: more takes too long to time
    static constexpr double kBudgetMilliseconds = 1000;
    static constexpr double kWorthTrying = 1.3;
    plan::Contents const& contents_;
    ir::Graph const* apart_;
    Options const& options_;
    Chooser& chooser_;
    ops::PackedConstants packed_; // attempts are there at the same time
};

} // namespace

Result<Attempt> makeBestAttempt(plan::Contents const& contents, ir::Graph const* apart, Options const& options,
                                Chooser& chooser, Log& log)
{
    return AttemptMaker(contents, apart, options, chooser).makeBest(log);
}

} // namespace tw::builder
