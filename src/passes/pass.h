// SPDX-License-Identifier: Apache-2.0
// Passes rewrite a graph in place. One file each; pipeline.cpp is the list, in order.
#pragma once

#include <string>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "ir/graph.h"

namespace tw::passes {

// What becomes of a precision that the user set for a layer and that it cannot have.
enum class PrecisionConstraints
{
    kIgnore,
    kPrefer, // a warning
    kObey,   // an error
};

struct PassContext
{
    Log& log;
    bool refittable = false; // weights that the user may change later must stay recognizable
    bool half = false;       // FP16 is permitted, and the device is fast at it
    PrecisionConstraints constraints = PrecisionConstraints::kIgnore;
    bool cuda = false;     // the engine is for a GPU
    int64_t bandBytes = 0; // tensors of more are worked off by bands of rows where their maker and reader can; 0: none
    int64_t normBytes = 0; // products of more and the LayerNorm of their rows become one node; 0: none do
};

// Returns whether it changed the graph.
using Run = Result<bool> (*)(ir::Graph& g, PassContext const& ctx);

struct Pass
{
    char const* name; // the file's name
    Run run;
    ir::Form needs; // the graph has at least this form before
    ir::Form gives; // and this one after
    int group = 0;  // neighbours of one group (not 0) run in turn until none of them changes anything
};

// The ordered list.
std::vector<Pass> const& pipeline();

struct Options
{
    std::vector<std::string> disabled;       // by name
    int stopAfter = -1;                      // number of passes to run, repetitions counted; -1: all
    std::string const* dumpFolder = nullptr; // text form after each pass that changed something
    bool verifyEach = true;
};

// Runs the pipeline, on regions too: verifies after each pass that changed something, logs what changed and how long it
// took (verbose).
Result<void> run(ir::Graph& g, PassContext const& ctx, Options const& options = {});

} // namespace tw::passes
