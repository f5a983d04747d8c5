// SPDX-License-Identifier: Apache-2.0
#include "builder/chooser.h"

#include <algorithm>

#include "ir/op_def.h"
#include "ir/shape_values.h"
#include "runtime/engine.h"
#include "tune/candidates.h"
#include "tune/region_key.h"
#include "tune/tuner.h"

namespace tw::builder {

namespace {

double secondsSince(std::chrono::steady_clock::time_point t)
{
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - t).count();
}

size_t countSteps(runtime::LoadedBlock const& block)
{
    size_t n = block.steps.size();
    for (runtime::LoadedStep const& step : block.steps)
        for (auto const& region : step.regions)
            n += countSteps(*region);
    return n;
}

// Nothing was measured: the inspector says so.
void markAsEstimates(plan::Choice& c)
{
    c.microseconds = -c.microseconds;
    for (plan::Rival& r : c.rivals)
        r.microseconds = -r.microseconds;
}

} // namespace

Result<plan::Block> Chooser::choose(runtime::LoadedBlock const& block, runtime::Instance const& opt,
                                    runtime::Instance const& max, Terms const& terms)
{
    total_ = countSteps(block);
    done_ = 0;
    return chooseSteps(block, opt, max, terms);
}

Result<plan::Block> Chooser::chooseSteps(runtime::LoadedBlock const& block, runtime::Instance const& opt,
                                         runtime::Instance const& max, Terms const& terms)
{
    plan::Block out;
    for (size_t i = 0; i < block.steps.size(); ++i) {
        runtime::LoadedStep const& step = block.steps[i];
        plan::Step s;
        s.node = int32_t(i);
        for (size_t r = 0; r < step.regions.size(); ++r) {
            TW_ASSIGN(plan::Block region, chooseSteps(*step.regions[r], *opt.regions[i][r], *max.regions[i][r], terms));
            s.regions.push_back(std::move(region));
        }
        if (step.regions.empty()) {
            // Its time is wanted for reports, where there is no choice either.
            bool const isRun = !opt.skipped[i] && !ir::isOnHost(*step.node);
            ops::Problem problem =
                runtime::problemOf(step, opt, max, options_.tune.workers->count(), options_.cuda.get());
            TW_ASSIGN(s.choice, std::move(chooseEach(problem, {ops::formatsOf(problem)}, terms,
                                                     isRun && !terms.isGlance, false)[0]));
            if (options_.tune.heuristicOnly)
                markAsEstimates(s.choice);
            if (options_.tune.selector && !ir::isOnHost(*step.node)) {
                chosen_.push_back(tune::Offer{ops::formatsOf(problem), s.choice.tactic, s.choice.config, 0, 0});
                layers_.push_back({std::move(problem), {}});
                layers_.back().minDims = minDimsOf(layers_.back().problem, terms.minimum);
            }
        }
        ++done_;
        progress();
        out.steps.push_back(std::move(s));
    }
    return out;
}

std::vector<Result<plan::Choice>> Chooser::chooseEach(ops::Problem const& problem,
                                                      std::vector<ops::Formats> const& formats, Terms const& terms,
                                                      bool timeAlways, bool isCost)
{
    std::vector<Result<plan::Choice>> out;
    std::vector<ops::Formats> missing;
    std::vector<std::string> keys;
    bool const onHost = options_.cuda && !problem.target.cuda; // shape arithmetic: on the CPU
    // A selector is asked for every layer, not for what reformats would cost.
    bool const isAsked =
        options_.tune.selector && !ir::isOnHost(*problem.node) && !(isCost && problem.node->op->convertsFormat);
    auto find = [&](std::string const& key) {
        auto const it = known_.find(key);
        if (it == known_.end())
            return it;
        bool const isTimed = it->second.ok() && (it->second->microseconds > 0 || timed_.contains(key));
        bool const fits = it->second.ok() ? isTimed || !timeAlways : formats.size() > 1;
        return fits ? it : known_.end();
    };
    tune::Options tuneOptions = options_.tune;
    tuneOptions.backend = problem.target.cuda ? ops::Backend::kCuda : ops::Backend::kCpu;
    std::vector<tune::Point> points = !terms.points     ? std::vector<tune::Point>{}
                                      : terms.originals ? terms.points->of(originalOf(problem, *terms.originals))
                                                        : terms.points->of(problem);
    for (ops::Formats const& f : formats) {
        ops::Problem in = problem;
        ops::setFormats(in, f);
        keys.push_back((onHost ? "host|" : "") +
                       std::string(isAsked || !options_.shareTimings ? problem.node->name + "|" : "") +
                       tune::choiceKey(in, tuneOptions) + tune::pointsKey(points));
        if (auto const hit = find(keys.back()); hit != known_.end() && hit->second.ok() && !fits(*hit->second, in))
            keys.back() = problem.node->name + "|" + keys.back();
        if (terms.isGlance && find(keys.back()) == known_.end())
            keys.back() = "glance|" + keys.back();
        if (find(keys.back()) == known_.end())
            missing.push_back(f);
    }
    if (!missing.empty()) {
        tuneOptions.timeAlways = timeAlways || isAsked;
        tuneOptions.points = std::move(points);
        if (terms.isGlance)
            tuneOptions.mostCandidates = kGlanceCandidates;
        if (onHost) {
            tuneOptions.cache = nullptr;
            tuneOptions.heuristicOnly = true;
        }
        if (isAsked)
            tuneOptions.minDims = minDimsOf(problem, terms.minimum);
        else
            tuneOptions.selector = nullptr;
        if (options_.tuningSeconds > 0) { // an equal share for each layer that may still come
            double const left = std::max(0.0, options_.tuningSeconds - secondsSince(begin_));
            size_t const layers = total_ > known_.size() ? total_ - known_.size() : 1;
            tuneOptions.regionMilliseconds = std::min(tuneOptions.regionMilliseconds, 1000 * left / double(layers));
        }
        auto chosen = tune::chooseEach(problem, missing, tuneOptions);
        for (size_t g = 0, m = 0; g < formats.size(); ++g)
            if (m < missing.size() && formats[g] == missing[m]) {
                known_.insert_or_assign(keys[g], std::move(chosen[m++]));
                if (timeAlways)
                    timed_.insert(keys[g]);
            }
        progress();
    }
    for (std::string const& key : keys)
        out.push_back(known_.at(key));
    return out;
}

bool Chooser::fits(plan::Choice const& choice, ops::Problem const& problem) const
{
    tune::Options tuneOptions = options_.tune;
    tuneOptions.backend = problem.target.cuda ? ops::Backend::kCuda : ops::Backend::kCpu;
    for (ops::Tactic const* t : tune::candidates(*problem.node, tuneOptions)) {
        if (t->id() != choice.tactic)
            continue;
        if (!ops::supportsFormats(*t, problem).ok)
            return false;
        auto const image = choice.image.empty() ? Result<std::string>(std::string()) : t->build(problem, choice.config);
        return image.ok() && *image == choice.image;
    }
    return false;
}

void Chooser::report() const
{
    if (options_.tune.selector)
        options_.tune.selector->report(layers_, chosen_);
}

std::vector<Extents> Chooser::minDimsOf(ops::Problem const& problem, runtime::Instance const* minimum)
{
    std::vector<Extents> dims;
    auto add = [&](ir::Value const* v, ops::TensorSpec const& spec) {
        bool const known = v && minimum && minimum->block->valueIndex.contains(v);
        dims.push_back(known ? minimum->values[size_t(minimum->block->indexOf(v))].dims : spec.dims);
    };
    for (size_t i = 0; i < problem.inputs.size(); ++i)
        add(problem.node->inputs[i], problem.inputs[i]);
    for (size_t i = 0; i < problem.outputs.size(); ++i)
        add(problem.node->outputs[i], problem.outputs[i]);
    return dims;
}

// About one line a second on long builds.
void Chooser::progress()
{
    if (!options_.log || secondsSince(lastLine_) < options_.progressSeconds)
        return;
    lastLine_ = Clock::now();
    options_.log->info("Building: {} of {} layers done, {} kinds of work timed, {} s", done_, total_, known_.size(),
                       int(secondsSince(begin_)));
}

} // namespace tw::builder
