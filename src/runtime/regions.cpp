// SPDX-License-Identifier: Apache-2.0
#include "runtime/regions.h"

#include <algorithm>

#include "base/round.h"
#include "ir/op_def.h"
#include "ops/loop/op.h"
#include "runtime/execute_cuda.h"
#include "runtime/updates.h"

namespace tw::runtime {

namespace {

constexpr int64_t kWorkspaceAlignment = 256; // as plan::planMemory's

int64_t bytesOf(Instance const& inst, ir::Value const* v)
{
    int const i = inst.block->indexOf(v);
    return inst.values[size_t(i)].known ? inst.shapeOf(i).sizeBytes() : 0;
}

} // namespace

std::vector<InputState> regionInputs(ir::Node const& node, std::vector<InputState> const& nodeInputs)
{
    if (node.op->regions == ir::RegionKind::kBranch)
        return {nodeInputs.begin() + 1, nodeInputs.end()};
    auto const& attrs = node.attrsAs<ops::loop::Attrs>();
    ops::loop::Layout const at(attrs);
    std::vector<InputState> inputs;
    for (size_t i = 0; at.inputOf(i) < nodeInputs.size(); ++i) {
        InputState const& whole = nodeInputs[at.inputOf(i)];
        if (i >= at.firstRegionCapture()) {
            inputs.push_back(whole);
            continue;
        }
        InputState part{{}, whole.exact, {}};
        for (int d = 0; d < whole.dims.rank; ++d)
            if (i < at.carried || d != attrs.iteratorAxes[i - at.carried])
                part.dims.push(whole.dims[d]);
        inputs.push_back(part);
    }
    return inputs;
}

bool isFor(Instance const& region, std::span<Extents const> inputs)
{
    auto const& graphInputs = region.block->graph->inputs;
    for (size_t i = 0; i < inputs.size(); ++i) {
        ValueState const& s = region.values[size_t(region.block->indexOf(graphInputs[i]))];
        if (!s.exact || !(s.dims == inputs[i]))
            return false;
    }
    return true;
}

size_t carriedBy(ir::Node const& node, size_t r)
{
    bool const isBody = node.op->regions == ir::RegionKind::kLoop && r == 1;
    return isBody ? size_t(node.attrsAs<ops::loop::Attrs>().carried) : 0;
}

bool conditionSees(ir::Node const& loop, size_t s)
{
    ops::loop::Layout const at(loop.attrsAs<ops::loop::Attrs>());
    ir::Graph const& condition = *loop.regions[0];
    ir::Value const* const slice = condition.inputs[at.carried + s];
    return condition.isOutput(slice) ||
           std::ranges::any_of(condition.nodes, [&](auto const& n) { return contains(n->inputs, slice); });
}

RegionMemory regionMemory(ir::Node const& node, std::span<Instance const* const> regions, int trips)
{
    RegionMemory m;
    m.trips = trips;
    auto take = [&m](int64_t bytes, int count = 1) {
        RegionMemory::Row const row{m.sizeBytes, roundUp(bytes, kWorkspaceAlignment)};
        m.sizeBytes += row.pitch * count;
        return row;
    };
    int64_t arena = 0;
    for (Instance const* r : regions)
        arena = std::max(arena, r ? r->arenaBytes : 0);
    take(arena);
    if (node.op->regions == ir::RegionKind::kBranch || regions.size() < 2 || !regions[1])
        return m;
    auto const& attrs = node.attrsAs<ops::loop::Attrs>();
    ops::loop::Layout const at(attrs);
    Instance const& body = *regions[1];
    ir::Graph const& g = *body.block->graph;
    int const places = std::max(trips, 1);
    m.counter = take(2 * int64_t(sizeof(int32_t))).at;
    m.goesOn = take(1, places);
    for (size_t i = 0; i < at.carried; ++i)
        m.spare.push_back(take(isUpdatedInPlace(body, i) ? 0 : bytesOf(body, g.inputs[i]), places));
    for (size_t s = 0; s < at.iterated; ++s)
        m.slice.push_back(
            take(bytesOf(body, g.inputs[at.carried + s]), places + int(trips > 0 && conditionSees(node, s))));
    for (size_t k = 0; k < at.stacked; ++k)
        m.part.push_back(take(bytesOf(body, g.outputs[at.carried + k]), places));
    return m;
}

OpenRegions::OpenRegions(Instance const& around, size_t step, void* arena)
    : around_(around), index_(step), step_(around.block->steps[step]), planned_(around.regions[step])
{
    int64_t const offset = around.workspaceOffset[step];
    if (offset < 0)
        return;
    auto regions = mapped<Instance const*>(planned_, [&](auto const& r) { return r.get(); });
    workspace_ = at(arena, offset);
    workspaceBytes_ = memoryOf(regions).sizeBytes;
}

RegionMemory OpenRegions::memoryOf(std::span<Instance const* const> regions) const
{
    return regionMemory(node(), regions, tripsOfTurn(around_, index_, regions));
}

Result<bool> OpenRegions::openFor(size_t r, std::vector<Extents> const& dims)
{
    bool const isPlanned = r < planned_.size() && isFor(*planned_[r], dims);
    if (!isPlanned) {
        auto const states = mapped<InputState>(dims, [&](Extents const& d) {
            return InputState{d, true, TensorRef{}};
        });
        TW_SET(late_[r], resolve(*step_.regions[r], states));
        TW_TRY(placeInArena(*late_[r], {.carried = carriedBy(node(), r)}));
    }
    instances_[r] = isPlanned ? planned_[r].get() : late_[r].get();
    return !isPlanned;
}

} // namespace tw::runtime
