// SPDX-License-Identifier: Apache-2.0
// The tactics of a build: what the tuner chose is remembered, so that equal regions are tuned once, unless options say
// otherwise. Keeps the time limit, asks the selector and tells the log how far it is.
#pragma once

#include <chrono>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "builder/build.h"
#include "builder/points.h"
#include "runtime/block.h"
#include "tune/selector.h"

namespace tw::builder {

// Candidates of a glance: estimates find the best one or one close to it among the first few.
inline constexpr int kGlanceCandidates = 3;

class Chooser
{
public:
    // `total`: layers of the graph, those of regions too.
    Chooser(Options const& options, size_t total) : options_(options), total_(total) {}

    // For all steps, those of regions too. Called for each attempt: their blocks differ in layers.
    Result<plan::Block> choose(runtime::LoadedBlock& block, runtime::Instance const& opt, runtime::Instance const& max);
    // `timeAlways`: also where there is no choice.
    std::vector<Result<plan::Choice>> chooseEach(ops::Problem const& problem, std::vector<ops::Formats> const& formats,
                                                 bool timeAlways)
    {
        return chooseEach(problem, formats, timeAlways, timeAlways);
    }
    // Shapes at the minimum of the first profile, for selectors; null: those of the optimum.
    void setMinimum(runtime::Instance const* minimum) { minimum_ = minimum; }
    // Where kernels are checked beside the optimum; null: nowhere.
    void setPoints(ShapePoints const* points) { points_ = points; }
    // Nodes that are posed alone, and those that they stand for: points know the latter.
    void setOriginals(Originals originals) { originals_ = std::move(originals); }
    // At a glance: what nobody has tuned yet is tuned with few candidates, which is remembered apart.
    void setGlance(bool isGlance) { isGlance_ = isGlance; }
    // To the selector: all that was chosen.
    void report() const;

private:
    using Clock = std::chrono::steady_clock;
    Result<plan::Block> chooseSteps(runtime::LoadedBlock& block, runtime::Instance const& opt,
                                    runtime::Instance const& max);
    Result<plan::Choice> choose(ops::Problem const& problem, bool timeAlways);
    // `isCost`: of a reformat that may come to be; a selector is not asked for it.
    std::vector<Result<plan::Choice>> chooseEach(ops::Problem const& problem, std::vector<ops::Formats> const& formats,
                                                 bool timeAlways, bool isCost);
    // Whether what was chosen for an equal region holds for this one in its formats: generated code may rest on more
    // than keys tell, such as the elements of a constant mask.
    bool fits(plan::Choice const& choice, ops::Problem const& problem) const;
    std::vector<Extents> minDimsOf(ops::Problem const& problem) const;
    void progress();

    Options const& options_;
    size_t total_, done_ = 0;
    std::map<std::string, Result<plan::Choice>> known_;
    std::set<std::string> timed_; // of known_: where no time was to be had either, it is not tried again
    runtime::Instance const* minimum_ = nullptr;
    ShapePoints const* points_ = nullptr;
    Originals originals_;
    bool isGlance_ = false;
    std::vector<tune::SelectorLayer> layers_; // chosen for, in execution order
    std::vector<tune::Offer> chosen_;
    Clock::time_point begin_ = Clock::now(), lastLine_ = Clock::now();
};

} // namespace tw::builder
