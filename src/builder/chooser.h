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
    // What choices go by beside their problems.
    struct Terms
    {
        // Shapes at the minimum of the first profile, for selectors; null: those of the optimum.
        runtime::Instance const* minimum = nullptr;
        ShapePoints const* points = nullptr;  // where kernels are checked beside the optimum; null: nowhere
        Originals const* originals = nullptr; // of nodes that are posed alone: points know those that they stand for
        bool isGlance = false; // what nobody has tuned yet is tuned with few candidates, which is remembered apart
    };
    // `total`: layers of the graph, those of regions too.
    Chooser(Options const& options, size_t total) : options_(options), total_(total) {}

    // For all steps, those of regions too. Called for each attempt: their blocks differ in layers.
    Result<plan::Block> choose(runtime::LoadedBlock const& block, runtime::Instance const& opt,
                               runtime::Instance const& max, Terms const& terms);
    // Timed also where there is no choice.
    std::vector<Result<plan::Choice>> chooseEach(ops::Problem const& problem, std::vector<ops::Formats> const& formats,
                                                 Terms const& terms)
    {
        return chooseEach(problem, formats, terms, true, true);
    }
    // To the selector: all that was chosen.
    void report() const;

private:
    using Clock = std::chrono::steady_clock;
    Result<plan::Block> chooseSteps(runtime::LoadedBlock const& block, runtime::Instance const& opt,
                                    runtime::Instance const& max, Terms const& terms);
    // `isCost`: of a reformat that may come to be; a selector is not asked for it.
    std::vector<Result<plan::Choice>> chooseEach(ops::Problem const& problem, std::vector<ops::Formats> const& formats,
                                                 Terms const& terms, bool timeAlways, bool isCost);
    // Whether what was chosen for an equal region holds for this one in its formats: generated code may rest on more
    // than keys tell, such as the elements of a constant mask.
    bool fits(plan::Choice const& choice, ops::Problem const& problem) const;
    static std::vector<Extents> minDimsOf(ops::Problem const& problem, runtime::Instance const* minimum);
    void progress();

    Options const& options_;
    size_t total_, done_ = 0;
    std::map<std::string, Result<plan::Choice>> known_;
    std::set<std::string> timed_;             // of known_: where no time was to be had either, it is not tried again
    std::vector<tune::SelectorLayer> layers_; // chosen for, in execution order
    std::vector<tune::Offer> chosen_;
    Clock::time_point begin_ = Clock::now(), lastLine_ = Clock::now();
};

} // namespace tw::builder
