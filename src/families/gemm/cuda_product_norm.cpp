// SPDX-License-Identifier: Apache-2.0
#include "families/gemm/cuda_product_norm.h"

#include "families/gemm/cuda_gemm_wgmma.h"
#include "families/gemm/cuda_plain_gemm.h"
#include "families/gemm/cuda_product_norm_params.h"
#include "kernels/cuda/common/generate.h"

namespace tw::ops::product_norm {

namespace {

constexpr int kRowsOfBlock = 4;
constexpr int64_t kMostRow = 2048; // 64 numbers of a lane

Params paramsOf(double epsilon, RunArgs const& args)
{
    TensorRef const& y = args.outputs[0];
    Params p;
    p.gamma = args.inputs[Epilogue::kGamma].data;
    p.beta = args.inputs[Epilogue::kBeta].data;
    p.y = y.data;
    p.n = uint64_t(y.dims[y.dims.rank - 1]);
    p.rows = uint64_t(y.count()) / p.n;
    p.epsilon = float(epsilon);
    return p;
}

double epsilonOf(Problem const& problem)
{
    return problem.node->attrsAs<matrix_multiply::Attrs>().epilogue.epsilon;
}

} // namespace

KernelBag generatePlain(Problem const& problem, Config const&)
{
    constexpr int kThreads = 256;
    KernelBag out = multiplyKernels(problem);
    if (!matrix_multiply::hasNorm(*problem.node))
        return out;
    out.source += cuda::include("families/gemm/cuda_product_norm_plain.cuh");
    out.names.push_back("normalize");
    out.run = [product = out.run, epsilon = epsilonOf(problem)](CudaLaunch const& launch,
                                                                RunArgs& args) -> Result<void> {
        TW_TRY(product(launch, args));
        Params const p = paramsOf(epsilon, args);
        return launch(1, int64_t(p.rows), kThreads, p);
    };
    return out;
}

Support supports(Problem const& problem)
{
    if (Support const norm = supportsNorm(problem, true); !norm.ok)
        return norm;
    if (Support const product = gemm_f16::supports(problem, GemmAlgorithm::kHalf); !product.ok)
        return product;
    Extents const& y = problem.outputs[0].maxDims;
    int64_t const n = y[y.rank - 1];
    if (!ir::isStatic(problem.node->outputs[0]->shape) || n % 8 != 0 || n > kMostRow)
        return Support::no("rows have up to " + std::to_string(kMostRow) + " numbers in steps of 8");
    return Support::yes();
}

std::vector<Config> configs(Problem const& problem)
{
    return gemm_f16::configs(problem, GemmAlgorithm::kHalf);
}

// y is read and written once more, at 3.6 TB/s.
double estimate(Problem const& problem, Config const& config)
{
    constexpr double kLaunchUs = 2, kBytesPerUs = 3.6e6;
    return gemm_f16::estimate(problem, config, GemmAlgorithm::kHalf) + kLaunchUs +
           double(problem.outputs[0].dims.volume() * 4) / kBytesPerUs;
}

KernelBag generate(Problem const& problem, Config const& config)
{
    Extents const& y = problem.outputs[0].maxDims;
    KernelBag out = gemm_f16::generate(problem, config, GemmAlgorithm::kHalf);
    if (out.names.empty()) // there is none
        return out;
    out.source += cuda::constant("NORM_UNITS", cuda::ceilDiv(y[y.rank - 1], 256)) +
                  cuda::include("families/gemm/cuda_product_norm_rows.cuh");
    out.names.push_back("normalize");
    out.run = [product = out.run, epsilon = epsilonOf(problem)](CudaLaunch const& launch,
                                                                RunArgs& args) -> Result<void> {
        TW_TRY(product(launch, args));
        Params const p = paramsOf(epsilon, args);
        return launch(1, blocksFor(int64_t(p.rows), kRowsOfBlock), kRowsOfBlock * 32, p);
    };
    return out;
}

} // namespace tw::ops::product_norm
