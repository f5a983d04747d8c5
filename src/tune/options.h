// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/extents.h"
#include "base/log.h"
#include "base/tensor.h"
#include "base/workers.h"
#include "tactic/tactic.h"

namespace tw::tune {

// One input of a region somewhere within the engine's range.
struct InputAt
{
    Extents dims;
    TensorRef contents; // of a shape tensor; null data: the input holds anything
};

// Sizes that an engine may be run with beside its optimum, as they reach one region: its kernels are checked there,
// too.
struct Point
{
    std::string where; // for messages: "at the minimum shapes"
    std::vector<InputAt> inputs;
};

class CheckersAhead;
class Eviction;
class Phases;
class Selector;
class TimingCache;

// A source in Options::sources.
constexpr uint32_t bitOf(ops::Source s)
{
    return 1u << int(s);
}

inline constexpr int kMostCandidates = 10;

struct Options
{
    ops::Backend backend = ops::Backend::kCpu;
    ops::Target target; // what problems are for
    std::span<ops::TacticProvider const* const> providers;
    TimingCache* cache = nullptr;    // read and extended; null: none
    std::string device;              // fingerprint, part of cache keys
    int minRounds = 3;               // timing rounds of candidates that are close to each other
    int leastRounds = 1;             // and of what is decided earlier, by other means than being far behind
    int runsPerRound = 1;            // averaged
    double regionMilliseconds = 250; // no more rounds when these have passed
    int64_t cacheBytes = 1 << 20;    // of each worker's own: emptied before each run, as other layers do
    Eviction* eviction = nullptr;    // of these bytes and workers, shared by regions; null: each bench has its own
    bool heuristicOnly = false;      // estimates instead of timing
    bool timeAlways = false;         // a lone candidate too: the time itself is wanted
    Permissions permits = {Permission::kWinograd}; // candidates are tactics that need no more (ops::Traits::needs)
    uint32_t sources = ~0u;                        // bitOf() of those whose tactics are candidates
    int64_t workspaceBytes = INT64_MAX;            // the most that a kernel may need, but for an op's plain one
    Workers* workers = &serialWorkers();           // those that the engine will run on
    Workers* buildWorkers = &serialWorkers();      // those that candidates are built on
    Selector* selector = nullptr;                  // asked for every layer; then the cache is not used
    std::vector<Extents> minDims;                  // of the layer, for the selector
    std::vector<Point> points;                     // where the layer's kernels are checked beside its optimum
    int mostCandidates = kMostCandidates;          // of each combination of formats, by estimate
    Log* log = nullptr;
    Phases* phases = nullptr;          // told what the time is spent on
    CheckersAhead* checkers = nullptr; // has inputs and references of some regions
};

} // namespace tw::tune
