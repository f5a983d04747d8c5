// SPDX-License-Identifier: Apache-2.0
// An engine: a plan's contents with its kernels loaded, shared by its contexts. What it tells is settled when it is
// loaded; what it runs may be replaced by a refit.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/log.h"
#include "plan/plan.h"
#include "runtime/block.h"
#include "runtime/generation.h"
#include "tactic/panel_order.h"
#include "tactic/tactic.h"

namespace tw::ops {
class PackedConstants;
}

namespace tw::runtime {

struct LoadOptions
{
    std::span<ops::TacticProvider const* const> providers;
    std::string fingerprint; // of this device
    Log* log = nullptr;
    PageKeeper const* pages = nullptr; // told which weights have been read
    // Where weights that kernels read as they are shall stay, when the plan's bytes go; null: in a copy.
    std::function<BlobPtr(Blob const&)> keep;
    // Constants whose data lie in panels: kernels that read these use them where they lie, others get them in order.
    std::map<ir::Value const*, ops::PanelOrder> const* panels = nullptr;
    // Of kernels that were loaded before for the same constants, or will be; null: kernels share among themselves.
    ops::PackedConstants* packed = nullptr;
    std::shared_ptr<void const> keepsGraph;   // what kernels that are loaded need as long as they live
    int threads = 1;                          // that contexts will run on, the caller included
    bool retargets = false;                   // the plan was tuned on another CPU (Engine::load() sees to it)
    bool strictDevice = false;                // refuse plans that were tuned on other devices only
    std::shared_ptr<cuda::Target const> cuda; // runs on that GPU; null: on the CPU
    Workers* workers = &serialWorkers();      // that CPU kernels are loaded on

    ops::Backend backend() const { return cuda ? ops::Backend::kCuda : ops::Backend::kCpu; }
};

// What came of loading kernels.
struct Loaded
{
    int replaced = 0;                   // steps that got another kernel because the planned one cannot run here
    int refused = 0;                    // of these: steps whose planned kernel was tried
    int plain = 0;                      // of these: steps for which there is nothing but the plain kernel
    int retargeted = 0, byEstimate = 0; // kernels for this CPU in place of those for another; with another algorithm
    int inPanels = 0;                   // kernels that use constants where they lie

    void add(Loaded const& other);
    // "3 kernels of the plan cannot run <where>: ..."; what runs in the place of those that were refused.
    std::string inOtherPlaces(std::string const& where) const;
};

class Engine
{
public:
    // Takes the contents over. Choices for another CPU are retargeted (runtime/retarget.h); others that this machine cannot
    // run are replaced by the plain tactic with a warning.
    static Result<std::shared_ptr<Engine>> load(plan::Contents contents, LoadOptions const& options);

    plan::Contents const& contents() const { return contents_; }
    ir::Graph const& graph() const { return *contents_.graph; }
    // Steps, with their tactics, and values, without kernels; those of every generation and profile have the same places.
    LoadedBlock const& block(int profile = 0) const
    {
        return *outlines_[profile < int(outlines_.size()) ? size_t(profile) : 0];
    }
    // What runs now.
    std::shared_ptr<Generation const> generation() const;
    // Makes the next generation, with other elements of some sources, and lets it run from then on; on an error nothing
    // has changed. Safe beside runs and other refits.
    Result<void> refit(NewWeights const& weights, Workers& workers, Log* log);
    // Whether refit() has changed anything since the plan was read.
    bool isRefitted() const { return generation()->recipes != nullptr; }
    plan::Target const& planned() const { return *planned_; }
    // Bytes of a context's arena that suffice for every shape of every profile, before any refit.
    int64_t arenaBytes() const { return arenaBytes_; }
    // Workers that kernels were loaded for: execute() may be given fewer, not more.
    int threads() const { return threads_; }
    // Its weights still lie in the bytes that the plan was read from.
    bool borrowsPlan() const { return contents_.refittable || usesPanels_; }
    // Index into contents().io, -1 when there is none.
    int ioIndex(std::string const& name) const;
    ir::Value const& ioValue(int index) const { return *ioValues_[size_t(index)]; }
    // The GPU that it runs on; null: the CPU.
    cuda::Target const* cuda() const { return cuda_.get(); }

private:
    Engine() = default;
    // `like`: with other weights; kernels that read none of them are shared. Null: the first generation.
    Result<Loaded> loadGeneration(Generation& g, Generation const* like, ir::Graph const& graph,
                                  LoadOptions const& options) const;
    plan::Contents contents_;
    plan::Target const* planned_ = nullptr;
    std::vector<std::unique_ptr<LoadedBlock>> outlines_; // of the contents' graph, as Generation::blocks
    std::shared_ptr<Generation const> generation_;
    mutable std::mutex mutex_; // of generation_
    std::mutex refitting_;     // held as long as one is being made
    LoadOptions again_;        // for the kernels of a refit
    std::vector<ir::Value const*> ioValues_;
    std::map<std::string, int> ioIndex_;
    int64_t arenaBytes_ = 0;
    int threads_ = 1;
    bool usesPanels_ = false;
    std::shared_ptr<cuda::Target const> cuda_;
};

// Blocks of the same graph whose kernels are shared; null: there is none.
struct SharedKernels
{
    LoadedBlock const* like = nullptr;  // with other weights: what reads none of them
    LoadedBlock const* first = nullptr; // of the first profile: of steps without a tactic in `planned`
    // Of the first profile: the other ones' choices. Kernels that any of them shares are made for the bounds of all.
    std::vector<plan::Block const*> users = {};
    Instance const* most = nullptr;
    // Gets the constants in panels that kernels want in the order of their shape: they are given that order when all blocks are
    // loaded. Null: options have no panels.
    std::map<ir::Value*, BlobPtr>* unfolded = nullptr;

    SharedKernels ofRegion(size_t step, size_t region) const;
    bool isUsed(size_t step) const;
};

// Loads the kernels of every step, regions included. `planned` may be null: plain kernels.
Result<Loaded> loadKernels(LoadedBlock& block, plan::Block const* planned, Instance const& opt, Instance const& max,
                           LoadOptions const& options, SharedKernels const& shared = {});

// An error where a kernel of the plan is one of a library that cannot be used here.
Result<void> checkLibraries(LoadedBlock const& block, plan::Block const& planned, LoadOptions const& options);

// The problem that the tuner and load() see for a step, from the dimensions at optimum and maximum.
// `cuda` is what the problem's own CUDA tactics are for.
ops::Problem problemOf(LoadedStep const& step, Instance const& opt, Instance const& max, int threads,
                       cuda::Target const* cuda = nullptr);

} // namespace tw::runtime
