// SPDX-License-Identifier: Apache-2.0
#include "builder/shapes.h"

#include "runtime/engine.h"

namespace tw::builder {

Result<ProfileShapes> resolveProfile(plan::Contents const& contents, runtime::LoadedBlock const& block, size_t p)
{
    ProfileShapes shapes;
    for (runtime::Select s : {runtime::Select::kMin, runtime::Select::kOpt, runtime::Select::kMax}) {
        TW_ASSIGN(auto inputs, runtime::profileInputs(contents, p, s, shapes.storage));
        auto resolved = runtime::resolve(block, inputs);
        if (!resolved.ok())
            return std::move(resolved).error().in("optimization profile " + std::to_string(p) +
                                                  (s == runtime::Select::kMin   ? ", minimum shapes"
                                                   : s == runtime::Select::kOpt ? ", optimum shapes"
                                                                                : ", maximum shapes"));
        shapes.at[int(s)] = std::move(*resolved);
    }
    return shapes;
}

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
            return Error{ErrorCode::kFailedAllocation,
                         "layer '" + node.name + "': building it takes " + mebibytes(bytes) + " (tensor '" +
                             largest->name + "' has " + mebibytes(most) + "), the limit is " + mebibytes(limit) +
                             "; make the optimum shapes of the optimization profile smaller, or build on a machine "
                             "with more memory"};
        for (size_t r = 0; r < inst.regions[i].size(); ++r)
            TW_TRY(checkTuningMemory(*block.steps[i].regions[r], *inst.regions[i][r], limit));
    }
    return {};
}

std::string mebibytes(int64_t bytes)
{
    return std::to_string((bytes + (1 << 20) - 1) >> 20) + " MiB";
}

} // namespace tw::builder
