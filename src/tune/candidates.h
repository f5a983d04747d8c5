// SPDX-License-Identifier: Apache-2.0
// What takes part in the choice of a region's tactic: every config of every tactic that can do the work, in each of
// several combinations of formats, but for those that by estimate have no chance.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tune/options.h"

namespace tw::tune {

class Rivals;

// All tactics for a node, best first: the op's own, then the providers'.
std::vector<ops::Tactic const*> candidates(ir::Node const& node, Options const& options);

// Whether its tensors have sizes: a layer that is skipped at the optimum (a branch not taken, a loop of no trips) has none there,
// and of its tactics the plain one alone is asked.
bool hasSizes(ops::Problem const& problem);

struct Candidate
{
    ops::Tactic const* tactic = nullptr;
    ops::Config config;
    int group = 0; // position of its problem
    double estimate = 0;
    bool isPlain = false; // closes the op's list: the reserve
    std::string image;
    std::unique_ptr<ops::Kernel> kernel;
    std::string refusal;
    bool isTooLarge = false;      // its workspace is
    bool lacksMemory = false;     // there was none to load it
    bool isAlone = false;         // was timed by itself, and its kernel is gone
    bool isHalfChecked = false;   // on the first set of inputs alone
    double microseconds = 0;      // then; 0: it could not be timed
    double checkMicroseconds = 0; // of its run when it was checked; 0: not known
};

// `problems`: one node, in each combination of formats. What cannot do the work goes to the rivals.
std::vector<Candidate> collectCandidates(std::span<ops::Problem const> problems, Options const& options,
                                         Rivals& rivals);
// Those worth a try by estimate: at most `mostCandidates` of each problem, or where that is fewer than usual, of all of
// them together; unknown ones (0) stay. Plain tactics that are expected to take longer go to `reserve`, the others to the
// rivals.
std::vector<Candidate> prune(std::vector<Candidate> list, std::span<ops::Problem const> problems,
                             std::vector<Candidate>& reserve, Rivals& rivals, int mostCandidates = kMostCandidates);
// Of its constants, which kernels pack.
int64_t packedBytes(ops::Problem const& problem);
// Images and kernels, or why there is none.
std::vector<Candidate> build(std::vector<Candidate> list, std::span<ops::Problem const> problems,
                             Options const& options);

} // namespace tw::tune
