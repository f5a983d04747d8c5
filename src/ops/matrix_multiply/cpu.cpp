// SPDX-License-Identifier: Apache-2.0
#include "ops/matrix_multiply/op.h"
#include "ops/multiply.h"
#include "ops/tactic.h"

namespace tw::ops::matrix_multiply {

namespace {

Result<void> run(ir::Node const& node, RunArgs& args)
{
    multiplyPlain(node.attrsAs<Attrs>(), args.inputs[0], args.inputs[1], args.outputs[0], args.workspace);
    return {};
}

int64_t workspace(ir::Node const& node, std::span<TensorRef const> in, std::span<TensorRef const>)
{
    return multiplyPlainWorkspaceBytes(node.attrsAs<Attrs>(), in[0], in[1]);
}

constexpr PlainTactic kPlain{"matrix_multiply_plain", 1, run, workspace};

} // namespace

std::span<Tactic const* const> cpuTactics()
{
    static constexpr Tactic const* kList[] = {&kPlain};
    return kList;
}

} // namespace tw::ops::matrix_multiply
