// SPDX-License-Identifier: Apache-2.0
// Passes rewrite a graph in place. One file each; pipeline.cpp is the list, in order.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/permissions.h"
#include "base/result.h"
#include "ir/graph.h"
#include "passes/target_info.h"

namespace tw::recipe {
class Recipes;
}

namespace tw::passes {

// What becomes of a precision that the user set for a layer and that it cannot have.
enum class PrecisionConstraints
{
    kIgnore,
    kPrefer, // a warning
    kObey,   // an error
};

// Implicit quantization: by a tensor's name, how much one step of its INT8 numbers stands for (the largest magnitude that
// it must hold, by 127).
using Ranges = std::map<std::string, double>;

struct PassSettings
{
    TargetInfo target = {};
    Permissions permits = {};
    PrecisionConstraints constraints = PrecisionConstraints::kIgnore;
    // Of a refittable engine: which constants the user may change later, and how passes have computed the others of them.
    recipe::Recipes* recipes = nullptr;
    Ranges const* ranges = nullptr; // null: there are none
    // Layers of sums that quantize_ranges leaves in floating point; null: none.
    std::set<std::string> const* floatLayers = nullptr;
    // What the first optimization profile, for which the graph is made, gives symbols; null: what they have in the graph.
    ir::SymbolTable const* firstProfile = nullptr;
    Workers* workers = &serialWorkers(); // what takes long is shared out to them
};
struct PassContext : PassSettings
{
    Log& log;
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
    // Whether it pays is for the clock to say: the graph without it is offered too. Not within a group.
    bool isSpeculative = false;
    // Of a speculative pass: whether the user has decided already, so that the graph without it is not offered.
    bool (*isWanted)(ir::Graph const& g, PassContext const& ctx) = nullptr;
};

// The ordered list.
std::vector<Pass> const& pipeline();

struct Options
{
    std::vector<std::string> disabled;       // by name
    std::string startAt;                     // the pass at which to begin; empty: the first
    std::string stopBefore;                  // the pass in front of which to end; empty: none
    int stopAfter = -1;                      // number of passes to run, repetitions counted; -1: all
    std::string const* dumpFolder = nullptr; // text form after each pass that changed something
    bool verifyEach = true;
    bool givesAlternatives = true; // for speculative passes
};

// A graph that the engine may be made of instead.
struct Alternative
{
    char const* without; // the speculative pass that was left out
    std::unique_ptr<ir::Graph> graph;
    std::unique_ptr<ir::Graph> before; // as the pass found it
};

// Runs the pipeline, on regions too: verifies after each pass that changed something, logs what changed and how long it
// took (verbose). Gives an alternative for each speculative pass that changed something; those after it have run on it,
// too, without logs and dumps.
Result<std::vector<Alternative>> run(ir::Graph& g, PassContext const& ctx, Options const& options = {});

} // namespace tw::passes
