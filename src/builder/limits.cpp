// SPDX-License-Identifier: Apache-2.0
#include "builder/limits.h"

#include "ir/shape_values.h"
#include "runtime/engine.h"
#include "tune/limit.h"

namespace tw::builder {

namespace {

void addTo(plan::Block& block, runtime::LoadedBlock const& loaded, runtime::Instance const& opt,
           runtime::Instance const& max, Options const& options, tune::Rates& rates, bool isBusy)
{
    for (size_t i = 0; i < block.steps.size(); ++i) {
        plan::Step& step = block.steps[i];
        runtime::LoadedStep const& from = loaded.steps[i];
        for (size_t r = 0; r < step.regions.size() && r < opt.regions[i].size() && r < max.regions[i].size(); ++r)
            addTo(step.regions[r], *from.regions[r], *opt.regions[i][r], *max.regions[i][r], options, rates, isBusy);
        if (opt.skipped[i])
            step.choice.microseconds = 0;
        if (!step.regions.empty() || opt.skipped[i] || ir::isOnHost(*from.node))
            continue;
        ops::Problem const problem =
            runtime::problemOf(from, opt, max, options.tune.workers->count(), options.cuda.get());
        if (options.cuda && !problem.cuda)
            continue; // on the host, where no clock was asked
        step.choice.limitMicroseconds = tune::limitOf(problem, rates);
        step.choice.lack = tune::lackOf(problem, step.choice, options.tune, isBusy);
    }
}

} // namespace

void addLimits(plan::Block& block, runtime::LoadedBlock const& loaded, runtime::Instance const& opt,
               runtime::Instance const& max, Options const& options, bool isBusy)
{
    if (options.tune.heuristicOnly)
        return;
    tune::Rates rates(options.tune);
    addTo(block, loaded, opt, max, options, rates, isBusy);
}

} // namespace tw::builder
