// SPDX-License-Identifier: Apache-2.0
// A plan in memory, and its bytes. The format is described in docs/formats/plan.md; the schema of its metadata sections
// is plan.fbs. Reading executes nothing from the file and checks every range before use.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/blob.h"
#include "base/extents.h"
#include "base/result.h"
#include "base/workers.h"
#include "dla/layout.h"
#include "ir/graph.h"
#include "tactic/panel_order.h"

namespace tw::plan {

// The tactic chosen for one node. An id of 0: none (regions run step by step; a host node runs on its reference).
struct Rival // a tactic that was not chosen
{
    std::string name;        // with its config and, where they differ, formats
    double microseconds = 0; // as in Choice
    std::string reason;      // why not, in words for the user
    bool operator==(Rival const&) const = default;
};
struct Choice
{
    uint64_t tactic = 0;
    std::string name; // for messages and the inspector
    int32_t version = 0;
    std::vector<int64_t> config;
    std::string image;
    double microseconds = 0; // measured when chosen; 0: not known; below 0: an estimate, negated
    std::vector<Rival> rivals;
    double limitMicroseconds = 0; // what a layer of these sizes takes at least on that device; 0: not known
    std::string lack = {}; // why this is no fast kernel, in words for the user; empty: it is one, or nobody knows
    bool operator==(Choice const&) const = default;
};

// A block runs the nodes of one graph (the network, or a region) in order; a step of a node with regions holds a block
// for each.
struct Block;
struct Step
{
    int32_t node = 0; // position in the block's graph
    Choice choice;
    std::vector<Block> regions;
    bool operator==(Step const&) const;
};
struct Block
{
    std::vector<Step> steps;
    bool operator==(Block const&) const;
};

inline bool Step::operator==(Step const& o) const
{
    return node == o.node && choice == o.choice && regions == o.regions;
}
inline bool Block::operator==(Block const& o) const
{
    return steps == o.steps;
}

// Choices for one kind of device.
struct Target
{
    std::string backend;     // "cpu", "cuda"
    std::string fingerprint; // device and instruction sets that the choices were made on
    Block root;              // of the first optimization profile
    // Of each profile behind it; empty: they run what `root` says. So does a step without a tactic.
    std::vector<Block> others;

    Block const& of(size_t profile) const { return profile == 0 || others.empty() ? root : others.at(profile - 1); }
};

// Shapes (or, for shape tensors, values) of one input under one profile.
struct ProfileRange
{
    Extents min, opt, max;
    bool hasShape = false;
    std::vector<int32_t> minValues, optValues, maxValues;
    bool operator==(ProfileRange const&) const = default;
};
struct Profile
{
    std::map<std::string, ProfileRange> inputs; // by tensor name; static inputs may be missing
    bool operator==(Profile const&) const = default;
};

// How a network input or output is presented to clients.
struct IoTensor
{
    std::string name;
    bool isInput = false;
    bool isShapeTensor = false; // host memory, INT32, its elements decide shapes
    bool isExecution = true;    // its elements are data of the network too
    bool broadcastAcrossBatch = false;
    std::vector<std::string> dimensionNames; // empty strings where none was given; may be shorter than the rank
    // In a format that only DLA has: that, and the dimensions that clients see. The graph's value is the memory of it.
    dla::Layout dlaLayout = dla::Layout::kNone;
    Extents dlaDims;
    bool operator==(IoTensor const&) const = default;
};

struct Contents
{
    std::string engineName;
    std::unique_ptr<ir::Graph> graph; // optimized, form kScheduled; originals of weights
    std::vector<IoTensor> io;         // in binding order (of profile 0)
    std::vector<Profile> profiles;    // at least one
    std::vector<Target> targets;
    bool implicitBatch = false;
    int32_t maxBatchSize = 1;
    bool refittable = false;
    int32_t profilingVerbosity = 0;
    int32_t engineCapability = 0;
    uint32_t tacticSources = 0;
    // Of an engine with layers on (the model of) a DLA.
    dla::Model dlaModel = dla::Model::kNone;
    int32_t dlaCore = 0;
    int32_t dlaLoadables = 0;
    // Constants of `graph` (not of graphs within) that the file holds in panels. With `panelsKept` their data here are
    // in that order too; only what is made to run, by runtime::Engine, wants that.
    std::map<ir::Value const*, ops::PanelOrder> panels;
    bool panelsKept = false;
    // What one step of a value's integers is worth, where that is one known number; for reports, and plugins are told.
    std::map<ir::Value const*, double> scales;
    // Of a refittable plan. A graph without inputs: its constants that name a layer are the weights that refit replaces,
    // its outputs what is computed of them. `made`: constants of `graph`, and of its regions, that such an output is.
    std::unique_ptr<ir::Graph> recipes;
    std::map<ir::Value const*, int32_t> made;
    std::map<std::string, std::string> notes; // builder version, host, ... (nothing runs by them)
};

// The key of the note that says which standard plugin a layer was.
inline std::string pluginNote(std::string const& layer)
{
    return "plugin of layer " + layer;
}

// Deterministic: equal contents give equal bytes.
Result<std::string> write(Contents const& contents);

// Weights borrow from `bytes` when `owner` keeps these alive, else they are copied.
struct ReadOptions
{
    std::shared_ptr<void const> owner;
    PageKeeper const* pages = nullptr;
    Workers* workers = &serialWorkers();
    bool keepPanels = false;    // see Contents::panels; else all constants are in the order of their shape
    bool strictVersion = false; // refuse plans of another TensorRT version as 8.5 does, instead of re-targeting
};
Result<Contents> read(void const* bytes, size_t sizeBytes, ReadOptions const& options = {});

} // namespace tw::plan
