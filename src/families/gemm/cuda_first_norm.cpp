// SPDX-License-Identifier: Apache-2.0
// Products of rows that are normalized first, by a kernel of its own.
#include "families/gemm/cuda_first_norm.h"

#include <algorithm>
#include <array>

#include "base/round.h"
#include "families/gemm/cuda_gemm.h"
#include "families/gemm/cuda_plain_gemm_params.h"
#include "kernels/cuda/common/generate.h"

namespace tw::ops {

namespace first_norm {
namespace {

using matrix_multiply::Attrs;
using matrix_multiply::FirstNorm;

constexpr int64_t kUnit = 8, kMostUnits = 4, kThreads[] = {128, 512}; // of a thread, of a row
constexpr int kPlainThreads = 256;

// normalize() of `text`, a block of so many threads for each row, and the product of what it makes.
class ThenProduct final : public CudaKernels
{
public:
    ThenProduct(Problem const& problem, std::unique_ptr<CudaKernels> product, std::string const& text, int threads)
        : CudaKernels(withNorm(product->source(), problem, text)), product_(std::move(product)),
          epsilon_(problem.node->attrsAs<Attrs>().firstEpsilon), threads_(threads)
    {
        product_->dropText();
    }
    Result<void> run(CudaLaunch const& launch, RunArgs& args) const override
    {
        TensorRef const& a = args.inputs[matrix_multiply::kA];
        Inputs inputs;
        RunArgs rest = args;
        rest.inputs = withFirst(args.inputs, args.workspace, inputs);
        rest.workspace = static_cast<std::byte*>(args.workspace) + bytesOf(a);
        Params p;
        p.a = a.data;
        p.to = args.workspace;
        p.k = uint64_t(a.dims[a.dims.rank - 1]);
        p.epsilon = float(epsilon_);
        if (p.k > 0) // else nothing is summed
            TW_TRY(launch(int(product_->source().names.size()), a.count() / int64_t(p.k), threads_, p));
        return product_->run(launch, rest);
    }
    int64_t workspaceBytes(std::span<TensorRef const> in, std::span<TensorRef const> out) const override
    {
        return bytesOf(in[matrix_multiply::kA]) + product_->workspaceBytes(in, out);
    }
    PackedParts pack(Problem const& problem) const override { return product_->pack(problem); }
    bool readsOnDevice(size_t i) const override { return product_->readsOnDevice(i); }

private:
    using Inputs = std::array<TensorRef, matrix_multiply::kInputs>;
    static std::span<TensorRef const> withFirst(std::span<TensorRef const> from, void* a, Inputs& to)
    {
        std::ranges::copy(from, to.begin());
        to[matrix_multiply::kA].data = a;
        return {to.data(), from.size()};
    }
    static int64_t bytesOf(TensorRef const& a) { return roundUp(a.sizeBytes(), 256); }
    static CudaSource withNorm(CudaSource product, Problem const& problem, std::string const& text)
    {
        bool const isRms = problem.node->attrsAs<Attrs>().firstNorm == FirstNorm::kRms;
        product.text += cuda::flag("FIRST_RMS", isRms) + text;
        product.names.push_back("normalizeFirst");
        return product;
    }

    std::unique_ptr<CudaKernels> const product_;
    double const epsilon_;
    int const threads_;
};

// 0: the rows are too long.
int threadsOf(Problem const& problem)
{
    Extents const& a = problem.inputs[matrix_multiply::kA].maxDims;
    for (int64_t threads : kThreads)
        if (a[a.rank - 1] <= threads * kMostUnits * kUnit)
            return int(threads);
    return 0;
}

Support supports(Problem const& problem, GemmAlgorithm algorithm)
{
    TW_SUPPORTS(supportsFirstNorm(problem));
    TW_SUPPORTS(gemm_f16::supports(problem, algorithm));
    if (!isKnown(*problem.node->inputs[matrix_multiply::kA], 0))
        return Support::no("the length of rows is not known when the engine is built");
    Extents const& a = problem.inputs[matrix_multiply::kA].maxDims;
    if (a[a.rank - 1] % kUnit != 0 || threadsOf(problem) == 0)
        return Support::no(
            fmt::format("rows have up to {} numbers in steps of {}", kThreads[1] * kMostUnits * kUnit, kUnit));
    return Support::yes();
}

// The rows are read and written once, at 3.6 TB/s.
double estimate(Problem const& problem, Config const& config, GemmAlgorithm algorithm)
{
    constexpr double kLaunchUs = 1.8, kBytesPerUs = 3.6e6;
    return kCudaGemm.estimate(problem, config, algorithm) + kLaunchUs +
           double(problem.inputs[matrix_multiply::kA].dims.volume() * 4) / kBytesPerUs;
}

std::unique_ptr<CudaKernels> generate(Problem const& problem, Config const& config, GemmAlgorithm algorithm)
{
    auto product = kCudaGemm.generate(problem, config, algorithm);
    if (product->source().names.empty()) // there is none
        return product;
    int const threads = threadsOf(problem);
    Extents const& a = problem.inputs[matrix_multiply::kA].maxDims;
    return std::make_unique<ThenProduct>(
        problem, std::move(product),
        cuda::constant("FIRST_THREADS", threads) +
            cuda::constant("FIRST_UNITS", cuda::ceilDiv(a[a.rank - 1], kUnit * threads)) +
            cuda::include("families/gemm/cuda_first_norm_rows.cuh"),
        threads);
}

} // namespace
} // namespace first_norm

std::unique_ptr<CudaKernels> afterPlainNorm(Problem const& problem, std::unique_ptr<CudaKernels> product)
{
    return std::make_unique<first_norm::ThenProduct>(problem, std::move(product),
                                                     cuda::include("families/gemm/cuda_first_norm_plain.cuh"),
                                                     first_norm::kPlainThreads);
}

constinit GemmTactics const kCudaNormThenGemm{
    first_norm::supports, [](Problem const& p, GemmAlgorithm algorithm) { return kCudaGemm.configs(p, algorithm); },
    first_norm::estimate, first_norm::generate};

} // namespace tw::ops
