// SPDX-License-Identifier: Apache-2.0
#include "ops/fill/fill_params.h"
#include "ops/fill/op.h"
#include "tactic/cuda_tactic.h"

namespace tw::ops::fill {

namespace {

std::unique_ptr<CudaKernels> plainKernels(Problem const& problem, Config const&)
{
    auto const& attrs = problem.node->attrsAs<Attrs>();
    DataType const t = problem.outputs[0].type;
    bool const whole = t == DataType::kInt32;
    CudaSource source{.text = cuda::type("T", cuda::storageOf(t)) + cuda::type("Number", whole ? "u32" : "double") +
                              cuda::type("Loaded", whole ? "int" : "double") +
                              cuda::flag("kIsLinspace", attrs.operation == Operation::kLinspace) +
                              cuda::flag("kIsUniform", attrs.operation == Operation::kRandomUniform) +
                              cuda::include("ops/fill/fill.cuh"),
                      .names = {"fill"},
                      .wide = isWide(problem)};
    return kernelsOf(std::move(source), [&attrs](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        TensorRef const& y = args.outputs[0];
        auto optional = [&](size_t i) { return i < args.inputs.size() ? args.inputs[i].data : nullptr; };
        Params p{.y = y.data,
                 .alphaInput = optional(1),
                 .betaInput = optional(2),
                 .count = uint64_t(y.count()),
                 .alpha = attrs.alpha,
                 .beta = attrs.beta,
                 .rank = y.dims.rank};
        for (int d = 0; d < y.dims.rank; ++d)
            p.dim[kMaxRank - y.dims.rank + d] = cuda::divBy(y.dims[d]);
        if (attrs.operation != Operation::kLinspace && args.randomState) {
            p.state = *args.randomState;
            *args.randomState += p.count * (attrs.operation == Operation::kRandomNormal ? 2 : 1);
        }
        return launch.each(0, y.count(), p);
    });
}

constexpr CudaTactic kPlain{"fill_any_plain_cuda", 1, plainKernels};

} // namespace

extern constinit TacticList const cudaTactics = kTactics<kPlain>;

} // namespace tw::ops::fill
