// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "ops/concatenation/op.h"

namespace tw::ops::concatenation {

namespace {

// Input k is [outer, its bytes behind the axis]; its pieces stand side by side in the output's rows.
Result<void> run(ir::Node const& node, RunArgs& args)
{
    int const axis = node.attrsAs<Attrs>().axis;
    TensorRef const& y = args.outputs[0];
    int64_t const outer = y.dims.volume(0, axis), rowBytes = y.dims.volume(axis, y.dims.rank) * sizeOf(y.type);
    if (y.sizeBytes() == 0)
        return {};
    int64_t before = 0; // bytes of a row that earlier inputs fill
    for (TensorRef const& x : args.inputs) {
        int64_t const bytes = x.dims.volume(axis, x.dims.rank) * sizeOf(x.type);
        for (int64_t r = 0; r < outer && bytes > 0; ++r)
            std::memcpy(y.as<char>() + r * rowBytes + before, x.as<char>() + r * bytes, size_t(bytes));
        before += bytes;
    }
    return {};
}

constexpr PlainTactic kPlain{"concatenation_plain", 1, run};

} // namespace

std::span<Tactic const* const> cpuTactics()
{
    static constexpr Tactic const* kList[] = {&kPlain};
    return kList;
}

} // namespace tw::ops::concatenation
