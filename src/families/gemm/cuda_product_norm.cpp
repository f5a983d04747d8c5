// SPDX-License-Identifier: Apache-2.0
#include "families/elementwise/cuda_epilogue.h"
#include "families/gemm/cuda_first_norm.h"
#include "families/gemm/cuda_gemm.h"
#include "families/gemm/cuda_plain_gemm_params.h"
#include "kernels/cuda/common/generate.h"

// Plain products, and LayerNorm after a product by a kernel of its own.
namespace tw::ops {

namespace product_norm {
namespace {

constexpr int64_t kMostRow = 2048; // 64 numbers of a lane

constexpr int kThreads = 256, kTile = 64;

CudaSource sourceOf(Problem const& problem)
{
    auto const& attrs = problem.node->attrsAs<matrix_multiply::Attrs>();
    CudaSource out;
    out.wide = isWide(problem);
    out.names = {"multiply"};
    out.text = cuda::flag("GATED", attrs.gated) + cuda::type("T", cuda::storageOf(problem.inputs[0].type));
    if (sumsIntegers(*problem.node))
        out.text += cuda::integerEndSource(integerEndOf(problem, attrs.epilogue)) +
                    cuda::include("families/gemm/cuda_plain_gemm_integers.cuh");
    else
        out.text += exactEpilogue(attrs.epilogue, hasInput(*problem.node, Epilogue::kResidual)) +
                    cuda::include("families/gemm/cuda_plain_gemm_floats.cuh");
    out.text += cuda::include("families/gemm/cuda_plain_gemm.cuh");
    return out;
}

std::unique_ptr<CudaKernels> plainKernels(Problem const& problem)
{
    auto const& node = *problem.node;
    return kernelsOf(sourceOf(problem), [&node](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        matrix_multiply::Geometry const g = matrix_multiply::geometryOf(node, args.inputs[0].dims, args.inputs[1].dims);
        PlainGemmParams p;
        p.a = args.inputs[0].data;
        p.b = args.inputs[1].data;
        p.y = args.outputs[0].data;
        auto optional = [&](size_t i) { return i < args.inputs.size() ? args.inputs[i].data : nullptr; };
        p.bias = optional(Epilogue::kBias);
        p.residual = optional(Epilogue::kResidual);
        if (sumsIntegers(node))
            p.end = integerEndArgs(args);
        p.m = g.m;
        p.n = matrix_multiply::isGated(node) ? g.n / 2 : g.n;
        p.k = g.k;
        p.aRow = g.aRow;
        p.aColumn = g.aColumn;
        p.bRow = g.bRow;
        p.bColumn = g.bColumn;
        int64_t const tilesM = blocksFor(g.m, kTile), tilesN = blocksFor(p.n, kTile);
        p.tilesM = cuda::divBy(tilesM);
        p.tilesN = cuda::divBy(tilesN);
        p.batch.set(g.batch);
        p.batch.setStrides(0, g.aBatch);
        p.batch.setStrides(1, g.bBatch);
        return launch(0, tilesM * tilesN * g.batch.volume(), kThreads, p);
    });
}

// The product, and after it normalize() of `text`, whose blocks have so many rows each.
class ThenNorm final : public CudaKernels
{
public:
    ThenNorm(Problem const& problem, std::unique_ptr<CudaKernels> product, std::string const& text, int rowsOfBlock,
             int threads)
        : CudaKernels(withNorm(product->source(), text)), product_(std::move(product)),
          epsilon_(problem.node->attrsAs<matrix_multiply::Attrs>().epilogue.epsilon), rowsOfBlock_(rowsOfBlock),
          threads_(threads)
    {
        product_->dropText();
    }
    Result<void> run(CudaLaunch const& launch, RunArgs& args) const override
    {
        TW_TRY(product_->run(launch, args));
        TensorRef const& y = args.outputs[0];
        Params p;
        p.gamma = args.inputs[Epilogue::kGamma].data;
        p.beta = args.inputs[Epilogue::kBeta].data;
        p.y = y.data;
        p.n = uint64_t(y.dims[y.dims.rank - 1]);
        p.rows = uint64_t(y.count()) / p.n;
        p.epsilon = float(epsilon_);
        int const normalize = int(product_->source().names.size());
        return launch(normalize, blocksFor(int64_t(p.rows), rowsOfBlock_), threads_, p);
    }
    int64_t workspaceBytes(std::span<TensorRef const> inputs, std::span<TensorRef const> outputs) const override
    {
        return product_->workspaceBytes(inputs, outputs);
    }
    PackedParts pack(Problem const& problem) const override { return product_->pack(problem); }
    bool readsOnDevice(size_t i) const override { return product_->readsOnDevice(i); }

private:
    static CudaSource withNorm(CudaSource product, std::string const& text)
    {
        product.text += text;
        product.names.push_back("normalize");
        return product;
    }
    std::unique_ptr<CudaKernels> const product_;
    double const epsilon_;
    int const rowsOfBlock_, threads_;
};

Support supports(Problem const& problem, GemmAlgorithm algorithm)
{
    TW_SUPPORTS(supportsNorm(problem, true));
    TW_SUPPORTS(gemm_f16::supports(problem, algorithm));
    Extents const& y = problem.outputs[0].maxDims;
    int64_t const n = y[y.rank - 1];
    if (!ir::isStatic(problem.node->outputs[0]->shape) || n % 8 != 0 || n > kMostRow)
        return Support::no(fmt::format("rows have up to {} numbers in steps of 8", kMostRow));
    return Support::yes();
}

// y is read and written once more, at 3.6 TB/s.
double estimate(Problem const& problem, Config const& config, GemmAlgorithm algorithm)
{
    constexpr double kLaunchUs = 2, kBytesPerUs = 3.6e6;
    return kCudaGemm.estimate(problem, config, algorithm) + kLaunchUs +
           double(problem.outputs[0].dims.volume() * 4) / kBytesPerUs;
}

std::unique_ptr<CudaKernels> generate(Problem const& problem, Config const& config, GemmAlgorithm algorithm)
{
    constexpr int kRowsOfBlock = 4;
    auto product = kCudaGemm.generate(problem, config, algorithm);
    if (product->source().names.empty()) // there is none
        return product;
    Extents const& y = problem.outputs[0].maxDims;
    return std::make_unique<ThenNorm>(problem, std::move(product),
                                      cuda::constant("NORM_UNITS", cuda::ceilDiv(y[y.rank - 1], 256)) +
                                          cuda::include("families/gemm/cuda_product_norm_rows.cuh"),
                                      kRowsOfBlock, kRowsOfBlock * 32);
}

} // namespace
} // namespace product_norm

std::unique_ptr<CudaKernels> plainGemm(Problem const& problem, Config const&)
{
    auto product = product_norm::plainKernels(problem);
    if (matrix_multiply::hasFirstNorm(*problem.node))
        return afterPlainNorm(problem, std::move(product));
    if (!matrix_multiply::hasNorm(*problem.node))
        return product;
    return std::make_unique<product_norm::ThenNorm>(problem, std::move(product),
                                                    cuda::include("families/gemm/cuda_product_norm_plain.cuh"), 1, 256);
}

constinit GemmTactics const kCudaGemmThenNorm{
    product_norm::supports, [](Problem const& p, GemmAlgorithm algorithm) { return kCudaGemm.configs(p, algorithm); },
    product_norm::estimate, product_norm::generate};

} // namespace tw::ops
