// SPDX-License-Identifier: Apache-2.0
#include "tune/tuner.h"

#include <algorithm>
#include <climits>
#include <optional>

#include "device/cuda/target.h"
#include "ir/op_def.h"
#include "tactic/tactic.h"
#include "tune/bench.h"
#include "tune/candidates.h"
#include "tune/check.h"
#include "tune/checkers_ahead.h"
#include "tune/contest.h"
#include "tune/device_run.h"
#include "tune/limit.h"
#include "tune/phases.h"
#include "tune/region_key.h"
#include "tune/rivals.h"
#include "tune/selector.h"

namespace tw::tune {

namespace {

constexpr double kNever = 1e12;       // microseconds of a candidate that cannot run
constexpr double kLongToCheck = 1000; // microseconds by estimate, on a CPU
constexpr uint64_t kNone = 0;         // in the cache: a combination of formats that is not worth a choice
// What a library's kernel costs those before and after it, which cannot overlap with it: on an H200 six made ResNet-50 10 us slower.
constexpr double kAlone = 2;
constexpr int kDependentCapability = 90; // of GPUs that have dependent launches
// Of a region's tensors, which a check makes three times over: seconds, and more memory than there may be.
constexpr double kMostForOne = 1 << 30;

std::vector<ops::Problem> inFormats(ops::Problem const& problem, std::vector<ops::Formats> const& formats)
{
    std::vector<ops::Problem> out(formats.size(), problem);
    for (size_t g = 0; g < formats.size(); ++g)
        ops::setFormats(out[g], formats[g]);
    return out;
}

// Tunes one region for several combinations of formats.
class Tuner
{
public:
    Tuner(ops::Problem const& problem, std::vector<ops::Formats> const& formats, Options const& options)
        : problem_(problem), options_(options), checker_(checkerOf(problem, options)),
          problems_(inFormats(problem, formats)), lackedMemory_(formats.size()), rivals_(problems_, options)
    {}

    std::vector<Result<plan::Choice>> run()
    {
        std::vector<Candidate> list = prune(collectCandidates(problems_, options_, rivals_), problems_, reserve_,
                                            rivals_, options_.mostCandidates);
        tryOut(std::move(list));
        // With everything else refused, the plain tactics come back.
        std::vector<Candidate> again, kept;
        for (Candidate& c : reserve_)
            if (std::ranges::none_of(good_, [&](Candidate const& g) { return g.group == c.group; }) &&
                (good_.empty() || problems_.size() == 1)) {
                again.push_back(std::move(c));
            } else {
                rivals_.refuse(c, "held in reserve: generated kernels are there, and it is expected to take longer");
                kept.push_back(std::move(c));
            }
        reserve_ = std::move(kept);
        if (!again.empty())
            tryOut(std::move(again));
        return decide();
    }

private:
    void tryOut(std::vector<Candidate> list)
    {
        if (!isOneByOne(list.size())) {
            keep(build(std::move(list), problems_, options_));
            return;
        }
        for (Candidate& c : list) {
            std::vector<Candidate> one;
            one.push_back(std::move(c));
            keep(build(std::move(one), problems_, options_));
            for (Candidate& g : good_)
                if (g.kernel)
                    timeAlone(g);
        }
    }
    // Each kernel packs its constants, and all of them are there when they are timed against each other. Where that is
    // much memory, they are timed one after the other: what takes so long is told apart without interleaved rounds.
    bool isOneByOne(size_t candidates) const
    {
        constexpr int64_t kMostAtOnce = 192 << 20;
        return !problem_.target.cuda && !options_.heuristicOnly && !options_.selector && candidates > 1 &&
               packedBytes(problem_) > kMostAtOnce / int64_t(candidates);
    }
    void timeAlone(Candidate& c)
    {
        c.isAlone = true;
        if (auto const result = contestOf({&c}, {0}, 1))
            c.microseconds = result->standings[0].microseconds;
        c.kernel.reset();
    }

    // The op's one tactic, which its cases prove, with tensors so large that nothing is worth their making: there is no
    // choice.
    bool isTakenAsIs(Candidate const& c) const
    {
        return c.isPlain && candidates(*problem_.node, options_).size() == 1 && bytesOf(problem_) > kMostForOne;
    }

    // Where the clock chooses and a check costs much (copies, long runs), what it chooses alone is checked on all inputs.
    bool isCheckedLate(std::vector<Candidate> const& list) const
    {
        return !options_.heuristicOnly && !options_.selector && list.size() > 1 &&
               (problem_.target.cuda ||
                std::ranges::all_of(list, [](Candidate const& c) { return c.estimate >= kLongToCheck; }));
    }

    // The kernel is used, though it was not compared or differs: the log says so.
    void report(Candidate const& c, Checked const& checked) const
    {
        if (!options_.log)
            return;
        std::string const isUsed = rivals_.where() + ": tactic " + c.tactic->name() + " is used, though ";
        if (!checked.incomparable.empty())
            options_.log->info("{}it could not be compared: {}", isUsed, checked.incomparable);
        if (!checked.differs.empty())
            options_.log->warning("{}it computes in its type what the reference computes exactly, and differs by "
                                  "more than the layer's tolerance: {}",
                                  isUsed, checked.differs);
    }

    // Whether the kernel is right, as far as it can be told, on these inputs; if not, it is refused.
    bool isRight(Candidate& c, Checker::Sets sets)
    {
        Phases::Scope const phase(options_.phases, "checking kernels");
        auto const checked = checker_->check(problems_[size_t(c.group)], *c.kernel, c.tactic->name(), *options_.workers,
                                             {c.tactic->traits().rounding, c.isPlain}, sets);
        if (!checked.ok()) {
            rivals_.refuse(c, checked.error().message);
            if (checked.error().code == ErrorCode::kFailedAllocation)
                lackedMemory_[size_t(c.group)] = true;
            if (options_.log)
                options_.log->warning("{}: {}; the tactic is not used", rivals_.where(), checked.error().message);
            return false;
        }
        // What cannot be compared is not chosen, but for the op's plain tactic: it is proved by the op's cases.
        if (!checked->incomparable.empty() && !c.isPlain) {
            rivals_.refuse(c, "it cannot be checked: " + checked->incomparable);
            return false;
        }
        report(c, *checked);
        c.checkMicroseconds = std::max(c.checkMicroseconds, checked->microseconds); // of the first set alone
        return true;
    }

    // Those that compute what the reference computes.
    void keep(std::vector<Candidate> built)
    {
        // Estimates decide alone: the first that is right.
        std::vector<bool> done(problems_.size(), false);
        for (Candidate& c : built) {
            if (options_.heuristicOnly && done[size_t(c.group)]) {
                rivals_.refuse(
                    c, fmt::format("estimated at {} us; the first by estimate that computes the right values is taken",
                                   c.estimate));
                continue;
            }
            if (!c.refusal.empty()) {
                rivals_.refuse(c, c.refusal);
                lackedMemory_[size_t(c.group)] = lackedMemory_[size_t(c.group)] || c.lacksMemory;
                if (c.isTooLarge && !leftOut_ && options_.log)
                    options_.log->info("{}: kernels that need more workspace than {} bytes are left out; "
                                       "IBuilderConfig::setMemoryPoolLimit() with more may make the engine faster",
                                       rivals_.where(), options_.workspaceBytes);
                leftOut_ = leftOut_ || c.isTooLarge;
                continue;
            }
            if (isTakenAsIs(c)) {
                report(c, {"it is the only one, and the tensors are larger than 1 GiB", {}});
            } else {
                c.isHalfChecked = isCheckedLate(built);
                if (!isRight(c, c.isHalfChecked ? Checker::Sets::kFirst : Checker::Sets::kAll))
                    continue;
            }
            done[size_t(c.group)] = true;
            good_.push_back(std::move(c));
        }
        // In the order of the op's list, which decides between equals.
        std::vector<ops::Tactic const*> const tactics = candidates(*problem_.node, options_);
        auto rank = [&](Candidate const& c) { return std::ranges::find(tactics, c.tactic); };
        std::ranges::stable_sort(good_, [&](Candidate const& a, Candidate const& b) { return rank(a) < rank(b); });
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
        checkWinners(position, winners, times);
        if (options_.selector && !good_.empty()) {
            auto picked = ask(times);
            if (!picked.ok())
                return std::vector<Result<plan::Choice>>(problems_.size(), picked.error());
            restrict(*picked, times, winners, position);
        }
        for (size_t g = 0; g < problems_.size(); ++g) {
            if (position[g] < 0) {
                bool const isFinal = !lackedMemory_[g]; // memory may be there another time
                if (options_.cache && !options_.selector && !good_.empty() && !options_.heuristicOnly && isFinal)
                    options_.cache->insert(cacheKey(problems_[g], options_), CacheEntry{kNone, {}, 0, {}});
                out.push_back(Error{isFinal ? ErrorCode::kInternal : ErrorCode::kFailedAllocation,
                                    "could not find any implementation for node " + problem_.node->name +
                                        (isFinal ? "" : ": there was not enough memory to try all of them") +
                                        (leftOut_ ? ". Try increasing the workspace size with "
                                                    "IBuilderConfig::setMemoryPoolLimit()"
                                                  : "") +
                                        ". Candidates:" + rivals_.textOf(g)});
                continue;
            }
            size_t const w = size_t(winners[size_t(position[g])]);
            Candidate& c = good_[w];
            std::vector<plan::Rival> const rivals = rivals_.listFor(g, good_, w, times);
            if (options_.cache && !options_.selector && !options_.heuristicOnly)
                options_.cache->insert(cacheKey(problems_[g], options_),
                                       CacheEntry{c.tactic->id(), c.config, times[w], rivals});
            out.push_back(plan::Choice{c.tactic->id(), c.tactic->name(), c.tactic->version(), c.config,
                                       std::move(c.image), times[w], rivals});
        }
        return out;
    }

    // On the other sets of inputs. Where a winner fails, the next one takes its place, at last what is held in reserve.
    void checkWinners(std::vector<int>& position, std::vector<int>& winners, std::vector<double>& times)
    {
        for (size_t g = 0; g < position.size(); ++g) {
            if (position[g] < 0)
                continue;
            int& w = winners[size_t(position[g])];
            while (w >= 0 && good_[size_t(w)].isHalfChecked && !isRight(good_[size_t(w)], Checker::Sets::kOthers)) {
                leaveOut(size_t(w), winners, times);
                w = nextOf(int(g), times);
            }
            w = w < 0 ? reserveOf(int(g), times) : w;
            position[g] = w < 0 ? -1 : position[g];
        }
    }
    void leaveOut(size_t i, std::vector<int>& winners, std::vector<double>& times)
    {
        good_.erase(good_.begin() + int64_t(i));
        times.erase(times.begin() + int64_t(i));
        for (int& w : winners)
            w -= w > int(i);
    }
    int nextOf(int group, std::vector<double> const& times) const
    {
        int next = -1;
        for (size_t i = 0; i < good_.size(); ++i)
            if (good_[i].group == group && (next < 0 || times[i] < times[size_t(next)]))
                next = int(i);
        return next;
    }
    // Its place among the good, to whose end it goes; -1: there is none.
    int reserveOf(int group, std::vector<double>& times)
    {
        std::vector<Candidate> list;
        for (Candidate& c : reserve_)
            if (c.group == group)
                list.push_back(std::move(c));
        std::erase_if(reserve_, [&](Candidate const& c) { return c.group == group; });
        for (Candidate& c : build(std::move(list), problems_, options_)) {
            if (!c.refusal.empty()) {
                rivals_.refuse(c, c.refusal);
            } else if (isRight(c, Checker::Sets::kAll)) {
                times.push_back(c.estimate);
                good_.push_back(std::move(c));
                return int(good_.size()) - 1;
            }
        }
        return -1;
    }

    Result<std::vector<int>> ask(std::vector<double> const& times)
    {
        std::vector<Offer> offers;
        for (size_t i = 0; i < good_.size(); ++i) {
            Candidate const& c = good_[i];
            Offer o{ops::formatsOf(problems_[size_t(c.group)]), c.tactic->id(), c.config, times[i], 0};
            if (auto b = checker_->buffers(problems_[size_t(c.group)]); b.ok())
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
        std::ranges::fill(winners, -1);
        for (int i : picked) {
            int& w = winners[size_t(position[size_t(good_[size_t(i)].group)])];
            w = w < 0 || times[size_t(i)] < times[size_t(w)] ? i : w;
        }
        for (size_t g = 0; g < position.size(); ++g)
            if (position[g] >= 0 && winners[size_t(position[g])] < 0) {
                position[g] = -1;
                rivals_.add(g, "the algorithm selector chose none of them");
            }
    }

    void time(std::vector<int> const& position, std::vector<int>& winners, std::vector<double>& times)
    {
        for (double& t : times)
            t = 0;
        bool const isDone = std::ranges::any_of(good_, [](Candidate const& c) { return c.isAlone; });
        if (good_.empty() || (good_.size() == 1 && ((!options_.timeAlways && !isDone) || isTakenAsIs(good_[0]))))
            return;
        if (isDone) {
            takeTimes(position, winners, times);
            return;
        }
        std::vector<Candidate const*> list;
        std::vector<int> groups;
        for (Candidate const& c : good_) {
            list.push_back(&c);
            groups.push_back(position[size_t(c.group)]);
        }
        auto const result = contestOf(list, groups, int(winners.size()));
        if (!result)
            return; // the first of each list is taken
        for (size_t i = 0; i < good_.size(); ++i)
            times[i] = result->standings[i].microseconds;
        winners = result->winners;
    }
    // Of those that were timed alone.
    void takeTimes(std::vector<int> const& position, std::vector<int>& winners, std::vector<double>& times) const
    {
        if (std::ranges::any_of(good_, [](Candidate const& c) { return c.microseconds <= 0; }))
            return;
        for (size_t i = 0; i < good_.size(); ++i) {
            times[i] = good_[i].microseconds;
            int& w = winners[size_t(position[size_t(good_[i].group)])];
            w = times[i] < times[size_t(w)] ? int(i) : w; // after the first of the group, which stands there
        }
    }

    // None: no memory, no inputs that suit.
    std::optional<ContestResult> contestOf(std::vector<Candidate const*> const& list, std::vector<int> const& groups,
                                           int groupCount)
    {
        Phases::Scope const phase(options_.phases, "timing kernels");
        std::vector<std::unique_ptr<Bench>> benches;
        std::vector<std::unique_ptr<DeviceRun>> deviceRuns;
        std::vector<Contestant> contestants;
        for (size_t i = 0; i < list.size(); ++i) {
            Candidate const& c = *list[i];
            auto buffers = checker_->buffers(problems_[size_t(c.group)]);
            if (!buffers.ok())
                return std::nullopt;
            if (problem_.target.cuda) {
                auto run = DeviceRun::create(problems_[size_t(c.group)], *c.kernel, (*buffers)->onDevice);
                if (!run.ok())
                    return std::nullopt;
                deviceRuns.push_back(std::move(*run));
                bool const isAlone =
                    c.tactic->source() != ops::Source::kOwn && problem_.target.cuda->capability >= kDependentCapability;
                contestants.push_back(
                    Contestant{[r = deviceRuns.back().get(), more = isAlone ? kAlone : 0, n = options_.runsPerRound] {
                                   Result<double> const us = r->microseconds(n);
                                   return Sample{us.ok() ? *us + more : kNever, false};
                               },
                               groups[i]});
                continue;
            }
            auto bench = Bench::make(*c.kernel, **buffers, options_);
            if (!bench.ok())
                return std::nullopt;
            benches.push_back(std::move(*bench));
            contestants.push_back(
                Contestant{[b = benches.back().get()] { return b->run(); }, groups[i], c.checkMicroseconds});
        }
        ContestResult result = hold(contestants, groupCount, rulesFor(list));
        for (size_t i = 0; options_.log && i < list.size(); ++i)
            options_.log->verbose("{}: tactic {}: {}{} us, {} of {} rounds{}", rivals_.where(), list[i]->tactic->name(),
                                  list[i]->estimate > 0 ? fmt::format("estimated at {}, took ", list[i]->estimate) : "",
                                  result.standings[i].microseconds, result.standings[i].rounds, result.rounds,
                                  runsOfRound() > 1 ? fmt::format(" of {} runs", runsOfRound()) : std::string());
        return result;
    }
    // Runs to be averaged are one sample on a GPU, where they follow without gaps. On a CPU each is a round of its own: what
    // is far behind is out after two of them, and the runs of those that last are interleaved with those of the others.
    int runsOfRound() const { return problem_.target.cuda ? options_.runsPerRound : 1; }
    ContestRules rulesFor(std::vector<Candidate const*> const& list) const
    {
        ContestRules rules;
        rules.minRounds = options_.minRounds;
        int64_t const least = int64_t(options_.leastRounds) * (options_.runsPerRound / runsOfRound());
        rules.leastRounds = int(std::min<int64_t>(least, INT_MAX));
        if (list.size() == 1 && list[0]->isAlone) // those that it is compared with have a contest of their own
            rules.leastRounds = std::max(rules.leastRounds, rules.minRounds);
        rules.maxRounds = std::max({rules.maxRounds, rules.minRounds, rules.leastRounds});
        rules.budgetMicroseconds = options_.regionMilliseconds * 1000;
        return rules;
    }

    ops::Problem const& problem_;
    Options const& options_;
    std::shared_ptr<Checker> const checker_;
    bool leftOut_ = false;               // a kernel, because of its workspace
    std::vector<ops::Problem> problems_; // one for each combination of formats
    std::vector<bool> lackedMemory_;     // some candidate of each
    Rivals rivals_;
    std::vector<Candidate> good_;    // that compute what the reference computes
    std::vector<Candidate> reserve_; // plain ones that are not tried while others are there
};

// The user's own code: it is neither timed nor compared.
std::vector<Result<plan::Choice>> takeUntuned(ops::Problem const& problem, std::vector<ops::Formats> const& formats,
                                              std::vector<ops::Tactic const*> const& tactics)
{
    std::vector<Result<plan::Choice>> out;
    for (ops::Formats const& f : formats) {
        ops::Problem in = problem;
        ops::setFormats(in, f);
        auto const at =
            std::ranges::find_if(tactics, [&](ops::Tactic const* t) { return ops::supportsFormats(*t, in).ok; });
        if (at == tactics.end())
            out.push_back(internalError("could not find any implementation for node {}: {}", problem.node->name,
                                        ops::supportsFormats(*tactics.back(), in).reason));
        else
            out.push_back(plan::Choice{(*at)->id(), (*at)->name(), (*at)->version(), {}, {}, 0, {}});
    }
    return out;
}

} // namespace

std::vector<Result<plan::Choice>> chooseEach(ops::Problem const& problem, std::vector<ops::Formats> const& formats,
                                             Options const& options)
{
    std::vector<Result<plan::Choice>> out;
    std::vector<ops::Formats> missing;
    std::vector<size_t> places;
    std::vector<ops::Tactic const*> const tactics = candidates(*problem.node, options);
    if (!tactics.empty() && dynamic_cast<ops::UntunedTactic const*>(tactics.back()))
        return takeUntuned(problem, formats, tactics);
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

} // namespace tw::tune
