// SPDX-License-Identifier: Apache-2.0
#include "ops/cuda_gemm_f32.h"

#include <algorithm>

#include "kernels/cuda/gemm_f32.h"
#include "ops/cuda_pointwise.h"

namespace tw::ops::gemm_f32 {

namespace {

namespace kernel = cuda::gemm_f32;
using matrix_multiply::Geometry;
using matrix_multiply::MatrixOperation;

constexpr size_t kMostConfigs = 6;
constexpr int64_t kPack = 4; // floats of 16 bytes

bool isPresent(Problem const& p, int input)
{
    return input >= 0 && size_t(input) < p.inputs.size() && p.inputs[size_t(input)].present;
}

// Whether stored rows are packs. Operands are dense: rows have `size` elements where it is known, else a multiple of
// the last dimension.
bool packs(ir::Value const& v, bool known, int64_t size)
{
    if (known)
        return size % kPack == 0;
    return !v.shape.empty() && v.shape.back().isConst() && v.shape.back().value() % kPack == 0;
}

kernel::Spec specOf(GemmF16Op const& op, Problem const& p)
{
    kernel::Spec s;
    matrix_multiply::Attrs const operations = op.operations(*p.node);
    s.aAlongK = operations.a != MatrixOperation::kTranspose;
    s.bAlongK = operations.b != MatrixOperation::kNone;
    Geometry const g = op.geometry(*p.node, p.inputs[0].dims, p.inputs[1].dims);
    ir::Value const &a = *p.node->inputs[0], &b = *p.node->inputs[1];
    bool const aKnown = ir::isStatic(a.shape), bKnown = ir::isStatic(b.shape);
    s.packsA = packs(a, aKnown || (s.aAlongK && bKnown), s.aAlongK ? g.k : g.m);
    s.packsB = packs(b, bKnown || (s.bAlongK && aKnown), s.bAlongK ? g.k : g.n);
    s.packsY = !s.bAlongK && s.packsB; // y has b's columns
    s.constantB = p.inputs[1].constant != nullptr;
    s.bias = isPresent(p, op.bias);
    s.residual = isPresent(p, op.residual);
    FusedActivation const f = op.activation ? op.activation(*p.node) : FusedActivation();
    s.activation = activationText("activate", f.kind, f.alpha, f.beta);
    return s;
}

struct Sizes
{
    Geometry geometry;
    Extents batch, aBatch, bBatch; // what is left of the collections
    int64_t m = 0, lda = 0, ldb = 0;
};

// Collections of a that follow each other as rows do are rows, where all have the same b.
Sizes sizesOf(GemmF16Op const& op, kernel::Spec const& s, ir::Node const& node, Extents const& a, Extents const& b)
{
    Sizes z;
    Geometry const& g = z.geometry = op.geometry(node, a, b);
    z.m = g.m;
    z.lda = s.aAlongK ? g.aRow : g.aColumn;
    z.ldb = s.bAlongK ? g.bColumn : g.bRow;
    int d = g.batch.rank - 1;
    for (; d >= 0 && s.aAlongK; --d) {
        if (g.batch[d] == 1)
            continue;
        if (g.bBatch[d] != 0 || (z.m > 1 && g.aBatch[d] != z.m * z.lda))
            break;
        z.lda = z.m > 1 ? z.lda : g.aBatch[d];
        z.m *= g.batch[d];
    }
    for (int i = 0; i <= d; ++i) {
        z.batch.push(g.batch[i]);
        z.aBatch.push(g.aBatch[i]);
        z.bBatch.push(g.bBatch[i]);
    }
    return z;
}

Sizes sizesOf(GemmF16Op const& op, Problem const& p)
{
    return sizesOf(op, specOf(op, p), *p.node, p.inputs[0].dims, p.inputs[1].dims);
}

// False: nothing that configs() makes, or no kernel.
bool decode(Config const& c, kernel::Spec& s)
{
    if (!isConfig(c, 6, 1, 256))
        return false;
    s.tileM = int(c[0]);
    s.tileN = int(c[1]);
    s.rows = int(c[2]);
    s.columns = int(c[3]);
    s.stages = int(c[4]);
    s.split = int(c[5]);
    return !kernel::unsupported(s);
}

} // namespace

Support supports(GemmF16Op const&, Problem const& p)
{
    if (!p.cuda || p.cuda->capability < 80)
        return Support::no("needs compute capability 8.0");
    if (p.inputs[0].type != DataType::kFloat)
        return Support::no(std::string("computes in f32, input 0 is ") + nameOf(p.inputs[0].type));
    if (isWide(p))
        return Support::no("takes tensors of fewer than 2^31 elements");
    return Support::yes();
}

std::vector<Config> configs(GemmF16Op const& op, Problem const& p)
{
    Sizes const z = sizesOf(op, p);
    std::vector<Config> list;
    for (kernel::Spec const& s : kernel::candidates(specOf(op, p), z.m, z.geometry.n, z.geometry.k, z.batch.volume(),
                                                    p.cuda->multiprocessors, p.cuda->capability >= 90, kMostConfigs))
        list.push_back({s.tileM, s.tileN, s.rows, s.columns, s.stages, s.split});
    return list;
}

double estimate(GemmF16Op const& op, Problem const& p, Config const& config)
{
    kernel::Spec s = specOf(op, p);
    if (!p.cuda || !decode(config, s))
        return 0;
    Sizes const z = sizesOf(op, p);
    return kernel::estimateUs(s, z.m, z.geometry.n, z.geometry.k, z.batch.volume(), p.cuda->multiprocessors);
}

CudaKernels generate(GemmF16Op const& op, Problem const& p, Config const& config)
{
    kernel::Spec s = specOf(op, p);
    if (!decode(config, s))
        return noKernels(invalidArgument("the plan's configuration of a matrix product names no kernel"));
    CudaKernels out;
    out.names = {kernel::kKernel};
    out.source = kernel::source(s);
    out.sharedBytes = s.sharedBytes();
    out.isDependent = true;
    out.alignment = s.packsA || s.packsB || s.packsY ? 16 : 4;
    out.run = [&op, s, node = p.node](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        Sizes const z = sizesOf(op, s, *node, args.inputs[0].dims, args.inputs[1].dims);
        auto at = [&](int i, bool present) {
            return present ? static_cast<float const*>(args.inputs[size_t(i)].data) : nullptr;
        };
        kernel::Params params;
        params.a = at(0, true);
        params.b = at(1, true);
        params.bias = at(op.bias, s.bias);
        params.residual = at(op.residual, s.residual);
        params.y = static_cast<float*>(args.outputs[0].data);
        params.m = z.m;
        params.n = z.geometry.n;
        params.k = z.geometry.k;
        params.lda = z.lda;
        params.ldb = z.ldb;
        params.batch.set(z.batch);
        params.batch.setStrides(0, z.aBatch);
        params.batch.setStrides(1, z.bBatch);
        cuda::LaunchGeometry const g = kernel::launch(s, params, z.batch.volume());
        return launch.withGeometry(0, g, {&params});
    };
    return out;
}

} // namespace tw::ops::gemm_f32
