// SPDX-License-Identifier: Apache-2.0
#include "families/gemm/cuda_product_norm.h"

#include "families/gemm/cuda_gemm_wgmma.h"
#include "families/gemm/cuda_plain_gemm_params.h"
#include "kernels/cuda/common/generate.h"

namespace tw::ops::product_norm {

namespace {

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

// The product's source, and the kernel `normalize` after its own.
CudaSource withNorm(CudaSource product, std::string const& text)
{
    product.text += text;
    product.names.push_back("normalize");
    return product;
}

class ThenNorm final : public CudaKernels
{
public:
    // `text`: of normalize(), whose blocks have so many rows each.
    ThenNorm(Problem const& problem, std::unique_ptr<CudaKernels> product, std::string const& text, int rowsOfBlock,
             int threads)
        : CudaKernels(withNorm(product->source(), text)), product_(std::move(product)), epsilon_(epsilonOf(problem)),
          rowsOfBlock_(rowsOfBlock), threads_(threads)
    {
        product_->dropText();
    }
    Result<void> run(CudaLaunch const& launch, RunArgs& args) const override
    {
        TW_TRY(product_->run(launch, args));
        Params const p = paramsOf(epsilon_, args);
        int const normalize = int(product_->source().names.size());
        return launch(normalize, blocksFor(int64_t(p.rows), rowsOfBlock_), threads_, p);
    }
    int64_t workspaceBytes(std::span<TensorRef const> inputs, std::span<TensorRef const> outputs) const override
    {
        return product_->workspaceBytes(inputs, outputs);
    }
    Result<std::vector<std::string>> pack(Problem const& problem) const override { return product_->pack(problem); }
    bool readsOnDevice(size_t i) const override { return product_->readsOnDevice(i); }

private:
    std::unique_ptr<CudaKernels> const product_;
    double const epsilon_;
    int const rowsOfBlock_, threads_;
};

} // namespace

std::unique_ptr<CudaKernels> generatePlain(Problem const& problem, Config const&)
{
    auto product = multiplyKernels(problem);
    if (!matrix_multiply::hasNorm(*problem.node))
        return product;
    return std::make_unique<ThenNorm>(problem, std::move(product),
                                      cuda::include("families/gemm/cuda_product_norm_plain.cuh"), 1, 256);
}

Support supports(Problem const& problem, DataType narrow)
{
    if (Support const norm = supportsNorm(problem, true); !norm.ok)
        return norm;
    if (Support const product = gemm_f16::supports(problem, GemmAlgorithm::kHalf); !product.ok)
        return product;
    if (Support const types = takesOnly(narrow, problem); !types.ok)
        return types;
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

std::unique_ptr<CudaKernels> generate(Problem const& problem, Config const& config)
{
    constexpr int kRowsOfBlock = 4;
    auto product = gemm_f16::generate(problem, config, GemmAlgorithm::kHalf);
    if (product->source().names.empty()) // there is none
        return product;
    Extents const& y = problem.outputs[0].maxDims;
    return std::make_unique<ThenNorm>(problem, std::move(product),
                                      cuda::constant("NORM_UNITS", cuda::ceilDiv(y[y.rank - 1], 256)) +
                                          cuda::include("families/gemm/cuda_product_norm_rows.cuh"),
                                      kRowsOfBlock, kRowsOfBlock * 32);
}

} // namespace tw::ops::product_norm
