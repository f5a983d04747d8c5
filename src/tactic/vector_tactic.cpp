// SPDX-License-Identifier: Apache-2.0
#include "tactic/vector_tactic.h"

#include <algorithm>

namespace tw::ops {

Support VectorTactic::supports(Problem const& problem) const
{
    TW_SUPPORTS(supportsIsa(*problem.target.cpu, isa_));
    bool fits = !type_ || (!problem.inputs.empty() && problem.inputs[0].type == type_);
    for (TensorSpec const& t : problem.outputs)
        fits = fits && (!type_ || t.type == type_);
    if (!fits)
        return Support::no(std::string("takes ") + nameOf(*type_) + " only");
    return supports_ ? supports_(problem) : Support::yes();
}

Result<std::unique_ptr<Kernel>> VectorTactic::load(Problem const& problem, Config const&, std::string const&) const
{
    auto const& kernels = isa_ == kernels::jit::Isa::kAvx512 ? avx512::kChannelsLast : avx2::kChannelsLast;
    ir::Node const& node = *problem.node;
    auto const run = [&node, &kernels, run = run_](RunArgs& args) {
        return args.outputs[0].count() == 0 ? Result<void>() : run(node, kernels, args);
    };
    return kernelOf(node, run, workspace_);
}

std::vector<Formats> onlyChannelsLast(Problem const& problem)
{
    // A constant is linear, and all that these kernels read first lies by pixels.
    bool const isConstant = !problem.inputs.empty() && problem.inputs[0].constant;
    if (problem.outputs.empty() || problem.outputs[0].dims.rank < 3 || isConstant)
        return {};
    return {channelsLastFormats(problem)};
}

std::vector<Formats> onlyLinear(Problem const& problem)
{
    return {linearFormats(problem)};
}

void inPieces(Workers& workers, int64_t count, int64_t bytes, FunctionRef<void(int64_t begin, int64_t end)> body)
{
    // A piece should last longer than it takes to hand it over (about a microsecond, 32 KiB from L2).
    constexpr int64_t kPieceBytes = 32 << 10;
    int64_t const pieces = std::min({count, bytes / kPieceBytes, int64_t(workers.count()) * 4});
    if (pieces < 2 || workers.count() < 2)
        return body(0, count);
    workers.run(pieces, [&](int64_t part, int) { body(count * part / pieces, count * (part + 1) / pieces); });
}

} // namespace tw::ops
