// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "builder/build.h"
#include "builder/chooser.h"
#include "builder/confirm.h"
#include "builder/points.h"
#include "runtime/block.h"
#include "tactic/tactic.h"

namespace tw::builder {

// The best of the graphs and assignments of formats that are worth a try, by the time of the whole engine; its tactics
// are chosen and its kernels loaded. `alternatives`: to the contents' graph.
Result<Attempt> makeBestAttempt(plan::Contents const& contents, std::span<passes::Alternative const> alternatives,
                                Options const& options, Chooser& chooser, Log& log);

// Compiles what the choice of tactics will ask for, and makes what its kernels are checked with (tune/checkers_ahead.h), in the
// order in which it asks, on threads of their own: layers are timed while those are made of later ones. The compiler keeps each source, and who asks for one that is being
// compiled waits for it. Failures show again when the tactic is tried.
class CompileAhead
{
public:
    explicit CompileAhead(Options const& options) : options_(options) {}
    ~CompileAhead(); // what has not begun is left

    // What it is given stays as it is until settle().
    void start(runtime::LoadedBlock const& block, runtime::Instance const& opt, runtime::Instance const& max,
               ShapePoints const& points);
    // The same for nodes in the types that they are tried in.
    void start(runtime::LoadedBlock const& block, runtime::Instance const& opt, runtime::Instance const& max,
               Variants const& variants, Originals const& originals, ShapePoints const& points);
    // Waits for all of it.
    void settle();

private:
    struct Part
    {
        ops::Problem problem;
        ops::Tactic const* tactic = nullptr;
        ops::Config config;
    };
    // A problem whose candidates are wanted; at a glance (chooser.h), or all of them.
    struct Wanted
    {
        ops::Problem problem;
        bool isGlance = false;
    };
    // Each once, in order.
    class WantedList
    {
    public:
        void add(std::string const& key, ops::Problem const& problem, bool isGlance);
        std::vector<Wanted> list;

    private:
        std::map<std::string, size_t> places_;
    };

    void collect(runtime::LoadedBlock const& block, runtime::Instance const& opt, runtime::Instance const& max,
                 WantedList& out) const;
    void collect(runtime::LoadedBlock const& block, Variants const& variants, WantedList& out) const;
    struct Asked
    {
        std::vector<Part> parts;
        bool isOpen = false; // some formats' choice is not known: its kernels will be checked
        std::vector<tune::Point> points;
    };
    Asked asked(Wanted const& wanted, Originals const& originals, ShapePoints const& points) const;
    void addParts(WantedList const& wanted, Originals const& originals, ShapePoints const& points);
    void addReformats(runtime::LoadedBlock const& block, runtime::Instance const& opt, runtime::Instance const& max);
    void startThreads();
    void joinThreads();
    void stopCheckers();
    void report() const;
    void work();
    void count(char const* tactic, double seconds);

    Options const& options_;
    std::vector<std::unique_ptr<ir::Graph>> posed_; // of reformats
    std::vector<Part> parts_;
    int64_t rates_ = 0; // types whose rates are measured later: their kernels come first
    std::atomic<int64_t> next_{0};
    std::vector<std::thread> threads_;
    std::mutex mutex_;
    std::map<std::string, double> seconds_; // of work, by tactic, for the log
};

} // namespace tw::builder
