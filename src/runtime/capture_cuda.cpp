// SPDX-License-Identifier: Apache-2.0
#include "runtime/capture_cuda.h"

#include <algorithm>

#include "ir/op_def.h"

namespace tw::runtime {

std::string whyNotCaptured(Instance const& instance)
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
            return layer + " is a loop or a conditional, whose way the host decides";
        if (step.host)
            return layer + " computes shapes on the host from values that only the run knows";
        if (!std::all_of(node.outputs.begin(), node.outputs.end(),
                         [&](ir::Value const* v) { return instance.values[size_t(block.indexOf(v))].exact; }))
            return layer + " makes a tensor whose size depends on data";
    }
    return {};
}

} // namespace tw::runtime
