// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine.h"

#include <algorithm>

#include "base/lists.h"
#include "device/cuda/target.h"
#include "device/memory_source.h"
#include "ir/op_def.h"
#include "runtime/constants.h"
#include "runtime/execute_cuda.h"
#include "runtime/profile_shapes.h"
#include "runtime/retarget.h"
#include "tactic/packed_constants.h"

namespace tw::runtime {

namespace {

// Its steps and values, and what runs them, without the kernels.
std::unique_ptr<LoadedBlock> outlineOf(LoadedBlock const& block)
{
    auto outline = outlineBlock(*block.graph);
    for (size_t i = 0; i < block.steps.size(); ++i) {
        outline->steps[i].tactic = block.steps[i].tactic;
        for (size_t r = 0; r < block.steps[i].regions.size(); ++r)
            outline->steps[i].regions[r] = outlineOf(*block.steps[i].regions[r]);
    }
    return outline;
}

bool isStatic(ir::Graph const& g)
{
    return std::ranges::all_of(g.inputs, [](ir::Value const* v) { return ir::isStatic(v->shape) && !v->host; });
}

} // namespace

int Engine::ioIndex(std::string const& name) const
{
    auto it = ioIndex_.find(name);
    return it == ioIndex_.end() ? -1 : it->second;
}

Result<Loaded> Engine::loadGeneration(Generation& g, Generation const* like, ir::Graph const& graph,
                                      LoadOptions const& options) const
{
    size_t const kinds = planned_ && !planned_->others.empty() ? contents_.profiles.size() : 1;
    for (size_t p = 0; p < kinds; ++p)
        g.blocks.push_back(outlineBlock(graph));
    g.arenaBytes = 0;
    TW_ASSIGN(NetworkShapes shapes, resolveProfiles(contents_, g.block()));
    Loaded kernels;
    std::map<ir::Value*, BlobPtr> unfolded;
    for (int p = 0; p < int(kinds); ++p) {
        SharedKernels shared{like ? &like->block(p) : nullptr, p > 0 ? &g.block() : nullptr};
        shared.unfolded = &unfolded;
        if (p == 0 && kinds > 1) {
            shared.users = mapped<plan::Block const*>(planned_->others, [](plan::Block const& b) { return &b; });
            shared.most = &shapes.max();
        }
        auto loaded = loadKernels(g.block(p), planned_ ? &planned_->of(size_t(p)) : nullptr, shapes.opt(size_t(p)),
                                  kinds > 1 ? shapes.max(size_t(p)) : shapes.max(), options, shared);
        auto const& source = device::SourceScope::current();
        if (uint64_t const bytes = source ? source->takeFailure() : 0)
            return failedAllocation(
                "the IGpuAllocator gave no memory for {} bytes of weights, aligned as cudaMalloc does", bytes);
        TW_ASSIGN(Loaded const these, std::move(loaded));
        kernels.add(these);
    }
    for (auto const& [v, plain] : unfolded)
        setData(*v, plain);
    for (size_t p = 0; p < shapes.profiles.size(); ++p) {
        ProfileShapes& profile = shapes.profiles[p];
        moveTo(g.block(int(p)), profile.largest());
        TW_TRY(placeInArena(profile.largest(), {.workers = options.cuda ? &serialWorkers() : options.workers}));
        g.arenaBytes = std::max(g.arenaBytes, profile.largest().arenaBytes);
        if (isStatic(graph)) {
            g.example = std::move(profile.max);
        } else {
            auto& largest = profile.isMaximumValid ? profile.max : profile.opt;
            std::ranges::fill(largest->prepared, nullptr);
            g.largest.push_back(std::move(largest));
        }
    }
    for (int p = 0; options.cuda && p < int(kinds); ++p)
        TW_TRY(uploadConstants(g.block(p), p > 0 ? &g.block() : like ? &like->block() : nullptr, options.cuda->device));
    return kernels;
}

std::shared_ptr<Generation const> Engine::generation() const
{
    std::lock_guard const lock(mutex_);
    return generation_;
}

Result<std::shared_ptr<Engine>> Engine::load(plan::Contents contents, LoadOptions const& given)
{
    LoadOptions options = given;
    std::shared_ptr<Engine> e(new Engine);
    e->threads_ = options.threads;
    e->contents_ = std::move(contents);
    plan::Contents& c = e->contents_;
    TW_TRY(ir::verify(*c.graph));
    for (size_t i = 0; i < c.io.size(); ++i) {
        auto const& list = c.io[i].isInput ? c.graph->inputs : c.graph->outputs;
        auto it = std::ranges::find_if(list, [&](ir::Value const* v) { return v->name == c.io[i].name; });
        if (it == list.end())
            return invalidArgument("the plan lists the tensor '{}', which its graph does not have", c.io[i].name);
        e->ioValues_.push_back(*it);
        if (!e->ioIndex_.emplace(c.io[i].name, int(i)).second)
            return invalidArgument("the plan lists the tensor '{}' twice", c.io[i].name);
    }
    if (c.io.size() != c.graph->inputs.size() + c.graph->outputs.size())
        return invalidArgument("the plan does not list every input and output of its graph");
    std::string tunedOn = c.targets.empty() ? "no device" : c.targets.front().fingerprint;
    bool exactDevice = false;
    for (plan::Target const& t : c.targets) {
        bool const fits = t.fingerprint == options.fingerprint;
        if (t.backend != (options.cuda ? "cuda" : "cpu") || exactDevice || (e->planned_ && !fits))
            continue;
        e->planned_ = &t;
        tunedOn = t.fingerprint;
        exactDevice = fits;
    }
    if (!exactDevice && options.strictDevice)
        return failedInitialization("the plan was generated on an incompatible device, expecting compute " +
                                    options.fingerprint + " got compute " + tunedOn + ", please rebuild");
    if (!exactDevice && e->planned_ && options.log)
        options.log->warning("Using an engine plan across different models of devices may be slow: it was tuned on {}, "
                             "this is {}. Build it here for speed.",
                             tunedOn, options.fingerprint);
    e->cuda_ = options.cuda;
    options.retargets = !exactDevice && !options.cuda;
    if (options.cuda && !e->planned_)
        makeLinear(*c.graph);
    ops::PackedConstants packed;
    options.packed = options.packed ? options.packed : &packed;
    if (c.panelsKept) {
        TW_TRY(unfoldOtherPanels(*c.graph, c.panels, options.cuda != nullptr, *options.packed));
        options.panels = &c.panels;
    }
    Loaded kernels;
    auto const first = std::make_shared<Generation>();
    auto loadAll = [&]() -> Result<void> {
        first->blocks.clear();
        TW_ASSIGN(kernels, e->loadGeneration(*first, nullptr, *c.graph, options));
        first->usesPanels = kernels.inPanels > 0;
        return {};
    };
    if (options.cuda && e->planned_)
        for (size_t p = 0; p <= e->planned_->others.size(); ++p)
            TW_TRY(checkLibraries(*outlineBlock(*c.graph), e->planned_->of(p), options));
    auto loaded = loadAll();
    if (!loaded.ok() && options.cuda && e->planned_) { // such as code for another GPU
        if (options.log)
            options.log->warning("the plan's choices for GPUs cannot be used here: {}", loaded.error().message);
        e->planned_ = nullptr;
        makeLinear(*c.graph);
        loaded = loadAll();
    }
    TW_TRY(std::move(loaded));
    if (!c.refittable)
        releaseConstants(*c.graph, first->blocks, options.keep);
    e->usesPanels_ = first->usesPanels;
    e->arenaBytes_ = first->arenaBytes;
    for (auto const& block : first->blocks)
        e->outlines_.push_back(outlineOf(*block));
    e->generation_ = first;
    if (options.log && kernels.replaced > 0 && !e->planned_)
        options.log->warning(
            "the plan was tuned on {} and has no choices for this device, {}: plain kernels, which are "
            "slow, are used. Build it here for speed.",
            tunedOn, options.fingerprint);
    if (options.log && kernels.refused > 0 && e->planned_)
        options.log->warning("{}; the verbose log says which. Build it here for speed.", kernels.inOtherPlaces("here"));
    if (options.log && kernels.retargeted > 0)
        options.log->info("{} kernels of the plan are for another CPU, and others take their place here: {} of the "
                          "same algorithm for this CPU's instructions, {} of another one by estimate",
                          kernels.retargeted, kernels.retargeted - kernels.byEstimate, kernels.byEstimate);
    static plan::Target const kNoChoices;
    if (!e->planned_)
        e->planned_ = &kNoChoices;
    e->again_ = options;
    e->again_.log = nullptr;
    e->again_.pages = nullptr;
    e->again_.keep = nullptr;
    e->again_.panels = nullptr;
    e->again_.packed = nullptr;
    e->again_.workers = &serialWorkers();
    return e;
}

} // namespace tw::runtime
