// SPDX-License-Identifier: Apache-2.0
#include "tactic/reference.h"

#include "ops/plugin/op.h"

namespace tw::ops::plugin {

namespace {

Problem problemOf(RefContext& ctx)
{
    Problem p;
    p.node = &ctx.node();
    auto spec = [](TensorRef const& t) {
        TensorSpec s;
        s.type = t.type;
        s.dims = s.maxDims = t.dims;
        s.present = true;
        return s;
    };
    for (int i = 0; i < ctx.inputCount(); ++i)
        p.inputs.push_back(spec(ctx.in(i)));
    for (int i = 0; i < ctx.outputCount(); ++i)
        p.outputs.push_back(spec(ctx.out(i)));
    return p;
}

} // namespace

// What a plugin means is what it does; there is nothing to compare it with.
Result<void> reference(RefContext& ctx)
{
    auto const& object = ctx.attrs<Attrs>().object;
    if (!object)
        return ctx.error("the plugin itself is not there: its creator makes it when an engine is loaded");
    if (!object->isOnHost())
        return ctx.error("the host needs what the plugin computes on the device, such as a shape; plugins cannot make "
                         "shape tensors");
    Problem const problem = problemOf(ctx);
    TW_ASSIGN(auto kernel, object->load(problem));
    std::vector<TensorRef> in, out;
    for (int i = 0; i < ctx.inputCount(); ++i)
        in.push_back(ctx.in(i));
    for (int i = 0; i < ctx.outputCount(); ++i)
        out.push_back(ctx.out(i));
    Tensor workspace(DataType::kInt8, {kernel->workspaceBytes(in, out)});
    RunArgs args{in, out, workspace.data()};
    return kernel->run(args);
}

} // namespace tw::ops::plugin
