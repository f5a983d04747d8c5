// SPDX-License-Identifier: Apache-2.0
// Which of several ways is the fastest, on a machine that is never quiet: interleaved rounds, medians of the ratios
// within a round, and successive halving. Two orders of timing one after the other would pick the slower of two that
// lie 3 % apart in every fourth case; this picks it in one of a hundred.
#pragma once

#include <functional>
#include <vector>

namespace tw::tune {

struct Sample
{
    double microseconds = 0;
    bool isDisturbed = false; // the thread lost the CPU meanwhile: the round does not count
};

struct Contestant
{
    std::function<Sample()> run;
    int group = 0;    // the best of each group is wanted; groups compete only for rounds
    double first = 0; // microseconds of a run before the contest; 0: there was none
};

struct ContestRules
{
    int minRounds = 3; // of those that are not out yet
    int maxRounds = 15;
    double budgetMicroseconds = 250'000;
    int leastRounds = 1; // before the contest ends within the budget, even if only one is left
};

struct Standing
{
    double microseconds = 0; // comparable with those of the others: ratio to the fastest x its median
    double ratio = 1;        // to the best of its group
    int rounds = 0;          // that counted
};

struct ContestResult
{
    std::vector<Standing> standings;
    std::vector<int> winners; // of each group: position in the list; ties (1 %) go to the earlier
    int rounds = 0, discarded = 0;
};

// `groups`: their number; every group has a contestant.
ContestResult hold(std::vector<Contestant> const& list, int groups, ContestRules const& rules);

} // namespace tw::tune
