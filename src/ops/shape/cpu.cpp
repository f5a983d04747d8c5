// SPDX-License-Identifier: Apache-2.0
#include "ops/shape/op.h"
#include "tactic/tactic.h"

namespace tw::ops::shape {

namespace {

Result<void> run(ir::Node const&, RunArgs& args)
{
    auto* y = args.outputs[0].as<int32_t>();
    for (int64_t d : args.inputs[0].dims)
        *y++ = int32_t(d);
    return {};
}

constexpr PlainTactic kPlain{"shape_any_plain_cpu", 1, run};

} // namespace

extern constinit TacticList const cpuTactics = kTactics<kPlain>;

} // namespace tw::ops::shape
