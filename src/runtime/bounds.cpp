// SPDX-License-Identifier: Apache-2.0
#include "runtime/bounds.h"

#include <algorithm>

#include "ir/op_def.h"

namespace tw::runtime {

namespace {

// Of a branch that only the run takes: what either gives has room in the larger of the two. Else nothing behind it would have
// sizes, and none of those layers a kernel that was chosen for them.
void boundByBranches(Instance& inst, size_t index)
{
    LoadedStep const& step = inst.block->steps[index];
    if (step.node->op->regions != ir::RegionKind::kBranch)
        return;
    for (size_t i = 0; i < step.outputs.size(); ++i) {
        ValueState& s = inst.values[size_t(step.outputs[i])];
        auto const stateIn = [&](size_t r) -> ValueState const& {
            Instance const& region = *inst.regions[index][r];
            return region.values[size_t(region.block->indexOf(region.block->graph->outputs[i]))];
        };
        ValueState const &a = stateIn(0), &b = stateIn(1);
        if (s.known || !a.known || !b.known || a.dims.rank != b.dims.rank)
            continue;
        s.dims = a.dims;
        for (int d = 0; d < b.dims.rank; ++d)
            s.dims[d] = std::max(s.dims[d], b.dims[d]);
        s.known = true;
        s.exact = false;
    }
}

// What is left: as large as the symbols of its shape can be, where that is not much. A slice, say, whose end is computed of a size
// that data decide.
void boundByRanges(Instance& inst, size_t index)
{
    constexpr int64_t kMostElements = int64_t(1) << 24;
    LoadedStep const& step = inst.block->steps[index];
    for (size_t i = 0; i < step.outputs.size() && step.regions.empty(); ++i) {
        ValueState& s = inst.values[size_t(step.outputs[i])];
        ir::Value const& v = *step.node->outputs[i];
        if (s.known || v.host)
            continue;
        Extents dims;
        int64_t volume = 1;
        for (ir::Dim const& d : v.shape) {
            dims.push(d.range(inst.block->graph->symbols).hi);
            volume = ir::mulSat(volume, std::max<int64_t>(dims[dims.rank - 1], 1));
        }
        if (volume > kMostElements)
            continue;
        s.dims = dims;
        s.known = true;
        s.exact = false;
    }
}

} // namespace

void boundOutputs(Instance& inst, size_t index)
{
    boundByBranches(inst, index);
    boundByRanges(inst, index);
}

} // namespace tw::runtime
