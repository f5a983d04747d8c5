// SPDX-License-Identifier: Apache-2.0
// Chooses a tactic for each region: candidates -> supported -> checked -> timed -> the fastest. A candidate that
// computes wrong values is never chosen, however fast.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "ops/tactic.h"
#include "plan/plan.h"
#include "tune/selector.h"
#include "tune/timing_cache.h"

namespace tw::tune {

class TimingCache;

// A source in Options::sources.
constexpr uint32_t bitOf(ops::Source s)
{
    return 1u << int(s);
}

struct Options
{
    ops::Backend backend = ops::Backend::kCpu;
    cuda::Target const* cuda = nullptr; // what problems of the CUDA backend are for
    std::span<ops::TacticProvider const* const> providers;
    TimingCache* cache = nullptr;             // read and extended; null: none
    std::string device;                       // fingerprint, part of cache keys
    int minRounds = 3;                        // timing rounds of candidates that are close to each other
    int leastRounds = 1;                      // and of what is decided earlier, by other means than being far behind
    int runsPerRound = 1;                     // averaged
    double regionMilliseconds = 250;          // no more rounds when these have passed
    int64_t cacheBytes = 1 << 20;             // of each worker's own: emptied before each run, as other layers do
    bool heuristicOnly = false;               // estimates instead of timing
    bool timeAlways = false;                  // a lone candidate too: the time itself is wanted
    bool winograd = true;                     // its convolutions are candidates
    bool tf32 = false;                        // so are tactics that round to TF32
    uint32_t sources = ~0u;                   // bitOf() of those whose tactics are candidates
    int64_t workspaceBytes = INT64_MAX;       // the most that a kernel may need, but for an op's plain one
    Workers* workers = &serialWorkers();      // those that the engine will run on
    Workers* buildWorkers = &serialWorkers(); // those that candidates are built on
    Selector* selector = nullptr;             // asked for every layer; then the cache is not used
    std::vector<Extents> minDims;             // of the layer, for the selector
    Log* log = nullptr;
};

// All tactics for a node, best first: the op's own, then the providers'.
std::vector<ops::Tactic const*> candidates(ir::Node const& node, Options const& options);

// What identifies a region in the timing cache: op, attributes, types, shapes.
std::string regionKey(ops::Problem const& problem, std::string const& device);

// regionKey and what else decides between tactics: which are allowed, and on GPUs the versions of driver, compiler and
// of the libraries whose kernels are candidates (a library that is not there yet may be tomorrow).
std::string cacheKey(ops::Problem const& problem, Options const& options);

// The best tactic for each of several combinations of formats, timed against each other so that their times can be
// compared. Combinations with nothing but a plain tactic come out as errors where others have emitted kernels.
std::vector<Result<plan::Choice>> chooseEach(ops::Problem const& problem, std::vector<ops::Formats> const& formats,
                                             Options const& options);

// For the problem's own formats. The error, when no candidate is left, lists why each was refused.
// What the cache says of a problem in its formats.
std::optional<CacheEntry> cached(ops::Problem const& problem, Options const& options);

Result<plan::Choice> choose(ops::Problem const& problem, Options const& options);

} // namespace tw::tune
