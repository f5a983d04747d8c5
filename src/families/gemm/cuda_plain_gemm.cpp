// SPDX-License-Identifier: Apache-2.0
#include "families/elementwise/cuda_epilogue.h"
#include "families/gemm/cuda_plain_gemm_params.h"
#include "families/gemm/cuda_product_norm.h"

namespace tw::ops {

namespace {

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

} // namespace

std::unique_ptr<CudaKernels> multiplyKernels(Problem const& problem)
{
    return plainKernels(problem);
}

} // namespace tw::ops
