// SPDX-License-Identifier: Apache-2.0
#include "builder/lowering.h"

#include <algorithm>

#include "builder/target_info.h"
#include "builder/types.h"
#include "device/cuda/target.h"
#include "ir/shape_values.h"
#include "tactic/cpu_isa.h"

namespace tw::builder {

namespace {

// Shape tensors among the outputs, and all that decides shapes, stand on the host. Inputs lie where the client was told.
Result<void> schedule(ir::Graph& graph, plan::Contents const& contents)
{
    for (ir::Value* v : graph.outputs)
        v->host = v->host || std::any_of(contents.io.begin(), contents.io.end(), [&](plan::IoTensor const& t) {
                      return !t.isInput && t.isShapeTensor && t.name == v->name;
                  });
    for (ir::Value const* v : ir::hostValues(graph))
        if (v->producer || v->isConstant())
            const_cast<ir::Value*>(v)->host = true;
    graph.form = ir::Form::kScheduled;
    return ir::verify(graph);
}

} // namespace

passes::PassContext passContext(Options const& options, Log& log)
{
    return {.log = log,
            .target = options.cuda ? describe(*options.cuda) : describe(ops::thisCpu()),
            .refittable = options.refittable,
            .half = options.half,
            .constraints = options.constraints,
            .recipes = options.recipes,
            .int8 = options.int8,
            .ranges = options.ranges.empty() ? nullptr : &options.ranges};
}

Result<std::vector<passes::Alternative>> lower(plan::Contents& contents, Options const& options, Log& log)
{
    passes::Options list = options.passes;
    if (choosesTypes(options))
        list.disabled.push_back(kTypesPass);
    TW_ASSIGN(auto alternatives, passes::run(*contents.graph, passContext(options, log), list));
    TW_TRY(schedule(*contents.graph, contents));
    for (passes::Alternative const& a : alternatives)
        TW_TRY(schedule(*a.graph, contents));
    return alternatives;
}

Result<void> lowerTyped(ir::Graph& graph, Options const& options, Log& log)
{
    passes::Options list = options.passes;
    list.startBehind = kTypesPass;
    list.dumpFolder = nullptr;
    TW_TRY(passes::run(graph, passContext(options, log), list));
    return {};
}

} // namespace tw::builder
