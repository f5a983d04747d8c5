// SPDX-License-Identifier: Apache-2.0
// Chooses a tactic for each region: candidates -> supported -> checked -> timed -> the fastest. A candidate that
// computes wrong values is never chosen, however fast.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "ops/tactic.h"
#include "plan/plan.h"

namespace tw::tune {

class TimingCache;

struct Options
{
    ops::Backend backend = ops::Backend::kCpu;
    cuda::Target const* cuda = nullptr; // what problems of the CUDA backend are for
    std::span<ops::TacticProvider const* const> providers;
    TimingCache* cache = nullptr;        // read and extended; null: none
    std::string device;                  // fingerprint, part of cache keys
    int rounds = 5;                      // interleaved timing rounds
    bool heuristicOnly = false;          // estimates instead of timing
    bool timeAlways = false;             // a lone candidate too: the time itself is wanted
    bool winograd = true;                // its convolutions are candidates
    Workers* workers = &serialWorkers(); // those that the engine will run on
    Log* log = nullptr;
};

// All tactics for a node, best first: the op's own, then the providers'.
std::vector<ops::Tactic const*> candidates(ir::Node const& node, Options const& options);

// What identifies a region in the timing cache: op, attributes, types, shapes.
std::string regionKey(ops::Problem const& problem, std::string const& device);

// The error, when no candidate is left, lists why each was refused.
Result<plan::Choice> choose(ops::Problem const& problem, Options const& options);

} // namespace tw::tune
