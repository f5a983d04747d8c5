// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/assertion/op.h"

namespace tw::ops::assertion {

namespace {

Result<void> run(ir::Node const& node, RunArgs& args)
{
    TensorRef const& x = args.inputs[0];
    auto const *first = x.as<uint8_t>(), *end = first + x.count();
    auto const* failed = std::find(first, end, uint8_t(0));
    if (failed == end)
        return {};
    std::string const what = node.attrsAs<Attrs>().failure(failed - first, x.count());
    return failedExecution("assertion '" + node.name + "': " + what);
}

constexpr PlainTactic kPlain{"assertion_bool_plain_cpu", 1, run};

} // namespace

extern constinit TacticList const cpuTactics = kTactics<kPlain>;

} // namespace tw::ops::assertion
