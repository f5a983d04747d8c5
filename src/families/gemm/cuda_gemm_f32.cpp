// SPDX-License-Identifier: Apache-2.0
#include "families/gemm/cuda_gemm_f32.h"

#include <algorithm>

#include "families/elementwise/cuda_epilogue.h"
#include "families/gemm/cuda_gemm_wgmma.h"

namespace tw::ops::gemm_f32 {

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
kernel::Spec baseOf(Problem const& p, GemmF32Algorithm algorithm)
{
    kernel::Spec s;
    s.sums = algorithm;
    auto const& operations = p.node->attrsAs<matrix_multiply::Attrs>();
    s.aAlongK = operations.a != MatrixOperation::kTranspose;
    s.bAlongK = operations.b != MatrixOperation::kNone;
    Geometry const g = matrix_multiply::geometryOf(*p.node, p.inputs[0].dims, p.inputs[1].dims);
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

Sizes sizesOf(kernel::Spec const& s, ir::Node const& node, Extents const& a, Extents const& b)
{
    Geometry const g = matrix_multiply::geometryOf(node, a, b);
    return {g, rowsOf(g, s.aAlongK, s.bAlongK)};
}

Sizes sizesOf(kernel::Spec const& s, Problem const& p)
{
    return sizesOf(s, *p.node, p.inputs[0].dims, p.inputs[1].dims);
}

// False: nothing that configs() makes, or no kernel.
bool decode(Config const& c, kernel::Spec& s)
{
    if (!isConfig(c, 6, 1, 256))
        return false;
    s.tileM = int(c[0]);
    s.tileN = int(c[1]);
    s.shareM = int(c[2]);
    s.shareN = int(c[3]);
    s.stages = int(c[4]);
    s.split = int(c[5]);
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

class ProductKernels final : public CudaKernels
{
public:
    ProductKernels(Problem const& problem, kernel::Spec const& spec)
        : CudaKernels(sourceOf(spec)), spec_(spec), node_(*problem.node)
    {}
    Result<void> run(CudaLaunch const& launcher, RunArgs& args) const override;

private:
    kernel::Spec const spec_;
    ir::Node const& node_;
};

Result<void> ProductKernels::run(CudaLaunch const& launcher, RunArgs& args) const
{
    Sizes const z = sizesOf(spec_, node_, args.inputs[0].dims, args.inputs[1].dims);
    auto at = [&](int i, bool present) {
        return present ? static_cast<float const*>(args.inputs[size_t(i)].data) : nullptr;
    };
    kernel::Params params;
    params.a = at(0, true);
    params.b = at(1, true);
    params.bias = at(Epilogue::kBias, spec_.bias);
    params.residual = at(Epilogue::kResidual, spec_.residual);
    params.y = static_cast<float*>(args.outputs[0].data);
    params.m = z.rows.m;
    params.n = z.geometry.n;
    params.k = z.geometry.k;
    params.lda = z.rows.lda;
    params.ldb = z.rows.ldb;
    params.batch.set(z.rows.batch);
    params.batch.setStrides(0, z.rows.aBatch);
    params.batch.setStrides(1, z.rows.bBatch);
    cuda::LaunchGeometry const g = kernel::launch(spec_, params, z.rows.batch.volume());
    return launcher.withGeometry(0, g, {&params});
}

} // namespace

Support supports(Problem const& p, GemmF32Algorithm algorithm)
{
    if (!p.cuda || p.cuda->capability < 80)
        return Support::no("needs compute capability 8.0");
    if (Support const s = supportsAllColumns(p); !s.ok)
        return s;
    if (Support const s = supportsNorm(p, false); !s.ok)
        return s;
    if (!isFullFloat(p.inputs[0].type))
        return Support::no(std::string("computes in f32, input 0 is ") + nameOf(p.inputs[0].type));
    if (isWide(p))
        return Support::no("takes tensors of fewer than 2^31 elements");
    if (algorithm == GemmF32Algorithm::kTf32 && gemm_f16::supports(p, GemmAlgorithm::kTf32).ok)
        return Support::no("tensor cores take these operands in a faster way");
    return Support::yes();
}

std::vector<Config> configs(Problem const& p, GemmF32Algorithm algorithm)
{
    kernel::Spec const base = baseOf(p, algorithm);
    Sizes const z = sizesOf(base, p);
    std::vector<Config> list;
    for (kernel::Spec const& s : kernel::candidates(base, z.rows.m, z.geometry.n, z.geometry.k, z.rows.batch.volume(),
                                                    p.cuda->multiprocessors, p.cuda->capability >= 90, kMostConfigs))
        list.push_back({s.tileM, s.tileN, s.shareM, s.shareN, s.stages, s.split});
    return list;
}

double estimate(Problem const& p, Config const& config, GemmF32Algorithm algorithm)
{
    kernel::Spec s = baseOf(p, algorithm);
    if (!p.cuda || !decode(config, s))
        return 0;
    Sizes const z = sizesOf(s, p);
    return kernel::estimateUs(s, z.rows.m, z.geometry.n, z.geometry.k, z.rows.batch.volume(), p.cuda->multiprocessors);
}

std::unique_ptr<CudaKernels> generate(Problem const& p, Config const& config, GemmF32Algorithm algorithm)
{
    kernel::Spec s = baseOf(p, algorithm);
    if (!decode(config, s))
        return noKernels(invalidArgument("the plan's configuration of a matrix product names no kernel"));
    return std::make_unique<ProductKernels>(p, s);
}

} // namespace tw::ops::gemm_f32
