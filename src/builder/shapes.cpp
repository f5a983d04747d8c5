// SPDX-License-Identifier: Apache-2.0
#include "builder/points.h"

namespace tw::builder {

Result<void> checkTuningMemory(runtime::LoadedBlock const& block, runtime::Instance const& inst, int64_t limit)
{
    for (size_t i = 0; i < block.steps.size(); ++i) {
        ir::Node const& node = *block.steps[i].node;
        int64_t bytes = 0, most = -1;
        ir::Value const* largest = nullptr;
        auto count = [&](ir::Value const* v, int64_t copies) {
            if (!v || v->isConstant())
                return;
            runtime::ValueState const& s = inst.values[size_t(block.indexOf(v))];
            int64_t const size = s.known ? TensorRef{v->type, s.dims, nullptr}.sizeBytes() : 0;
            bytes = ir::addSat(bytes, ir::mulSat(copies, size));
            if (size > most) {
                most = size;
                largest = v;
            }
        };
        for (ir::Value const* v : node.inputs)
            count(v, 1);
        for (ir::Value const* v : node.outputs)
            count(v, 2);
        if (bytes > limit)
            return failedAllocation(
                "layer '" + node.name + "': building it takes " + mebibytes(bytes) + " (tensor '" + largest->name +
                "' has " + mebibytes(most) + "), the limit is " + mebibytes(limit) +
                "; make the optimum shapes of the optimization profile smaller, or build on a machine "
                "with more memory");
        for (size_t r = 0; r < inst.regions[i].size(); ++r)
            TW_TRY(checkTuningMemory(*block.steps[i].regions[r], *inst.regions[i][r], limit));
    }
    return {};
}

std::string mebibytes(int64_t bytes)
{
    return fmt::format("{} MiB", (bytes + (1 << 20) - 1) >> 20);
}

} // namespace tw::builder
