// SPDX-License-Identifier: Apache-2.0
#include "ops/fill/fill_params.h"
#include "ops/fill/op.h"
#include "tactic/cuda_tactic.h"

namespace tw::ops::fill {

namespace {

constexpr int kThreads = 256;

Result<void> run(Attrs const& a, CudaLaunch const& launch, RunArgs& args)
{
    TensorRef const& y = args.outputs[0];
    auto optional = [&](size_t i) { return i < args.inputs.size() ? args.inputs[i].data : nullptr; };
    Params p;
    p.y = y.data;
    p.alphaInput = optional(1);
    p.betaInput = optional(2);
    p.count = uint64_t(y.count());
    p.alpha = a.alpha;
    p.beta = a.beta;
    p.rank = y.dims.rank;
    for (int d = 0; d < y.dims.rank; ++d)
        p.dim[kMaxRank - y.dims.rank + d] = cuda::divBy(y.dims[d]);
    if (a.operation != Operation::kLinspace && args.randomState) {
        p.state = *args.randomState;
        *args.randomState += p.count * (a.operation == Operation::kRandomNormal ? 2 : 1);
    }
    return launch(0, blocksFor(y.count(), kThreads), kThreads, p);
}

KernelBag generate(Problem const& problem, Config const&)
{
    auto const& a = problem.node->attrsAs<Attrs>();
    DataType const t = problem.outputs[0].type;
    bool const whole = t == DataType::kInt32;
    KernelBag out;
    out.wide = isWide(problem);
    out.names = {"fill"};
    out.source = cuda::type("T", cuda::storageOf(t)) + cuda::type("Number", whole ? "u32" : "double") +
                 cuda::type("Loaded", whole ? "int" : "double") +
                 cuda::flag("kIsLinspace", a.operation == Operation::kLinspace) +
                 cuda::flag("kIsUniform", a.operation == Operation::kRandomUniform) +
                 cuda::include("ops/fill/fill.cuh");
    out.run = [&a](CudaLaunch const& launch, RunArgs& args) { return run(a, launch, args); };
    return out;
}

constexpr CudaTactic kPlain{"fill_any_plain_cuda", 1, generate};

} // namespace

std::span<Tactic const* const> cudaTactics()
{
    static constexpr Tactic const* kList[] = {&kPlain};
    return kList;
}

} // namespace tw::ops::fill
