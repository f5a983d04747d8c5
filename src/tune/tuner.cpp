// SPDX-License-Identifier: Apache-2.0
#include "tune/tuner.h"

#include <algorithm>
#include <cmath>

#include "device/cuda/compiler.h"
#include "device/cuda/driver.h"
#include "device/cuda/target.h"
#include "ir/op_def.h"
#include "ops/cuda_library.h"
#include "ops/winograd.h"
#include "tune/bench.h"
#include "tune/check.h"
#include "tune/contest.h"
#include "tune/device_run.h"
#include "tune/timing_cache.h"

namespace tw::tune {

namespace {

constexpr double kNever = 1e12;        // microseconds of a candidate that cannot run
constexpr uint64_t kNone = 0;          // in the cache: a combination of formats that is not worth a choice
constexpr size_t kMostCandidates = 10; // of each combination of formats, by estimate
constexpr double kHopeless = 8;        // estimates above this many times the best
constexpr double kWorthEmitting = 10;  // microseconds by estimate from which plain tactics are not tried
// What a library's kernel costs those in front of it and behind it: they cannot overlap with it as dependent launches
// do. Measured on an H200: six of them, each 0.5 to 1 us faster by itself, made ResNet-50 10 us slower.
constexpr double kAlone = 2;
constexpr int kDependentCapability = 90; // of GPUs that have dependent launches
constexpr size_t kMostRivals = TimingCache::kMaxRivals, kMostReason = 300, kMostConfig = 16; // kept of each choice
constexpr int64_t kMostPackedBytes = 1 << 30; // constants of all candidates together, each packs its own

constexpr uint32_t kAllSources = bitOf(ops::Source::kOwn) | bitOf(ops::Source::kCublasLt) | bitOf(ops::Source::kCudnn);

struct Candidate
{
    ops::Tactic const* tactic = nullptr;
    ops::Config config;
    int group = 0;
    double estimate = 0;
    bool isPlain = false; // closes the op's list: the reserve
    std::string image;
    std::unique_ptr<ops::Kernel> kernel;
    std::string refusal;
    bool isTooLarge = false; // its workspace is
};

std::string typesAndShapes(std::vector<ops::TensorSpec> const& specs)
{
    std::string s;
    for (auto const& t : specs) {
        for (int64_t i = 0; t.contents.data && i < t.contents.count(); ++i)
            s += std::to_string(t.contents.getInt(i)) + ";";
        s += t.format != Format::kLinear ? std::string(nameOf(t.format)) + ":" : "";
        s += t.present ? std::string(nameOf(t.type)) + t.dims.str() + t.maxDims.str() + (t.constant ? "c" : "") + " "
                       : "- ";
    }
    return s;
}

std::span<ops::Tactic const* const> ownTactics(ir::Node const& node, ops::Backend backend)
{
    auto const list = backend == ops::Backend::kCuda ? node.op->cudaTactics : node.op->cpuTactics;
    return list ? list() : std::span<ops::Tactic const* const>();
}

int64_t workspaceAtMaximum(ops::Problem const& problem, ops::Kernel const& kernel)
{
    auto refs = [](std::vector<ops::TensorSpec> const& specs) {
        std::vector<TensorRef> out;
        for (ops::TensorSpec const& t : specs)
            out.push_back(t.present ? TensorRef{t.type, t.maxDims, nullptr, t.format} : TensorRef{});
        return out;
    };
    std::vector<TensorRef> const in = refs(problem.inputs), out = refs(problem.outputs);
    return kernel.workspaceBytes(in, out);
}

// One sample of n runs.
Sample meanOf(std::function<Sample()> const& once, int n)
{
    Sample mean;
    for (int i = 0; i < n; ++i) {
        Sample const s = once();
        mean.microseconds += s.microseconds / n;
        mean.isDisturbed = mean.isDisturbed || s.isDisturbed;
    }
    return mean;
}

// Tunes one region for several combinations of formats.
class Tuner
{
public:
    Tuner(ops::Problem const& problem, std::vector<ops::Formats> const& formats, Options const& options)
        : problem_(problem), options_(options), checker_(problem, *options.buildWorkers), refusals_(formats.size()),
          unsupported_(formats.size()), rivals_(formats.size())
    {
        for (ops::Formats const& f : formats) {
            problems_.push_back(problem);
            ops::setFormats(problems_.back(), f);
        }
    }

    std::vector<Result<plan::Choice>> run()
    {
        collect();
        prune();
        keep(build(std::move(list_)));
        // With everything else refused, the plain tactics come back.
        std::vector<Candidate> again;
        for (Candidate& c : reserve_)
            if (std::none_of(good_.begin(), good_.end(), [&](Candidate const& g) { return g.group == c.group; }) &&
                (good_.empty() || problems_.size() == 1))
                again.push_back(std::move(c));
            else
                refuse(c, "held in reserve: generated kernels are there, and it is expected to take longer");
        if (!again.empty())
            keep(build(std::move(again)));
        return decide();
    }

private:
    struct Refused
    {
        std::string name, nameWithFormats, why;
        int group = 0;
    };
    std::string where() const { return "layer '" + problem_.node->name + "' (" + problem_.node->op->name + ")"; }
    static std::string describe(Candidate const& c)
    {
        std::string name = c.tactic->name();
        for (size_t i = 0; i < c.config.size() && i < kMostConfig; ++i)
            name += (i ? "," : "[") + std::to_string(c.config[i]);
        return name + (c.config.empty() ? "" : "]");
    }
    std::string describeIn(Candidate const& c) const
    {
        ops::Formats const f = ops::formatsOf(problems_[size_t(c.group)]);
        std::string text = describe(c) + " in ";
        for (size_t i = 0; i < f.inputs.size(); ++i)
            text += (i ? "," : "") + std::string(nameOf(f.inputs[i]));
        for (size_t i = 0; i < f.outputs.size(); ++i)
            text += (i ? "," : "->") + std::string(nameOf(f.outputs[i]));
        return text;
    }
    // Why good_[i] was not chosen where good_[winner] was.
    std::string whyLost(size_t i, size_t winner, std::vector<double> const& times) const
    {
        bool const isOther = good_[i].group != good_[winner].group;
        if (times[i] <= 0 || times[winner] <= 0)
            return isOther ? "other formats, not timed" : "stands behind the chosen one in the list";
        if (times[i] > times[winner]) {
            char why[80];
            std::snprintf(why, sizeof why, "%.2f times the %s of the chosen one%s", times[i] / times[winner],
                          options_.heuristicOnly ? "estimate" : "time", isOther ? ", in other formats" : "");
            return why;
        }
        if (isOther)
            return "no slower by itself, but in other formats: those of all layers were chosen together, with what "
                   "reformats cost";
        return options_.selector ? "the algorithm selector chose another"
                                 : "as fast, and stands behind the chosen one in the list";
    }
    // Those that group g did not choose, fastest first, then those that were refused; what works in the formats of
    // other groups with those.
    std::vector<plan::Rival> rivalsOf(size_t g, size_t winner, std::vector<double> const& times) const
    {
        std::vector<plan::Rival> list;
        for (size_t i = 0; i < good_.size(); ++i)
            if (i != winner)
                list.push_back({size_t(good_[i].group) == g ? describe(good_[i]) : describeIn(good_[i]), times[i],
                                whyLost(i, winner, times)});
        std::stable_sort(list.begin(), list.end(),
                         [](plan::Rival const& a, plan::Rival const& b) { return a.microseconds < b.microseconds; });
        auto add = [&](std::vector<Refused> const& more) {
            for (Refused const& r : more)
                list.push_back({size_t(r.group) == g ? r.name : r.nameWithFormats, 0, r.why});
        };
        add(rivals_[g]);
        add(unsupported_[g]);
        for (size_t other = 0; other < rivals_.size(); ++other)
            if (other != g)
                add(rivals_[other]);
        list.resize(std::min(list.size(), kMostRivals));
        return list;
    }
    // `isUnsupported`: there is nothing to build, which in other formats is no news.
    void refuse(Candidate const& c, std::string const& why, bool isUnsupported = false)
    {
        auto& list = isUnsupported ? unsupported_ : rivals_;
        list[size_t(c.group)].push_back({describe(c), describeIn(c), why.substr(0, kMostReason), c.group});
        refusals_[size_t(c.group)] += std::string("\n  ") + c.tactic->name() + ": " + why;
        if (options_.log)
            options_.log->verbose(where() + ": tactic " + c.tactic->name() + " is out: " + why);
    }

    void collect()
    {
        std::vector<ops::Tactic const*> const tactics = candidates(*problem_.node, options_);
        auto const own = ownTactics(*problem_.node, options_.backend);
        for (size_t g = 0; g < problems_.size(); ++g)
            for (ops::Tactic const* t : tactics) {
                Candidate c;
                c.tactic = t;
                c.group = int(g);
                c.isPlain = !own.empty() && t == own.back();
                ops::Support const s = ops::supportsFormats(*t, problems_[g]);
                if (!s.ok) {
                    refuse(c, s.reason, true);
                    continue;
                }
                for (ops::Config const& config : t->configs(problems_[g])) {
                    Candidate one;
                    one.tactic = t;
                    one.group = c.group;
                    one.isPlain = c.isPlain;
                    one.config = config;
                    one.estimate = t->estimate(problems_[g], config);
                    list_.push_back(std::move(one));
                }
            }
    }

    // By estimates; unknown ones (0) stay.
    void prune()
    {
        double best = INFINITY;
        for (Candidate const& c : list_)
            best = c.estimate > 0 ? std::min(best, c.estimate) : best;
        int64_t packed = 1;
        for (ops::TensorSpec const& t : problem_.inputs)
            packed += t.constant ? int64_t(t.constant->sizeBytes()) : 0;
        size_t const most = std::clamp<size_t>(size_t(kMostPackedBytes / packed), 2, kMostCandidates);
        std::vector<size_t> count(problems_.size(), 0);
        std::vector<Candidate> order = std::move(list_);
        list_.clear();
        std::stable_sort(order.begin(), order.end(), [](Candidate const& a, Candidate const& b) {
            return (a.estimate > 0 ? a.estimate : INFINITY) < (b.estimate > 0 ? b.estimate : INFINITY);
        });
        for (Candidate& c : order) {
            bool const isOver = count[size_t(c.group)] >= most;
            if (c.isPlain && c.estimate <= 0 && (isOver || (std::isfinite(best) && best >= kWorthEmitting))) {
                reserve_.push_back(std::move(c));
                continue;
            }
            if (c.estimate > kHopeless * best || ++count[size_t(c.group)] > most) {
                refuse(c, "estimated at " + std::to_string(c.estimate) + " us, the best at " + std::to_string(best) +
                              " us");
                continue;
            }
            list_.push_back(std::move(c));
        }
    }

    std::vector<Candidate> build(std::vector<Candidate> list)
    {
        // A CUDA context belongs to the calling thread.
        Workers& workers = problem_.cuda ? serialWorkers() : *options_.buildWorkers;
        workers.run(int64_t(list.size()), [&](int64_t i, int) {
            Candidate& c = list[size_t(i)];
            ops::Problem const& p = problems_[size_t(c.group)];
            auto image = c.tactic->build(p, c.config);
            if (!image.ok()) {
                c.refusal = image.error().message;
                return;
            }
            c.image = std::move(*image);
            auto kernel = c.tactic->load(p, c.config, c.image);
            if (!kernel.ok()) {
                c.refusal = kernel.error().message;
                return;
            }
            c.kernel = std::move(*kernel);
            int64_t const needed = c.isPlain ? 0 : workspaceAtMaximum(p, *c.kernel);
            c.isTooLarge = needed > options_.workspaceBytes;
            if (c.isTooLarge)
                c.refusal = "it needs a workspace of " + std::to_string(needed) + " bytes, the limit is " +
                            std::to_string(options_.workspaceBytes);
        });
        return list;
    }

    // Those that compute what the reference computes.
    void keep(std::vector<Candidate> built)
    {
        // Estimates decide alone: the first that is right.
        std::vector<bool> done(problems_.size(), false);
        for (Candidate& c : built) {
            if (options_.heuristicOnly && done[size_t(c.group)]) {
                refuse(c, "estimated at " + std::to_string(c.estimate) +
                              " us; the first by estimate that computes the right values is taken");
                continue;
            }
            if (!c.refusal.empty()) {
                refuse(c, c.refusal);
                if (c.isTooLarge && !leftOut_ && options_.log)
                    options_.log->info(where() + ": kernels that need more workspace than " +
                                       std::to_string(options_.workspaceBytes) +
                                       " bytes are left out; IBuilderConfig::setMemoryPoolLimit() with more may make "
                                       "the engine faster");
                leftOut_ = leftOut_ || c.isTooLarge;
                continue;
            }
            auto checked = checker_.check(problems_[size_t(c.group)], *c.kernel, c.tactic->name(), *options_.workers,
                                          c.tactic->roundsToTf32());
            if (!checked.ok()) {
                refuse(c, checked.error().message);
                if (options_.log)
                    options_.log->warning(where() + ": " + checked.error().message + "; the tactic is not used");
                continue;
            }
            // What cannot be compared is not chosen, but for the op's plain tactic: it is the best there is then.
            if (!checked->empty() && !c.isPlain) {
                refuse(c, "it cannot be checked: " + *checked);
                continue;
            }
            if (!checked->empty() && options_.log)
                options_.log->info(where() + ": tactic " + c.tactic->name() + " is used unchecked: " + *checked);
            done[size_t(c.group)] = true;
            good_.push_back(std::move(c));
        }
        // In the order of the op's list, which decides between equals.
        std::vector<ops::Tactic const*> const tactics = candidates(*problem_.node, options_);
        auto rank = [&](Candidate const& c) { return std::find(tactics.begin(), tactics.end(), c.tactic); };
        std::stable_sort(good_.begin(), good_.end(),
                         [&](Candidate const& a, Candidate const& b) { return rank(a) < rank(b); });
    }

    std::vector<Result<plan::Choice>> decide()
    {
        std::vector<Result<plan::Choice>> out;
        std::vector<int> groupOf; // contest's group -> ours
        std::vector<int> position(problems_.size(), -1);
        for (Candidate const& c : good_)
            if (position[size_t(c.group)] < 0) {
                position[size_t(c.group)] = int(groupOf.size());
                groupOf.push_back(c.group);
            }
        std::vector<int> winners(groupOf.size(), -1);
        std::vector<double> times(good_.size(), 0);
        for (size_t i = 0; i < good_.size(); ++i) {
            int& w = winners[size_t(position[size_t(good_[i].group)])];
            w = w < 0 ? int(i) : w;
            times[i] = good_[i].estimate;
        }
        if (!options_.heuristicOnly)
            time(position, winners, times);
        if (options_.selector && !good_.empty()) {
            auto picked = ask(times);
            if (!picked.ok())
                return std::vector<Result<plan::Choice>>(problems_.size(), picked.error());
            restrict(*picked, times, winners, position);
        }
        for (size_t g = 0; g < problems_.size(); ++g) {
            if (position[g] < 0) {
                if (options_.cache && !options_.selector && !good_.empty() && !options_.heuristicOnly)
                    options_.cache->insert(cacheKey(problems_[g], options_), CacheEntry{kNone, {}, 0, {}});
                out.push_back(Error{ErrorCode::kInternal, "could not find any implementation for node " +
                                                              problem_.node->name +
                                                              (leftOut_ ? ". Try increasing the workspace size with "
                                                                          "IBuilderConfig::setMemoryPoolLimit()"
                                                                        : "") +
                                                              ". Candidates:" + refusals_[g]});
                continue;
            }
            size_t const w = size_t(winners[size_t(position[g])]);
            Candidate& c = good_[w];
            std::vector<plan::Rival> const rivals = rivalsOf(g, w, times);
            if (options_.cache && !options_.selector && !options_.heuristicOnly)
                options_.cache->insert(cacheKey(problems_[g], options_),
                                       CacheEntry{c.tactic->id(), c.config, times[w], rivals});
            out.push_back(plan::Choice{c.tactic->id(), c.tactic->name(), c.tactic->version(), c.config,
                                       std::move(c.image), times[w], rivals});
        }
        return out;
    }

    Result<std::vector<int>> ask(std::vector<double> const& times)
    {
        std::vector<Offer> offers;
        for (size_t i = 0; i < good_.size(); ++i) {
            Candidate const& c = good_[i];
            Offer o{ops::formatsOf(problems_[size_t(c.group)]), c.tactic->id(), c.config, times[i], 0};
            if (auto b = checker_.buffers(problems_[size_t(c.group)]); b.ok())
                o.workspaceBytes = c.kernel->workspaceBytes((*b)->inputs, (*b)->outputs);
            offers.push_back(std::move(o));
        }
        return options_.selector->select({problem_, options_.minDims}, offers);
    }
    // Winners among those that the selector picked.
    void restrict(std::vector<int> const& picked, std::vector<double> const& times, std::vector<int>& winners,
                  std::vector<int>& position)
    {
        if (picked.empty())
            return;
        std::fill(winners.begin(), winners.end(), -1);
        for (int i : picked) {
            int& w = winners[size_t(position[size_t(good_[size_t(i)].group)])];
            w = w < 0 || times[size_t(i)] < times[size_t(w)] ? i : w;
        }
        for (size_t g = 0; g < position.size(); ++g)
            if (position[g] >= 0 && winners[size_t(position[g])] < 0) {
                position[g] = -1;
                refusals_[g] += "\n  the algorithm selector chose none of them";
            }
    }

    void time(std::vector<int> const& position, std::vector<int>& winners, std::vector<double>& times)
    {
        for (double& t : times)
            t = 0;
        if (good_.empty() || (good_.size() == 1 && !options_.timeAlways))
            return;
        std::vector<std::unique_ptr<Bench>> benches;
        std::vector<std::unique_ptr<DeviceRun>> deviceRuns;
        std::vector<Contestant> contestants;
        for (Candidate const& c : good_) {
            auto buffers = checker_.buffers(problems_[size_t(c.group)]);
            if (!buffers.ok())
                return; // no memory, no inputs that suit: the first of each list is taken
            if (problem_.cuda) {
                auto run = DeviceRun::create(problems_[size_t(c.group)], *c.kernel, (*buffers)->onDevice);
                if (!run.ok())
                    return;
                deviceRuns.push_back(std::move(*run));
                bool const isAlone =
                    c.tactic->source() != ops::Source::kOwn && problem_.cuda->capability >= kDependentCapability;
                contestants.push_back(Contestant{[r = deviceRuns.back().get(), more = isAlone ? kAlone : 0] {
                                                     Result<double> const us = r->microseconds();
                                                     return Sample{us.ok() ? *us + more : kNever, false};
                                                 },
                                                 position[size_t(c.group)]});
                continue;
            }
            auto bench = Bench::make(*c.kernel, **buffers, *options_.workers, options_.cacheBytes);
            if (!bench.ok())
                return;
            benches.push_back(std::move(*bench));
            contestants.push_back(
                Contestant{[b = benches.back().get()] { return b->run(); }, position[size_t(c.group)]});
        }
        ContestRules rules;
        rules.minRounds = options_.minRounds;
        rules.leastRounds = options_.leastRounds;
        rules.maxRounds = std::max({rules.maxRounds, options_.minRounds, options_.leastRounds});
        rules.budgetMicroseconds = options_.regionMilliseconds * 1000;
        for (Contestant& c : contestants)
            if (options_.runsPerRound > 1)
                c.run = [once = std::move(c.run), n = options_.runsPerRound] { return meanOf(once, n); };
        ContestResult const result = hold(contestants, int(winners.size()), rules);
        for (size_t i = 0; i < good_.size(); ++i) {
            times[i] = result.standings[i].microseconds;
            if (options_.log)
                options_.log->verbose(
                    where() + ": tactic " + good_[i].tactic->name() + ": " + std::to_string(times[i]) + " us, " +
                    std::to_string(result.standings[i].rounds) + " of " + std::to_string(result.rounds) + " rounds" +
                    (options_.runsPerRound > 1 ? " of " + std::to_string(options_.runsPerRound) + " runs"
                                               : std::string()));
        }
        winners = result.winners;
    }

    ops::Problem const& problem_;
    Options const& options_;
    Checker checker_;
    bool leftOut_ = false;               // a kernel, because of its workspace
    std::vector<ops::Problem> problems_; // one for each combination of formats
    std::vector<Candidate> list_, reserve_, good_;
    std::vector<std::string> refusals_;
    std::vector<std::vector<Refused>> unsupported_, rivals_;
};

} // namespace

std::vector<ops::Tactic const*> candidates(ir::Node const& node, Options const& options)
{
    std::vector<ops::Tactic const*> list;
    for (ops::Tactic const* t : ownTactics(node, options.backend))
        if ((options.winograd || !ops::isWinograd(*t)) && (options.tf32 || !t->roundsToTf32()) &&
            (options.sources & bitOf(t->source())))
            list.push_back(t);
    for (ops::TacticProvider const* p : options.providers)
        p->tactics(node, options.backend, list);
    return list;
}

std::string regionKey(ops::Problem const& problem, std::string const& device)
{
    std::string key = device + "|" + (problem.threads > 1 ? std::to_string(problem.threads) + " threads|" : "") +
                      problem.node->op->name + "|";
    for (auto const& f : ir::fieldsOf(*problem.node->attrs)) {
        key += f.name + "=";
        for (int64_t v : f.integers)
            key += std::to_string(v) + ",";
        for (double v : f.reals)
            key += std::to_string(v) + ",";
        key += f.text + ";";
    }
    return key + "|" + typesAndShapes(problem.inputs) + "|" + typesAndShapes(problem.outputs);
}

std::string cacheKey(ops::Problem const& problem, Options const& options)
{
    bool const isCuda = options.backend == ops::Backend::kCuda;
    uint32_t const libraries = isCuda ? options.sources & ~bitOf(ops::Source::kOwn) & kAllSources : 0;
    std::string key =
        regionKey(problem, options.device) + (options.winograd ? "" : "|no winograd") + (options.tf32 ? "|tf32" : "") +
        (options.workspaceBytes < INT64_MAX ? "|workspace " + std::to_string(options.workspaceBytes) : "") +
        (libraries ? "|libraries " + std::to_string(libraries) : "");
    cuda::Target const* target = isCuda ? options.cuda : nullptr;
    if (!target)
        return key;
    if (target->device)
        key += "|driver " + std::to_string(target->device->driver().version());
    if (auto const compiler = target->compiler->get(); compiler.ok())
        key += "|compiler " + std::to_string((*compiler)->version());
    uint32_t seen = bitOf(ops::Source::kOwn);
    for (ops::Tactic const* t : candidates(*problem.node, options))
        if (!(seen & bitOf(t->source()))) {
            seen |= bitOf(t->source());
            key += "|" + ops::versionOf(t->source(), *target);
        }
    return key;
}

std::vector<Result<plan::Choice>> chooseEach(ops::Problem const& problem, std::vector<ops::Formats> const& formats,
                                             Options const& options)
{
    std::vector<Result<plan::Choice>> out;
    std::vector<ops::Formats> missing;
    std::vector<size_t> places;
    std::vector<ops::Tactic const*> const tactics = candidates(*problem.node, options);
    for (size_t g = 0; g < formats.size(); ++g) {
        ops::Problem in = problem;
        ops::setFormats(in, formats[g]);
        out.push_back(internalError("nothing but a plain tactic for these formats"));
        auto const hit = cached(in, options);
        if (hit && (hit->microseconds > 0 || !options.timeAlways))
            for (ops::Tactic const* t : tactics) {
                if (t->id() != hit->tactic || !ops::supportsFormats(*t, in).ok)
                    continue;
                if (auto image = t->build(in, hit->config); image.ok()) {
                    out.back() = plan::Choice{t->id(),           t->name(),         t->version(), hit->config,
                                              std::move(*image), hit->microseconds, hit->rivals};
                    break;
                }
            }
        if (hit && hit->tactic == kNone && formats.size() > 1)
            continue;
        if (!out.back().ok()) {
            missing.push_back(formats[g]);
            places.push_back(g);
        }
    }
    if (missing.empty())
        return out;
    std::vector<Result<plan::Choice>> chosen = Tuner(problem, missing, options).run();
    for (size_t i = 0; i < places.size(); ++i)
        out[places[i]] = std::move(chosen[i]);
    return out;
}

std::optional<CacheEntry> cached(ops::Problem const& problem, Options const& options)
{
    return options.cache && !options.selector ? options.cache->find(cacheKey(problem, options)) : std::nullopt;
}

Result<plan::Choice> choose(ops::Problem const& problem, Options const& options)
{
    return std::move(chooseEach(problem, {ops::formatsOf(problem)}, options)[0]);
}

} // namespace tw::tune
