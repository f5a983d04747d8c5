// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "plan/plan.h"
#include "tune/candidates.h"

namespace tw::tune {

// A tactic with its config, as rivals are named.
std::string nameWithConfig(std::string name, ops::Config const& config);

// The candidates that were not chosen, and why.
class Rivals
{
public:
    // `problems`: one node, in each combination of formats (a group of candidates each); they and `options` live
    // longer.
    Rivals(std::span<ops::Problem const> problems, Options const& options);

    // `isUnsupported`: there is nothing to build, which in other formats is no news.
    void refuse(Candidate const& candidate, std::string const& why, bool isUnsupported = false);
    // One more line for the text of a group.
    void add(size_t group, std::string const& line) { texts_[group] += "\n  " + line; }
    // What was refused in a group and why, a line each.
    std::string const& textOf(size_t group) const { return texts_[group]; }
    // For the choice of good[winner] in its group: the other good ones, fastest first, then those that were refused;
    // what works in the formats of other groups with those.
    std::vector<plan::Rival> listFor(size_t group, std::vector<Candidate> const& good, size_t winner,
                                     std::vector<double> const& times) const;
    // The layer, for messages.
    std::string where() const;

private:
    struct Refused
    {
        std::string name, nameWithFormats, why;
        int group = 0;
    };
    std::span<ops::Problem const> problems_;
    Options const& options_;
    std::vector<std::string> texts_;
    std::vector<std::vector<Refused>> unsupported_, refused_;
};

} // namespace tw::tune
