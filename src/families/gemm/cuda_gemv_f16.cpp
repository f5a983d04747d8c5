// SPDX-License-Identifier: Apache-2.0
#include "families/elementwise/cuda_epilogue.h"
#include "families/gemm/cuda_gemm_wgmma_run.h"
#include "kernels/cuda/gemm/gemv_f16.h"

namespace tw::ops {

namespace gemv_f16 {
namespace {

namespace kernel = cuda::gemv_f16;
using gemm_f16::PackedMatrices;
using matrix_multiply::MatrixOperation;

constexpr size_t kMostConfigs = 6;

// What does not depend on the sizes of a run.
struct Resolved
{
    kernel::Spec spec;
    int biasAt = -1, packedBAt = -1; // among the packed constants
    PackedMatrices packed;           // of b, where it is
    int64_t ldb = 0;                 // of what is read
};

Resolved resolve(Problem const& p)
{
    Resolved r;
    auto const& a = p.node->attrsAs<matrix_multiply::Attrs>();
    auto const g = geometryOf(p, false);
    kernel::Spec& s = r.spec;
    s.bias = isPresent(p, Epilogue::kBias);
    setEpilogue(s, a.epilogue, isPresent(p, Epilogue::kResidual));
    s.alongK = a.b != MatrixOperation::kNone;
    s.gated = a.gated;
    s.packs = g.k % 8 == 0;
    int64_t const rows = rowsOf(geometryOf(p, true), true, s.alongK).m;
    while (s.rows < rows && s.rows < kernel::kMostRows)
        s.rows *= 2;
    int packed = 0;
    if (s.bias)
        r.biasAt = packed++;
    using Gated = PackedMatrices::Gated;
    r.packed.rows = s.alongK ? g.n : g.k;
    r.packed.columns = s.alongK ? g.k : g.n;
    r.packed.padded = r.ldb = roundUp(r.packed.columns, int64_t(8));
    r.packed.gated = !s.gated ? Gated::kNot : s.alongK ? Gated::kRows : Gated::kColumns;
    if (s.gated || r.ldb != r.packed.columns)
        r.packedBAt = packed++;
    return r;
}

kernel::Shape shapeOf(Resolved const& r, matrix_multiply::Geometry const& g)
{
    ProductRows const rows = rowsOf(g, true, r.spec.alongK);
    return {rows.m, g.n, g.k, rows.m > 1 ? rows.lda : g.k, r.ldb};
}

// False: nothing that configs() makes.
bool decode(Config const& c, kernel::Spec& s)
{
    if (!isConfig(c, 5, 1, 64) || c[0] != s.rows)
        return false;
    readConfig(c, 0, s.rows, s.columns, s.warps, s.split, s.depth);
    return !kernel::unsupported(s);
}

Support supports(Problem const& p, GemmAlgorithm)
{
    TW_SUPPORTS(supportsNorm(p, false));
    if (!p.target.cuda || p.target.cuda->capability < 80)
        return Support::no("needs compute capability 8.0");
    DataType const type = narrowOr(DataType::kHalf, p.inputs[0].type);
    for (size_t i = 0; i < p.inputs.size(); ++i)
        if (p.inputs[i].present && p.inputs[i].type != type)
            return Support::no(
                fmt::format("computes in {}, input {} is {}", nameOf(type), i, nameOf(p.inputs[i].type)));
    if (p.outputs[0].type != type)
        return Support::no("gives the type of what it reads");
    if (!p.inputs[1].constant)
        return Support::no("the second operand is no constant");
    if (isPresent(p, Epilogue::kBias) && !p.inputs[size_t(Epilogue::kBias)].constant)
        return Support::no("a bias that is no constant");
    auto const& a = p.node->attrsAs<matrix_multiply::Attrs>();
    if (a.a == MatrixOperation::kTranspose)
        return Support::no("rows of the first operand do not lie together");
    Resolved const r = resolve(p);
    kernel::Spec s = r.spec;
    s.columns = s.alongK ? 4 : 16;
    for (bool const most : {false, true}) {
        auto const g = geometryOf(p, most);
        ProductRows const rows = rowsOf(g, true, s.alongK);
        if (rows.batch.volume() != 1)
            return Support::no("collections that have their own second operands");
        s.depth = 1;
        if (char const* const why = kernel::unsupported(s, shapeOf(r, g)))
            return Support::no(why);
    }
    return Support::yes();
}

std::vector<Config> configs(Problem const& p, GemmAlgorithm)
{
    Resolved const r = resolve(p);
    std::vector<Config> list;
    for (kernel::Spec const& s :
         kernel::candidates(r.spec, shapeOf(r, geometryOf(p, false)), p.target.cuda->multiprocessors,
                            p.target.cuda->capability, kMostConfigs))
        list.push_back({s.rows, s.columns, s.warps, s.split, s.depth});
    return list;
}

double estimate(Problem const& p, Config const& config, GemmAlgorithm)
{
    Resolved r = resolve(p);
    if (!p.target.cuda || !decode(config, r.spec))
        return 0;
    return kernel::estimateUs(r.spec, shapeOf(r, geometryOf(p, false)), p.target.cuda->multiprocessors);
}

class Kernels final : public CudaKernels
{
public:
    Kernels(ir::Node const& node, Resolved const& resolved)
        : CudaKernels(wholeSource(kernel::kKernel, kernel::source(resolved.spec), kernel::kMostShared)), node_(node),
          r_(resolved)
    {}
    PackedParts pack(Problem const& p) const override
    {
        std::vector<std::string> parts;
        if (r_.biasAt >= 0) {
            TensorSpec const& t = p.inputs[size_t(Epilogue::kBias)];
            parts.push_back(packFloats(t, t.dims.volume()));
            if (r_.spec.gated)
                gemm_f16::packGatedBias(parts.back());
        }
        if (r_.packedBAt >= 0)
            parts.push_back(gemm_f16::packMatrices(*p.inputs[1].constant, r_.packed));
        return parts;
    }
    bool readsOnDevice(size_t i) const override
    {
        return i == 1 ? r_.packedBAt < 0 : i != size_t(Epilogue::kBias) || r_.biasAt < 0;
    }
    Result<void> run(CudaLaunch const& launch, RunArgs& args) const override
    {
        auto const g = matrix_multiply::geometryOf(node_, args.inputs[0].dims, args.inputs[1].dims);
        kernel::Shape const shape = shapeOf(r_, g);
        char const* const why = rowsOf(g, true, r_.spec.alongK).batch.volume() != 1
                                    ? "collections that have their own second operands"
                                    : kernel::unsupported(r_.spec, shape);
        if (why)
            return wrongShapes(node_, args, why);
        kernel::Args a;
        a.a = args.inputs[0].data;
        a.b = r_.packedBAt >= 0 ? launch.packed(r_.packedBAt) : args.inputs[1].data;
        a.y = args.outputs[0].data;
        if (r_.biasAt >= 0)
            a.bias = static_cast<float const*>(launch.packed(r_.biasAt));
        if (hasInput(node_, Epilogue::kResidual))
            a.residual = args.inputs[size_t(Epilogue::kResidual)].data;
        cuda::LaunchGeometry const geometry = kernel::launch(r_.spec, shape, a);
        return geometry.grid ? launch.withGeometry(0, geometry, {&a}) : Result<void>();
    }

private:
    ir::Node const& node_;
    Resolved const r_;
};

std::unique_ptr<CudaKernels> generate(Problem const& p, Config const& config, GemmAlgorithm)
{
    Resolved r = resolve(p);
    if (!decode(config, r.spec))
        return noKernels(invalidArgument("the plan's configuration of a matrix product names no kernel"));
    return std::make_unique<Kernels>(*p.node, r);
}

} // namespace
} // namespace gemv_f16

constinit GemmTactics const kCudaGemvF16{gemv_f16::supports, gemv_f16::configs, gemv_f16::estimate, gemv_f16::generate};

} // namespace tw::ops
