// SPDX-License-Identifier: Apache-2.0
#include "builder/attempts.h"

#include <algorithm>
#include <cmath>

#include "base/hash.h"
#include "builder/integer_layers.h"
#include "builder/lowering.h"
#include "builder/points.h"
#include "builder/profiles.h"
#include "builder/types.h"
#include "runtime/engine.h"
#include "runtime/profile_shapes.h"
#include "tactic/packed_constants.h"
#include "tune/phases.h"
#include "tune/rates.h"
#include "tune/region_key.h"
#include "tune/timing_cache.h"

namespace tw::builder {

namespace {

// Chooses formats and tactics for a copy of the contents' graph and loads its kernels.
class AttemptMaker
{
public:
    AttemptMaker(plan::Contents const& contents, std::span<passes::Alternative const> alternatives,
                 Options const& options, Chooser& chooser)
        : contents_(contents), alternatives_(alternatives), options_(options), chooser_(chooser),
          isByProfile_(choosesByProfile(contents, options))
    {
        weights_.recipes = options.recipes;
    }

    Result<Attempt> make(FormatChoice const& formats, ir::Graph const& graph, Log& log,
                         TypePolicy types = TypePolicy::kLeastTime, bool isFinal = true)
    {
        tune::Phases::Scope const phase(options_.tune.phases, "types and formats");
        Attempt a;
        a.formats = formats;
        a.graph = graph.clone();
        a.block = runtime::outlineBlock(*a.graph);
        TW_ASSIGN(runtime::NetworkShapes shapes, runtime::resolveProfiles(contents_, *a.block, {.withMinimum = true}));
        if (options_.maxMemoryBytes > 0)
            TW_TRY(checkTuningMemory(*a.block, shapes.opt(), options_.maxMemoryBytes));
        size_t const profile = isByProfile_ ? 0 : ShapePoints::kAllProfiles;
        auto max = [&]() -> runtime::Instance const& { return isByProfile_ ? shapes.max(0) : shapes.max(); };
        ShapePoints points(contents_, *a.block, profile);
        bool const isGlance = types == TypePolicy::kFloat && !isFinal;
        Originals originals;
        Chooser::Terms terms{shapes.profiles[0].min.get(), &points, &originals, isGlance};
        auto timesBy = [&](Chooser::Terms const& by, ops::Problem const& problem,
                           std::vector<ops::Formats> const& formats) {
            auto times =
                mapped<Result<double>>(chooser_.chooseEach(problem, formats, by), [&](Result<plan::Choice> const& c) {
                    return c.ok() ? Result<double>(c->microseconds) : c.error();
                });
            return times;
        };
        auto timesOf = [&](ops::Problem const& problem, std::vector<ops::Formats> const& formats) {
            return timesBy(terms, problem, formats);
        };
        auto glance = [&](ops::Problem const& problem, std::vector<ops::Formats> const& formats) {
            Chooser::Terms atAGlance = terms;
            atAGlance.isGlance = true;
            return timesBy(atAGlance, problem, formats);
        };
        CompileAhead ahead(options_);
        auto prepare = [&](Variants const& variants, Originals const& posed) {
            originals = posed;
            if (options_.cuda)
                ahead.start(*a.block, shapes.opt(), max(), variants, originals, points);
        };
        auto settle = [&] { ahead.settle(); };
        if (choosesTypes(options_)) {
            TW_ASSIGN(a.types, assignTypes(*a.graph, *a.block, shapes.opt(), max(), options_, types,
                                           {timesOf, glance, prepare, settle}, options_.io, weights_, log));
            originals.clear();
            TW_TRY(ir::verify(*a.graph));
            a.block = runtime::outlineBlock(*a.graph);
            TW_ASSIGN(shapes, runtime::resolveProfiles(contents_, *a.block, {.withMinimum = true}));
            terms.minimum = shapes.profiles[0].min.get();
            points = ShapePoints(contents_, *a.block, profile);
        }
        if (options_.cuda && !isGlance)
            ahead.start(*a.block, shapes.opt(), max(), points);
        TW_ASSIGN(a.summary, assignFormats(*a.graph, *a.block, shapes.opt(), max(), options_.tune, formats, timesOf,
                                           options_.io, settle));
        if (a.summary.changed()) {
            TW_TRY(ir::verify(*a.graph));
            a.block = runtime::outlineBlock(*a.graph);
            TW_ASSIGN(shapes, runtime::resolveProfiles(contents_, *a.block, {.withMinimum = true}));
            terms.minimum = shapes.profiles[0].min.get();
            points = ShapePoints(contents_, *a.block, profile);
        }
        if (options_.cuda && !isGlance && a.summary.changed()) // reformats
            ahead.start(*a.block, shapes.opt(), max(), points);
        TW_ASSIGN(a.root, chooser_.choose(*a.block, shapes.opt(), max(), terms));
        settle();
        if (options_.keepRivals)
            addTypes(a.types, *a.block, a.root);
        // Kernels tell their workspaces: load them as the runtime will.
        tune::Phases::Scope const loading(options_.tune.phases, "loading engines");
        TW_TRY(runtime::loadKernels(*a.block, &a.root, shapes.opt(), max(), loadOptions()));
        return a;
    }

    Result<Attempt> makeForAllProfiles(Log& log)
    {
        TW_ASSIGN(Attempt best, makeBest(log));
        if (!isByProfile_)
            return best;
        auto others = chooseForOthers(contents_, options_, chooser_, loadOptions(), best);
        if (others.ok())
            return best;
        // Such as formats that kernels take at the first profile's sizes alone.
        log.verbose("One choice of kernels for all optimization profiles: {}", others.error().message);
        isByProfile_ = false;
        return makeBest(log);
    }

private:
    runtime::LoadOptions loadOptions()
    {
        runtime::LoadOptions load{options_.tune.providers, options_.fingerprint};
        load.threads = options_.tune.workers->count();
        load.workers = options_.tune.buildWorkers;
        load.cuda = options_.cuda;
        load.packed = &packed_;
        return load;
    }

    // For the first profile.
    Result<Attempt> makeBest(Log& log)
    {
        bool const isDirect = std::ranges::any_of(options_.io, [](auto const& io) { return io.second.isDirect; });
        bool const mayChoose = options_.formats == FormatPolicy::kLeastTime && !options_.tune.selector && !isDirect;
        if (options_.cuda && mayChoose && !options_.tune.heuristicOnly && !alternatives_.empty())
            return makeBestGraph(log);
        if (choosesTypes(options_))
            return makeBestTypes(*contents_.graph, log);
        bool const isFree = mayChoose && !options_.cuda; // which leaves no assignment but by least time
        std::string const key = isFree ? graphKey("formats") : std::string();
        tune::TimingCache* const cache = options_.tune.heuristicOnly ? nullptr : options_.tune.cache;
        if (auto const hit = cache && isFree ? cache->find(key) : std::nullopt; hit && !hit->config.empty()) {
            std::span<int64_t const> const choice(hit->config);
            TW_ASSIGN(ir::Graph const* graph, graphOf(choice.subspan(1)));
            return make(formatsOf(choice[0]), *graph, log);
        }
        FormatChoice formats{options_.formats};
        if (isFree && !options_.tune.heuristicOnly)
            formats.near = 0;
        TW_ASSIGN(Attempt first, make(formats, *contents_.graph, log));
        logSummary(first.summary, log);
        if (!isFree || options_.tune.heuristicOnly || first.summary.nodes == 0 ||
            first.summary.microseconds > kMostMicroseconds)
            return first;
        std::vector<Attempt> attempts;
        attempts.push_back(std::move(first));
        auto makeFrom = [&](ir::Graph const& g, Log& to) { return make(formats, g, to); };
        TW_ASSIGN(std::vector<int64_t> const chosen, chooseGraph(attempts, makeFrom, log));
        TW_ASSIGN(ir::Graph const* const graph, graphOf(chosen));
        FormatSummary const s = attempts[0].summary;
        if (s.nonLinear < s.nodes && s.nonLinear > 0)
            if (auto other = make({FormatPolicy::kChannelsLast}, *graph, log); other.ok())
                attempts.push_back(std::move(*other));
        if (s.nonLinear > 0 && s.linearMicroseconds < kWorthTrying * s.microseconds)
            if (auto other = make({FormatPolicy::kLinear}, *graph, log); other.ok())
                attempts.push_back(std::move(*other));
        for (int near = 1; near <= s.near; ++near)
            if (auto other = make({options_.formats, near}, *graph, log); other.ok())
                attempts.push_back(std::move(*other));
        TW_ASSIGN(Confirmation const c, time(attempts));
        for (size_t i = 0; i < c.microseconds.size(); ++i)
            log.info("Formats {}: the engine takes {} us{}", nameOf(attempts[i]), c.microseconds[i],
                     int(i) == c.fastest ? ", taken" : "");
        Attempt& best = attempts[size_t(c.fastest)];
        if (cache)
            keep(*cache, key, chosen, {numberOf(best.formats)});
        return std::move(best);
    }

    using MakeFrom = std::function<Result<Attempt>(ir::Graph const& graph, Log& log)>;

    // The graph of a choice: by number, the contents' own (0, and what there is not), its alternatives, and the mixture of
    // INT8 and floats, whose bits follow.
    Result<ir::Graph const*> graphOf(std::span<int64_t const> choice)
    {
        int64_t const number = choice.empty() ? 0 : choice[0];
        if (number > 0 && number <= int64_t(alternatives_.size()))
            return alternatives_[size_t(number - 1)].graph.get();
        passes::Alternative const* const floats = withoutRanges();
        if (number != kMixture || !floats)
            return contents_.graph.get();
        if (!mixture_)
            TW_SET(mixture_,
                   lowerWithFloats(contents_, *floats, fromBits(*floats->graph, choice.subspan(1)), options_));
        return mixture_.get();
    }
    passes::Alternative const* withoutRanges() const
    {
        for (passes::Alternative const& a : alternatives_)
            if (std::string_view(a.without) == "quantize_ranges")
                return &a;
        return nullptr;
    }
    // A choice behind `before` in the timing cache; one that is too long for it is made again each time.
    static void keep(tune::TimingCache& cache, std::string const& key, std::vector<int64_t> const& choice,
                     std::vector<int64_t> before = {})
    {
        before.insert(before.end(), choice.begin(), choice.end());
        if (before.size() <= tune::TimingCache::kMaxConfig)
            cache.insert(key, tune::CacheEntry{0, std::move(before), 0, {}});
    }

    // Beside the engine in `attempts`, that of the contents' graph, one of each alternative and one of INT8 and floats; leaves
    // the fastest there. Which it was, as graphOf() takes it.
    Result<std::vector<int64_t>> chooseGraph(std::vector<Attempt>& attempts, MakeFrom const& makeFrom, Log& log)
    {
        struct Other
        {
            std::vector<int64_t> choice;
            char const* pass; // that the first has
            std::string what;
        };
        std::vector<Other> others{{{0}, "", ""}};
        NullLog quiet;
        for (size_t i = 0; i < alternatives_.size() && attempts[0].summary.microseconds <= kMostMicroseconds; ++i) {
            Result<Attempt> other = makeFrom(*alternatives_[i].graph, quiet);
            if (!other.ok())
                continue;
            attempts.push_back(std::move(*other));
            char const* const pass = alternatives_[i].without;
            others.push_back({{int64_t(i + 1)}, pass, "without it"});
            if (&alternatives_[i] != withoutRanges())
                continue;
            TW_ASSIGN(std::set<std::string> const layers,
                      layersInFloat(alternatives_[i], attempts[0], attempts.back()));
            if (layers.empty())
                continue;
            std::vector<int64_t> choice = asBits(*alternatives_[i].graph, layers);
            choice.insert(choice.begin(), kMixture);
            TW_ASSIGN(ir::Graph const* const graph, graphOf(choice));
            other = makeFrom(*graph, quiet);
            if (!other.ok())
                continue;
            attempts.push_back(std::move(*other));
            others.push_back({choice, pass, fmt::format("with {} of its layers in floating point", layers.size())});
            for (std::string const& layer : layers)
                log.verbose("INT8: layer '{}' is faster in floating point, by the times of single layers", layer);
        }
        TW_ASSIGN(Confirmation const c, time(attempts));
        for (size_t i = 1; i < c.microseconds.size(); ++i)
            log.info("With {} the engine takes {} us, {} {} us{}", others[i].pass, c.microseconds[0], others[i].what,
                     c.microseconds[i], int(i) == c.fastest ? ", which is taken" : "");
        size_t const fastest = attempts.size() > 1 ? size_t(c.fastest) : 0;
        std::swap(attempts[0], attempts[fastest]);
        attempts.erase(attempts.begin() + 1, attempts.end());
        return others[fastest].choice;
    }
    Result<std::set<std::string>> layersInFloat(passes::Alternative const& alternative, Attempt const& integers,
                                                Attempt const& floats)
    {
        auto const block = runtime::outlineBlock(*alternative.graph);
        TW_ASSIGN(runtime::NetworkShapes const shapes, runtime::resolveProfiles(contents_, *block));
        ConversionCost cost{tune::Rates(options_.tune).bytes(), options_.cuda ? kLaunchOnGpu : kLaunchOnCpu};
        if (!(cost.bytesPerMicrosecond > 0))
            return std::set<std::string>();
        return builder::layersInFloat(*alternative.graph, shapes.opt(), integers, floats, cost);
    }

    // On a GPU: the best engine of the contents' graph, beside those of the alternatives.
    Result<Attempt> makeBestGraph(Log& log)
    {
        auto makeFrom = [&](ir::Graph const& graph, Log& to) -> Result<Attempt> {
            if (choosesTypes(options_))
                return makeBestTypes(graph, to);
            TW_ASSIGN(Attempt a, make({options_.formats}, graph, to));
            logSummary(a.summary, to);
            return a;
        };
        tune::TimingCache* const cache = options_.tune.cache;
        std::string const key = cache ? graphKey("alternatives") : std::string();
        if (auto const hit = cache ? cache->find(key) : std::nullopt; hit && !hit->config.empty()) {
            TW_ASSIGN(ir::Graph const* graph, graphOf(hit->config));
            return makeFrom(*graph, log);
        }
        TW_ASSIGN(Attempt first, makeFrom(*contents_.graph, log));
        std::vector<Attempt> attempts;
        attempts.push_back(std::move(first));
        TW_ASSIGN(std::vector<int64_t> const chosen, chooseGraph(attempts, makeFrom, log));
        if (cache)
            keep(*cache, key, chosen);
        return std::move(attempts[0]);
    }

    // The types by the times of single layers, beside one type wherever it is allowed: as whole engines.
    Result<Attempt> makeBestTypes(ir::Graph const& graph, Log& log)
    {
        tune::TimingCache* const cache = options_.tune.cache;
        std::string const key = cache ? typesKey(graph) : std::string();
        if (auto const hit = cache ? cache->find(key) : std::nullopt; hit && !hit->config.empty())
            return makeOne(graph, TypePolicy(std::clamp<int64_t>(hit->config[0], 0, int64_t(TypePolicy::kFloat))), log);
        TW_ASSIGN(Attempt first, makeOne(graph, TypePolicy::kLeastTime, log));
        TypeSummary const& t = first.types;
        std::vector<TypePolicy> others;
        bool const isShort = first.summary.microseconds <= kMostMicroseconds;
        if (isShort && t.slower > 0 && t.narrow > 0)
            others.push_back(TypePolicy::kPreferred);
        if (isShort && t.narrow > 0 && t.floatMicroseconds < kWorthTryingFloat * t.microseconds)
            others.push_back(TypePolicy::kFloat);
        std::vector<Attempt> attempts;
        attempts.push_back(std::move(first));
        std::vector<TypePolicy> policies{TypePolicy::kLeastTime};
        NullLog quiet;
        for (TypePolicy p : others)
            if (auto other = make({options_.formats}, graph, quiet, p, false); other.ok()) {
                attempts.push_back(std::move(*other));
                policies.push_back(p);
            }
        TW_ASSIGN(Confirmation const c, time(attempts));
        for (size_t i = 0; i < c.microseconds.size(); ++i)
            log.info("Types {}: the engine takes {} us{}", nameOf(policies[i], attempts[i].types.type),
                     c.microseconds[i], int(i) == c.fastest ? ", taken" : "");
        TypePolicy const best = policies[size_t(c.fastest)];
        if (cache)
            cache->insert(key, tune::CacheEntry{0, {int64_t(best)}, 0, {}});
        if (best == TypePolicy::kFloat) { // now with all candidates
            attempts.clear();
            return makeOne(graph, best, log);
        }
        return std::move(attempts[size_t(c.fastest)]);
    }
    Result<Attempt> makeOne(ir::Graph const& graph, TypePolicy types, Log& log)
    {
        TW_ASSIGN(Attempt a, make({options_.formats}, graph, log, types));
        logSummary(a.types, log);
        weights_.report(log);
        logSummary(a.summary, log);
        return a;
    }

    Result<Confirmation> time(std::vector<Attempt> const& attempts)
    {
        if (attempts.size() < 2)
            return Confirmation{};
        tune::Phases::Scope const phase(options_.tune.phases, "timing engines");
        std::vector<Tensor> storage;
        TW_ASSIGN(auto inputs, runtime::profileInputs(contents_, 0, runtime::Select::kOpt, storage));
        return confirm(attempts, inputs, *options_.tune.workers, kBudgetMilliseconds, options_.cuda.get());
    }
    // In the timing cache; and back, where what is no such number is by least time.
    static int64_t numberOf(FormatChoice const& f)
    {
        return f.near.value_or(0) > 0 ? kNear + *f.near : int64_t(f.policy);
    }
    static FormatChoice formatsOf(int64_t number)
    {
        for (FormatPolicy p : {FormatPolicy::kLinear, FormatPolicy::kChannelsLast})
            if (number == int64_t(p))
                return {p};
        bool const isNear = number > kNear && number < kNear + kNear;
        return {FormatPolicy::kLeastTime, isNear ? std::optional(int(number - kNear)) : std::nullopt};
    }
    static std::string nameOf(Attempt const& a)
    {
        if (a.formats.near.value_or(0) > 0)
            return fmt::format("nearly by least time ({})", *a.formats.near);
        return a.formats.policy == FormatPolicy::kLinear         ? "all linear"
               : a.formats.policy == FormatPolicy::kChannelsLast ? "all channels-last"
                                                                 : "by least time";
    }
    static std::string nameOf(TypePolicy p, DataType narrow)
    {
        return p == TypePolicy::kFloat       ? "all FP32"
               : p == TypePolicy::kPreferred ? std::string("all ") + numberType(narrow).shown
                                             : "by least time";
    }
    static void logSummary(FormatSummary const& s, Log& log)
    {
        if (s.nodes == 0)
            return;
        log.info("Formats: {} of {} layers that can work in other than linear formats do, with {} reformats: {} us{}{}",
                 s.nonLinear, s.nodes, s.reformats, s.microseconds,
                 std::isfinite(s.linearMicroseconds) ? fmt::format(", all linear {} us", s.linearMicroseconds)
                                                     : std::string(),
                 s.isExact ? "" : " (not searched to the end)");
    }
    static void logSummary(TypeSummary const& s, Log& log)
    {
        if (s.narrow + s.slower == 0)
            return;
        log.info("{}: {} layers, {} stay in FP32, {} conversions between them{}", numberType(s.type).shown, s.narrow,
                 s.kept, s.casts,
                 s.open ? fmt::format("; {} layers were timed in both, of which {} are in FP32", s.open, s.slower)
                        : std::string());
    }
    // Among a layer's rivals: the types that it is not in.
    static void addTypes(TypeSummary const& types, runtime::LoadedBlock const& block, plan::Block& out)
    {
        for (size_t i = 0; i < block.steps.size(); ++i) {
            if (auto const found = types.rivals.find(block.steps[i].node); found != types.rivals.end())
                out.steps[i].choice.rivals.insert(out.steps[i].choice.rivals.end(), found->second.begin(),
                                                  found->second.end());
            for (size_t r = 0; r < block.steps[i].regions.size(); ++r)
                addTypes(types, *block.steps[i].regions[r], out.steps[i].regions[r]);
        }
    }
    // What a decision depends on: every layer with its shapes, and what is permitted and asked for.
    std::string graphKey(char const* what) const
    {
        Hasher h = graphHash(*contents_.graph);
        for (passes::Alternative const& a : alternatives_) // which decisions name by number
            h.text(a.without);
        return fmt::format("{}|{} of a graph|{}", options_.fingerprint, what, h.value());
    }
    std::string typesKey(ir::Graph const& graph) const
    {
        return fmt::format("{}|types of a graph|{}", options_.fingerprint, graphHash(graph).value());
    }
    static void addWishes(ir::Graph const& g, Hasher& h)
    {
        auto add = [&](ir::Requested<DataType> const& w) { h.number(w.byUser ? uint64_t(w.value) + 1 : 0); };
        for (auto const& n : g.nodes) {
            add(n->precision);
            std::ranges::for_each(n->outputTypes, add);
            for (auto const& r : n->regions)
                addWishes(*r, h);
        }
    }
    Hasher graphHash(ir::Graph const& graph) const
    {
        auto const block = runtime::outlineBlock(graph);
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
        h.number(options_.tune.permits.bits());
        h.number(uint64_t(options_.constraints));
        h.number(options_.tune.sources);
        addWishes(graph, h);
        return h;
    }

    static constexpr int64_t kMixture = -1;
    static constexpr int64_t kNear = 16;                          // behind it: FormatChoice::near
    static constexpr double kLaunchOnGpu = 1.5, kLaunchOnCpu = 1; // microseconds
    static constexpr double kMostMicroseconds = 300'000;          // of one run: more takes too long to time
    static constexpr double kBudgetMilliseconds = 1000;
    static constexpr double kWorthTrying = 1.3;
    static constexpr double kWorthTryingFloat = 1.1; // of single layers' times, conversions on the other side
    plan::Contents const& contents_;
    std::span<passes::Alternative const> alternatives_;
    Options const& options_;
    Chooser& chooser_;
    bool isByProfile_;              // kernels are chosen for the first profile alone
    ops::PackedConstants packed_;   // attempts are there at the same time
    passes::NarrowWeights weights_; // one conversion for all attempts
    std::unique_ptr<ir::Graph> mixture_;
};

} // namespace

Result<Attempt> makeBestAttempt(plan::Contents const& contents, std::span<passes::Alternative const> alternatives,
                                Options const& options, Chooser& chooser, Log& log)
{
    return AttemptMaker(contents, alternatives, options, chooser).makeForAllProfiles(log);
}

} // namespace tw::builder
