// SPDX-License-Identifier: Apache-2.0
// What is known of an engine's accuracy, as lines and as JSON (docs/quantization.md has the keys).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compare.h"

namespace tw::trtexec {

// A tensor that the engine makes, beside the network's tensor of that meaning in FP32.
struct LayerAccuracy
{
    std::string layer;               // of the engine
    std::vector<std::string> origin; // layers of the network that it came from
    std::string tactic;
    std::string engineTensor;
    std::string tensor; // of the network
    std::string type;   // of the engine's: FP32, FP16, INT8
    Comparison comparison;
    // Of an INT8 tensor: how much of the FP32 tensor's energy lies beyond what its scale can hold.
    std::optional<double> clippedShare;
    std::string reason; // why there is no comparison; empty: there is one
};

// An engine of the search, and what it costs and loses.
struct PrecisionTrial
{
    std::vector<std::string> layers; // in FP32
    double milliseconds = 0;         // the median of a run
    double loss = 0;
    std::string purpose; // "lowest precision", "without one layer", "search", "FP32"
};

struct PrecisionSearch
{
    double maxLoss = 0;
    std::vector<PrecisionTrial> trials; // in the order of the builds
    size_t chosen = 0;
};

struct AccuracyReport
{
    std::vector<LayerAccuracy> layers; // in order of execution
    Tolerance tolerance;
    std::optional<PrecisionSearch> search;
};

// The first layers beyond the tolerance, those that lose most, and how many there are.
std::vector<std::string> accuracyLines(AccuracyReport const& report);
// Of the engines that no other beats in both, the slower the better, and the chosen one.
std::vector<std::string> curveLines(PrecisionSearch const& search);
// Trials that no other one beats in both time and loss, the most accurate last.
std::vector<size_t> paretoCurve(std::vector<PrecisionTrial> const& trials);
std::string accuracyJson(AccuracyReport const& report);

} // namespace tw::trtexec
