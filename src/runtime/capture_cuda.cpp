// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>

#include "device/cuda/conditional_nodes.h"
#include "ir/op_def.h"
#include "ops/loop/op.h"
#include "runtime/execute_cuda.h"
#include "runtime/regions.h"
#include "runtime/updates.h"

namespace tw::runtime {

namespace {

// Nodes of a graph: each takes a few KiB and about a microsecond when the graph is made.
constexpr int64_t kMostLaunches = 20'000;

// The element that a step's input has for sure, before anything runs.
std::optional<int64_t> numberOf(Instance const& inst, LoadedStep const& step, size_t input)
{
    int const v = input < step.inputs.size() ? step.inputs[input].value : -1;
    if (v < 0)
        return std::nullopt;
    ir::Value const& value = *inst.block->values[size_t(v)];
    if (value.isConstant())
        return TensorRef{value.type, {}, const_cast<void*>(value.constant->data->data())}.getInt(0);
    if (inst.values[size_t(v)].hasContents)
        return inst.values[size_t(v)].contents.ref().getInt(0);
    return std::nullopt;
}

// Of a loop that takes the same way in every run; nothing: the run decides.
std::optional<int64_t> tripsOf(Instance const& inst, LoadedStep const& step)
{
    ir::Node const& node = *step.node;
    if (node.op->regions != ir::RegionKind::kLoop || !ops::loop::isAlwaysTrue(*node.regions[0]))
        return std::nullopt;
    ops::loop::Layout const at(node.attrsAs<ops::loop::Attrs>());
    for (size_t k = 0; k < at.stacked; ++k)
        if (size_t const i = at.lengthAt(k);
            i < step.inputs.size() && step.inputs[i].value >= 0 && !numberOf(inst, step, i))
            return std::nullopt;
    return numberOf(inst, step, at.count());
}

bool isExact(Instance const& inst, std::vector<ir::Value*> const& values)
{
    return std::ranges::all_of(values,
                               [&](ir::Value const* v) { return inst.values[size_t(inst.block->indexOf(v))].exact; });
}

// Those that a step with regions may run.
std::vector<size_t> regionsOf(Instance const& inst, size_t index)
{
    LoadedStep const& step = inst.block->steps[index];
    bool const onlyBody =
        step.node->op->regions == ir::RegionKind::kLoop && ops::loop::isAlwaysTrue(*step.node->regions[0]);
    return onlyBody ? std::vector<size_t>{1} : std::vector<size_t>{0, 1};
}

std::string whyNotCapturedRegions(Instance const& inst, size_t index, bool hasNodes)
{
    LoadedStep const& step = inst.block->steps[index];
    std::string const layer = "layer '" + step.node->name + "'";
    bool const isOnDevice = isDecidedOnDevice(inst, index);
    if (isOnDevice && !hasNodes)
        return layer + " is a loop or a conditional, whose way the host decides";
    for (size_t const r : regionsOf(inst, index)) {
        Instance const& region = *inst.regions[index][r];
        auto const& g = *region.block->graph;
        if (!isExact(region, g.inputs) || (isOnDevice && !isExact(region, {g.outputs.begin(), g.outputs.end()})))
            return layer + " is a loop or a conditional over tensors whose size depends on data";
        if (std::string why = whyNotCaptured(region, hasNodes); !why.empty())
            return why;
    }
    return {};
}

} // namespace

bool isDecidedOnDevice(Instance const& inst, size_t index)
{
    return !inst.block->steps[index].regions.empty() && !tripsOf(inst, inst.block->steps[index]);
}

bool hasDecisionsOnDevice(Instance const& inst)
{
    for (size_t i = 0; i < inst.block->steps.size(); ++i) {
        if (inst.skipped[i])
            continue;
        if (isDecidedOnDevice(inst, i))
            return true;
        for (auto const& region : inst.regions[i])
            if (hasDecisionsOnDevice(*region))
                return true;
    }
    return false;
}

std::string whyNotCaptured(Instance const& instance, bool hasNodes)
{
    LoadedBlock const& block = *instance.block;
    for (ir::Value const* v : block.graph->outputs)
        if (v->host)
            return "output '" + v->name + "' is a shape tensor, which the host delivers";
    for (size_t i = 0; i < block.steps.size(); ++i) {
        if (instance.skipped[i])
            continue;
        LoadedStep const& step = block.steps[i];
        ir::Node const& node = *step.node;
        std::string const layer = "layer '" + node.name + "'";
        if (!node.regions.empty())
            if (std::string why = whyNotCapturedRegions(instance, i, hasNodes); !why.empty())
                return why;
        if (step.host)
            return layer + " computes shapes on the host from values that only the run knows";
        if (!isExact(instance, node.outputs))
            return layer + " makes a tensor whose size depends on data";
    }
    return {};
}

int64_t launchesOf(Instance const& instance)
{
    int64_t launches = 0;
    for (size_t i = 0; i < instance.block->steps.size(); ++i) {
        if (instance.skipped[i])
            continue;
        LoadedStep const& step = instance.block->steps[i];
        int64_t own = 1;
        if (!step.regions.empty()) {
            auto const trips = tripsOf(instance, step);
            auto const results = int64_t(step.node->regions[1]->outputs.size() + step.inputs.size());
            int64_t once = results;
            for (size_t const r : regionsOf(instance, i))
                once = ir::addSat(once, launchesOf(*instance.regions[i][r]));
            own = ir::mulSat(trips ? std::max<int64_t>(*trips, 0) : 1, once);
        }
        launches = ir::addSat(launches, own);
    }
    return launches;
}

bool isStateful(ir::Graph const& g)
{
    return std::ranges::any_of(g.nodes, [](auto const& n) {
        return (n->op->stateful && n->op->stateful(*n)) ||
               std::ranges::any_of(n->regions, [](auto const& r) { return isStateful(*r); });
    });
}

namespace {

// Whether a loop is in there that could take any number of trips with values that no run has asked for.
bool mayTakeLong(Instance const& inst)
{
    for (size_t i = 0; i < inst.block->steps.size(); ++i) {
        if (inst.skipped[i])
            continue;
        if (inst.block->steps[i].node->op->regions == ir::RegionKind::kLoop && isDecidedOnDevice(inst, i))
            return true;
        for (auto const& region : inst.regions[i])
            if (mayTakeLong(*region))
                return true;
    }
    return false;
}

int64_t bytesOf(Instance const& inst, std::vector<ir::Value*> const& values, size_t count)
{
    int64_t bytes = 0;
    for (size_t i = 0; i < count; ++i)
        if (int const v = inst.block->indexOf(values[i]); inst.values[size_t(v)].known)
            bytes = ir::addSat(bytes, inst.shapeOf(v).sizeBytes());
    return bytes;
}

} // namespace

int tripsOfTurn(Instance const& instance, size_t step, std::span<Instance const* const> regions)
{
    constexpr int64_t kShort = 8;           // launches
    constexpr int64_t kSmall = 1024 * 1024; // bytes, of which there are as many as trips
    LoadedStep const& s = instance.block->steps[step];
    if (s.node->op->regions != ir::RegionKind::kLoop || !isDecidedOnDevice(instance, step))
        return 0;
    if (regions.size() < 2 || !regions[1])
        return 1;
    Instance const& body = *regions[1];
    ir::Graph const& g = *body.block->graph;
    for (size_t i = 0; i < carriedBy(*s.node, 1); ++i)
        if (isOverwritten(body, i))
            return 1;
    bool const counts = ops::loop::isAlwaysTrue(*s.node->regions[0]);
    int64_t const launches = ir::addSat(launchesOf(body), counts || !regions[0] ? 0 : launchesOf(*regions[0]));
    ops::loop::Layout const at(s.node->attrsAs<ops::loop::Attrs>());
    int64_t const bytes =
        ir::addSat(bytesOf(body, g.inputs, at.firstRegionCapture()), bytesOf(body, g.outputs, g.outputs.size()));
    bool const isShort = launches <= kShort && bytes <= kSmall && !isStateful(g) && !mayTakeLong(body) &&
                         (counts || (regions[0] && !mayTakeLong(*regions[0])));
    return isShort ? cuda::kMostTripsOfTurn : 1;
}

bool isWorthCapture(Instance const& instance, bool hasNodes)
{
    constexpr int kLeastLaunches = 3; // from which one launch is cheaper than theirs
    if (!whyNotCaptured(instance, hasNodes).empty() || isStateful(*instance.block->graph))
        return false;
    int64_t const launches = launchesOf(instance);
    return launches >= kLeastLaunches && launches <= kMostLaunches;
}

} // namespace tw::runtime
