// SPDX-License-Identifier: Apache-2.0
// Calibration: a network runs over batches of the client, and each of its tensors gets the scale that its values ask
// for. Every number is the same for every number of threads.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "calibrate/histogram.h"
#include "calibrate/network.h"
#include "calibrate/table.h"

namespace tw::calibrate {

struct Settings
{
    Algorithm algorithm = Algorithm::kEntropy2;
    bool isFused = false;            // the tensors that are left after the float fusions
    double quantile = 1, cutoff = 1; // of kLegacy: see quantileThreshold()
    int version = 0;                 // for the first lines of caches
};

// Where batches come from.
struct BatchSource
{
    virtual ~BatchSource() = default;
    // Fills the memory of all inputs but shape tensors; false: there are no more batches.
    virtual Result<bool> next(std::vector<Network::Input>& inputs) = 0;
};

struct Clipping
{
    std::string tensor;
    double share = 0; // clippedShare()
};

struct Calibrated
{
    Table table;
    std::string histograms;                  // kLegacy: the text for its histogram cache
    std::vector<std::string> zero, infinite; // tensors without a scale, and why
    std::vector<Clipping> clipped;           // tensors that lose more than kMostClipped, the worst first
};

// `known`: histograms of an earlier calibration, instead of batches.
Result<Calibrated> calibrate(ir::Graph const& graph, plan::Profile const& profile, BatchSource& source,
                             Settings const& settings, NetworkOptions const& options,
                             std::optional<NamedHistograms> known = {});

// Scales by histograms, in their order; `graph`: what kEntropy2 looks into for tensors with one scale.
Table tableOf(NamedHistograms const& histograms, ir::Graph const& graph, Settings const& settings, Workers& workers);

} // namespace tw::calibrate
