// SPDX-License-Identifier: Apache-2.0
#include "tune/contest.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace tw::tune {

namespace {

constexpr double kHopelessRun = 10; // a first run so far behind is not repeated,
constexpr double kFirstCut = 2;     // after the warm-up, by the better of two runs
// Runs that take long enough to be cold for a small part alone, of which builds of seconds are made: only those that are
// between these run twice to warm up.
constexpr double kLongRun = 3000; // microseconds
constexpr double kFirstLongCut = 1.2, kHopelessLongRun = 1.6;
constexpr double kLongBudget = 0.5;
constexpr int kLongRounds = 7;          // of runs that are not brief: what is not decided then are ties
constexpr double kVeryLongRun = 10'000; // microseconds: two rounds tell them apart
constexpr int kVeryLongRounds = 2;
constexpr double kBrief = 1000;                     // microseconds: of such runs one that is disturbed looks hopeless
constexpr int kBriefRuns = 6;                       // the best of which counts
constexpr double kCuts[] = {1.5, 1.10, 1.05, 1.03}; // after each stage, by medians
constexpr int kStages[] = {2, 2, 3, 8};             // rounds of each
constexpr double kGroupCut = 1.5;                   // a group that is so far behind gets no more rounds
constexpr int kGroupRounds = 5;                     // before groups are compared
constexpr double kDecided = 1.02;                   // lower quartile by which the second must lose
constexpr int kDecidedRounds = 7;
constexpr double kTie = 1.01;         // a later contestant must win by this
constexpr double kDiscardBudgets = 1; // in which disturbed rounds are played again
constexpr int kMostDiscards = 7;
constexpr double kLeastTime = 1e-3; // microseconds

double quantile(std::vector<double> v, double q)
{
    size_t const k = size_t(q * double(v.size() - 1)); // of two the lower: a spike is never the machine's best
    std::nth_element(v.begin(), v.begin() + int64_t(k), v.end());
    return v[k];
}

class Contest
{
public:
    Contest(std::vector<Contestant> const& list, int groups, ContestRules const& rules)
        : list_(list), groups_(groups), rules_(rules), times_(list.size()), isIn_(list.size(), true)
    {}

    ContestResult hold()
    {
        begin_ = Clock::now();
        warmUp();
        size_t stage = 0;
        int next = kStages[0];
        while (round_ < std::max(rules_.maxRounds, 1) && !outOfTime()) {
            if (!playRound())
                continue;
            if (round_ == next && stage < std::size(kCuts)) {
                cut(kCuts[stage]);
                next += ++stage < std::size(kStages) ? kStages[stage] : rules_.maxRounds;
            }
            if (isDecided() || (isLong_ && round_ >= kLongRounds && round_ >= rules_.leastRounds))
                break;
        }
        return result();
    }

private:
    using Clock = std::chrono::steady_clock;

    double elapsedMicroseconds() const
    {
        return std::chrono::duration<double, std::micro>(Clock::now() - begin_).count();
    }
    bool outOfTime() const
    {
        return elapsedMicroseconds() > rules_.budgetMicroseconds && round_ >= std::max(rules_.minRounds, 1);
    }
    std::vector<int> members(int group) const
    {
        std::vector<int> m;
        for (size_t i = 0; i < list_.size(); ++i)
            if (list_[i].group == group)
                m.push_back(int(i));
        return m;
    }
    // Caches, pages and branch predictors; what is hopeless goes at once.
    void warmUp()
    {
        std::vector<double> first(list_.size());
        for (size_t i = 0; i < list_.size(); ++i)
            first[i] = list_[i].first >= kLongRun ? list_[i].first : list_[i].run().microseconds;
        double const least = std::max(*std::ranges::min_element(first), kLeastTime);
        bool const isLong = least >= kLongRun;
        isLong_ = least >= kBrief;
        double const hopeless = isLong ? kHopelessLongRun : kHopelessRun, limit = isLong ? kFirstLongCut : kFirstCut;
        for (size_t i = 0; i < list_.size(); ++i)
            if (first[i] < hopeless * least && (!isLong || first[i] > limit * least)) // cold against warm: once more
                first[i] = std::min(first[i], list_[i].run().microseconds);
        for (size_t i = 0; i < list_.size(); ++i)
            for (int runs = 2; runs < kBriefRuns && first[i] < kBrief && first[i] > kFirstCut * least; ++runs)
                first[i] = std::min(first[i], list_[i].run().microseconds);
        rules_.budgetMicroseconds *= isLong ? kLongBudget : 1;
        if (least >= kVeryLongRun && rules_.minRounds == ContestRules().minRounds) // nobody asked for more
            rules_.minRounds = kVeryLongRounds;
        for (int g = 0; g < groups_; ++g) {
            double best = INFINITY;
            for (int i : members(g))
                best = std::min(best, first[size_t(i)]);
            for (int i : members(g)) {
                isIn_[size_t(i)] = first[size_t(i)] <= std::max(best, kLeastTime) * limit;
                if (!isIn_[size_t(i)])
                    times_[size_t(i)].push_back(first[size_t(i)]);
            }
        }
    }
    // False when the round does not count.
    bool playRound()
    {
        std::vector<double> t(list_.size(), 0);
        bool disturbed = false;
        for (size_t i = 0; i < list_.size(); ++i) {
            if (!isIn_[i])
                continue;
            Sample const s = list_[i].run();
            t[i] = std::max(s.microseconds, kLeastTime);
            disturbed = disturbed || s.isDisturbed;
        }
        // On a machine that is always disturbed, what there is must do; sooner where a round takes long.
        if (disturbed && discarded_ < kMostDiscards &&
            elapsedMicroseconds() < kDiscardBudgets * rules_.budgetMicroseconds) {
            ++discarded_;
            return false;
        }
        ++round_;
        for (size_t i = 0; i < list_.size(); ++i)
            if (isIn_[i])
                times_[i].push_back(t[i]);
        return true;
    }
    // Of i to j in the rounds that both played: both began with the first.
    std::vector<double> ratios(int i, int j) const
    {
        auto const &a = times_[size_t(i)], &b = times_[size_t(j)];
        std::vector<double> r;
        for (size_t k = 0; k < std::min(a.size(), b.size()); ++k)
            r.push_back(a[k] / b[k]);
        return r;
    }
    double ratio(int i, int j) const { return quantile(ratios(i, j), 0.5); }
    // The member that no other beats.
    int leader(std::vector<int> const& candidates) const
    {
        int best = candidates[0];
        for (int i : candidates)
            if (i != best && ratio(i, best) < 1)
                best = i;
        return best;
    }
    std::vector<int> active(int group) const
    {
        std::vector<int> m = members(group);
        std::erase_if(m, [&](int i) { return !isIn_[size_t(i)]; });
        return m;
    }
    void cut(double limit)
    {
        std::vector<int> leaders;
        for (int g = 0; g < groups_; ++g) {
            std::vector<int> const m = active(g);
            if (m.empty())
                continue;
            int const best = leader(m);
            leaders.push_back(best);
            for (int i : m)
                isIn_[size_t(i)] = ratio(i, best) <= limit;
        }
        if (round_ < kGroupRounds || leaders.empty())
            return;
        int const best = leader(leaders);
        for (int l : leaders)
            if (ratio(l, best) > kGroupCut)
                for (int i : members(list_[size_t(l)].group))
                    isIn_[size_t(i)] = false;
    }
    bool isDecided() const
    {
        if (round_ < rules_.leastRounds)
            return false;
        int left = 0;
        bool const isEarly = round_ < std::max(rules_.minRounds, kDecidedRounds);
        for (int g = 0; g < groups_; ++g) {
            std::vector<int> const m = active(g);
            left += !m.empty();
            if (m.size() < 2)
                continue;
            int const best = leader(m);
            for (int i : m)
                if (i != best && (isEarly || quantile(ratios(i, best), 0.25) < kDecided))
                    return false;
        }
        return left < 2 || round_ >= kGroupRounds;
    }
    ContestResult result() const
    {
        ContestResult out;
        out.rounds = round_;
        out.discarded = discarded_;
        std::vector<int> best(size_t(groups_), -1);
        for (int g = 0; g < groups_; ++g) {
            // Among those that lasted longest; the warm-up alone is no round.
            std::vector<int> m = members(g), lasted = m;
            size_t most = 0;
            for (int i : m)
                most = std::max(most, isIn_[size_t(i)] ? size_t(round_) + 1 : times_[size_t(i)].size());
            std::erase_if(lasted, [&](int i) { return !isIn_[size_t(i)] && times_[size_t(i)].size() < most; });
            std::erase_if(lasted, [&](int i) { return times_[size_t(i)].empty(); });
            if (lasted.empty())
                lasted = {m[0]};
            int winner = leader(lasted);
            for (int i : lasted) // in the order of the list
                if (ratio(i, winner) < kTie) {
                    winner = i;
                    break;
                }
            best[size_t(g)] = winner;
        }
        // The yardstick: the winner with the most rounds, and among those the fastest.
        int yard = best[0];
        for (int w : best)
            if (times_[size_t(w)].size() > times_[size_t(yard)].size() ||
                (times_[size_t(w)].size() == times_[size_t(yard)].size() && ratio(w, yard) < 1))
                yard = w;
        double const unit = quantile(times_[size_t(yard)], 0.5);
        for (size_t i = 0; i < list_.size(); ++i) {
            Standing s;
            s.rounds = int(times_[i].size());
            s.microseconds = unit * ratio(int(i), yard);
            s.ratio = ratio(int(i), best[size_t(list_[i].group)]);
            out.standings.push_back(s);
        }
        out.winners = best;
        return out;
    }

    std::vector<Contestant> const& list_;
    int groups_;
    ContestRules rules_;
    std::vector<std::vector<double>> times_; // of the rounds that count
    std::vector<bool> isIn_;
    int round_ = 0, discarded_ = 0;
    bool isLong_ = false;
    Clock::time_point begin_;
};

} // namespace

ContestResult hold(std::vector<Contestant> const& list, int groups, ContestRules const& rules)
{
    return Contest(list, groups, rules).hold();
}

} // namespace tw::tune
