// SPDX-License-Identifier: Apache-2.0
#include "families/elementwise/cuda_epilogue.h"
#include "families/gemm/cuda_gemm.h"
#include "kernels/cuda/gemm/f32.h"

namespace tw::ops {

namespace gemm_f32 {
namespace {

namespace kernel = cuda::gemm_f32;
using matrix_multiply::Geometry;
using matrix_multiply::MatrixOperation;

constexpr size_t kMostConfigs = 4;
constexpr int64_t kPack = 4; // floats of 16 bytes

// Whether stored rows are packs. Operands are dense: rows have `size` elements where it is known, else a multiple of
// the last dimension.
bool packs(ir::Value const& v, bool known, int64_t size)
{
    if (known)
        return size % kPack == 0;
    return !v.shape.empty() && v.shape.back().isConst() && v.shape.back().value() % kPack == 0;
}

// All but the tile.
kernel::Spec baseOf(Problem const& p, GemmAlgorithm algorithm)
{
    kernel::Spec s;
    s.sums = algorithm == GemmAlgorithm::kFloat  ? kernel::Sums::kCores
             : algorithm == GemmAlgorithm::kTf32 ? kernel::Sums::kTf32
                                                 : kernel::Sums::kTf32x3;
    auto const& operations = p.node->attrsAs<matrix_multiply::Attrs>();
    s.aAlongK = operations.a != MatrixOperation::kTranspose;
    s.bAlongK = operations.b != MatrixOperation::kNone;
    Geometry const g = geometryOf(p, false);
    ir::Value const &a = *p.node->inputs[0], &b = *p.node->inputs[1];
    bool const aKnown = ir::isStatic(a.shape), bKnown = ir::isStatic(b.shape);
    s.packsA = packs(a, aKnown || (s.aAlongK && bKnown), s.aAlongK ? g.k : g.m);
    s.packsB = packs(b, bKnown || (s.bAlongK && aKnown), s.bAlongK ? g.k : g.n);
    s.packsY = bKnown ? g.n % kPack == 0 : !s.bAlongK && s.packsB; // y has b's columns
    s.constantB = p.inputs[1].constant != nullptr;
    s.bias = isPresent(p, Epilogue::kBias);
    s.residual = isPresent(p, Epilogue::kResidual);
    s.epilogue = exactEpilogue(operations.epilogue, s.residual);
    return s;
}

struct Sizes
{
    Geometry geometry;
    ProductRows rows;
};
Sizes sizesOf(kernel::Spec const& s, Geometry const& g)
{
    return {g, rowsOf(g, s.aAlongK, s.bAlongK)};
}

// False: nothing that configs() makes, or no kernel.
bool decode(Config const& c, kernel::Spec& s)
{
    if (!isConfig(c, 6, 1, 256))
        return false;
    readConfig(c, 0, s.tileM, s.tileN, s.shareM, s.shareN, s.stages, s.split);
    return !kernel::unsupported(s);
}

CudaSource sourceOf(kernel::Spec const& spec)
{
    CudaSource out;
    out.names = {kernel::kKernel};
    out.text = source(spec);
    out.sharedBytes = spec.sharedBytes();
    out.isDependent = true;
    out.alignment = spec.packsA || spec.packsB || spec.packsY ? 16 : 4;
    return out;
}

Result<void> run(ir::Node const& node, kernel::Spec const& spec, CudaLaunch const& launcher, RunArgs& args)
{
    Sizes const z = sizesOf(spec, matrix_multiply::geometryOf(node, args.inputs[0].dims, args.inputs[1].dims));
    auto at = [&](int i, bool present) {
        return present ? static_cast<float const*>(args.inputs[size_t(i)].data) : nullptr;
    };
    kernel::Params params;
    params.a = at(0, true);
    params.b = at(1, true);
    params.bias = at(Epilogue::kBias, spec.bias);
    params.residual = at(Epilogue::kResidual, spec.residual);
    params.y = static_cast<float*>(args.outputs[0].data);
    params.m = z.rows.m;
    params.n = z.geometry.n;
    params.k = z.geometry.k;
    params.lda = z.rows.lda;
    params.ldb = z.rows.ldb;
    params.batch.set(z.rows.batch);
    params.batch.setStrides(0, z.rows.aBatch);
    params.batch.setStrides(1, z.rows.bBatch);
    return launcher.withGeometry(0, kernel::launch(spec, params, z.rows.batch.volume()), {&params});
}

Support supports(Problem const& p, GemmAlgorithm algorithm)
{
    if (!p.target.cuda || p.target.cuda->capability < 80)
        return Support::no("needs compute capability 8.0");
    TW_SUPPORTS(supportsProductAlone(p));
    if (!isFullFloat(p.inputs[0].type))
        return Support::no(std::string("computes in f32, input 0 is ") + nameOf(p.inputs[0].type));
    if (isWide(p))
        return Support::no("takes tensors of fewer than 2^31 elements");
    if (algorithm == GemmAlgorithm::kTf32 && gemm_f16::supports(p, algorithm).ok)
        return Support::no("tensor cores take these operands in a faster way");
    return Support::yes();
}

std::vector<Config> configs(Problem const& p, GemmAlgorithm algorithm)
{
    kernel::Spec const base = baseOf(p, algorithm);
    Sizes const z = sizesOf(base, geometryOf(p, false));
    std::vector<Config> list;
    for (kernel::Spec const& s :
         kernel::candidates(base, z.rows.m, z.geometry.n, z.geometry.k, z.rows.batch.volume(),
                            p.target.cuda->multiprocessors, p.target.cuda->capability >= 90, kMostConfigs))
        list.push_back({s.tileM, s.tileN, s.shareM, s.shareN, s.stages, s.split});
    return list;
}

double estimate(Problem const& p, Config const& config, GemmAlgorithm algorithm)
{
    kernel::Spec s = baseOf(p, algorithm);
    if (!p.target.cuda || !decode(config, s))
        return 0;
    Sizes const z = sizesOf(s, geometryOf(p, false));
    return kernel::estimateUs(s, z.rows.m, z.geometry.n, z.geometry.k, z.rows.batch.volume(),
                              p.target.cuda->multiprocessors);
}

std::unique_ptr<CudaKernels> generate(Problem const& p, Config const& config, GemmAlgorithm algorithm)
{
    kernel::Spec s = baseOf(p, algorithm);
    if (!decode(config, s))
        return noKernels(invalidArgument("the plan's configuration of a matrix product names no kernel"));
    return kernelsOf(sourceOf(s), [&node = *p.node, s](CudaLaunch const& launch, RunArgs& args) {
        return run(node, s, launch, args);
    });
}

} // namespace
} // namespace gemm_f32

constinit GemmTactics const kCudaGemmF32{gemm_f32::supports, gemm_f32::configs, gemm_f32::estimate, gemm_f32::generate};

} // namespace tw::ops
