// SPDX-License-Identifier: Apache-2.0
// From an imported graph to the contents of a plan: passes -> shapes of every profile -> tactics -> memory.
#pragma once

#include <string>

#include "base/log.h"
#include "base/result.h"
#include "builder/formats.h"
#include "passes/pass.h"
#include "plan/plan.h"
#include "tune/options.h"

namespace tw::builder {

struct Options
{
    passes::Options passes;
    tune::Options tune;
    std::string fingerprint;                  // of the device that tactics are chosen for
    std::shared_ptr<cuda::Target const> cuda; // the GPU that they are chosen for; null: the CPU
    bool refittable = false;
    recipe::Recipes* recipes = nullptr; // set by build()
    ir::SymbolTable firstProfile;       // set by build(): the symbols' ranges in it
    passes::Ranges ranges;              // of setDynamicRange() and calibration
    passes::PrecisionConstraints constraints = passes::PrecisionConstraints::kIgnore;
    FormatPolicy formats = FormatPolicy::kLeastTime;
    IoFormats io;
    bool keepRivals = true;       // what was not chosen, and why, goes into the plan
    bool shareTimings = true;     // equal layers are tuned once
    double tuningSeconds = 0;     // what timing may take, about; 0: no limit
    int64_t maxMemoryBytes = 0;   // for the tensors of a layer that is tuned, and for an arena; 0: no limit
    double progressSeconds = 0.9; // between two lines about how far the build is
    Log* log = nullptr;
};

// `contents` comes with graph (as imported, outputs named), io, profiles and the engine-wide settings; the build fills
// in the optimized graph and one target. Profiles give symbols of the graph's input shapes their ranges.
Result<void> build(plan::Contents& contents, Options const& options);

} // namespace tw::builder
