// SPDX-License-Identifier: Apache-2.0
#include "ops/nbit_product/nbit_product_params.h"
#include "ops/nbit_product/op.h"
#include "tactic/cuda_tactic.h"

namespace tw::ops::nbit_product {

namespace {

Params paramsOf(Attrs const& a, RunArgs const& args)
{
    auto const given = [&](size_t i) { return i < args.inputs.size() ? args.inputs[i].data : nullptr; };
    Params p{.x = args.inputs[kX].data,
             .w = args.inputs[kWeights].as<uint32_t>(),
             .scales = args.inputs[kScales].data,
             .zeros = given(kZeros),
             .bias = given(kBias),
             .groups = static_cast<int32_t const*>(given(kGroups)),
             .y = args.outputs[0].data};
    p.n = uint64_t(args.inputs[kScales].dims[0]);
    p.k = uint64_t(a.k);
    p.rows = p.n == 0 ? 0 : uint64_t(args.outputs[0].count()) / p.n;
    p.blocks = uint64_t(a.blocks());
    p.words = uint64_t(a.words());
    p.block = uint64_t(a.block);
    return p;
}

std::string constantsOf(Problem const& problem)
{
    return cuda::type("T", cuda::storageOf(problem.inputs[kX].type)) +
           cuda::type("S", cuda::storageOf(problem.inputs[kScales].type)) +
           cuda::constant("kBits", problem.node->attrsAs<Attrs>().bits);
}

constexpr int kThreads = 256;

std::unique_ptr<CudaKernels> plainKernels(Problem const& problem, Config const&)
{
    CudaSource source{.text = constantsOf(problem) + cuda::include("ops/nbit_product/nbit_product.cuh"),
                      .names = {"product"},
                      .wide = isWide(problem),
                      .isDependent = true};
    auto const& a = problem.node->attrsAs<Attrs>();
    return kernelsOf(std::move(source), [&a](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        Params const p = paramsOf(a, args);
        if (p.rows * p.n == 0)
            return {};
        return launch(0, blocksFor(int64_t(p.rows * p.n) * 32, kThreads), kThreads, p);
    });
}

constexpr CudaTactic kPlain{"nbit_product_any_plain_cuda", 1, plainKernels};

} // namespace

extern constinit TacticList const cudaTactics = kTactics<kPlain>;

} // namespace tw::ops::nbit_product
