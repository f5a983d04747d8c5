// SPDX-License-Identifier: Apache-2.0
// Inputs and references of regions, made on threads of their own while the kernels of earlier regions are compiled, checked and
// timed: where kernels run on a GPU, its host has little else to do.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "tactic/tactic.h"
#include "tune/options.h"

namespace tw::tune {

class Checker;

class CheckersAhead
{
public:
    struct Region
    {
        ops::Problem problem;
        std::vector<Point> points;
    };

    CheckersAhead() = default;
    ~CheckersAhead() { stop(); }
    CheckersAhead(CheckersAhead const&) = delete;
    CheckersAhead& operator=(CheckersAhead const&) = delete;

    // In the order in which they will be asked for. Nodes, constants and contents that they point to stay until stop(). `workers`:
    // the checkers' own, later.
    void start(std::vector<Region> regions, int threads, Workers& workers);
    // Waits for those that have begun, and forgets all that nobody took.
    void stop();
    // The region's checker with all its sets of inputs, waited for where it has begun. Null: it has not, or there is none. It points
    // to what start() was given. Each is given once.
    std::shared_ptr<Checker> take(ops::Problem const& problem, std::span<Point const> points);

private:
    enum class State
    {
        kOpen,
        kRunning,
        kDone,
        kGone, // taken, or left to who asked for it
    };
    struct Job;
    void work();
    std::unique_ptr<Checker> makeChecker(Region const& region) const;

    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<std::shared_ptr<Job>> jobs_;
    std::map<std::string, size_t> places_;
    size_t next_ = 0;
    int64_t heldBytes_ = 0;
    bool isStopped_ = false;
    Workers* workers_ = nullptr;
    std::vector<std::thread> threads_;
};

// The one that options.checkers has of it, else a new one.
std::shared_ptr<Checker> checkerOf(ops::Problem const& problem, Options const& options);

} // namespace tw::tune
