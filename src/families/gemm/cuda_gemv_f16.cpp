// SPDX-License-Identifier: Apache-2.0
// Few rows of FP16, of a constant second operand: kernels/cuda/gemm/gemv_f16.h.
#include "families/elementwise/cuda_epilogue.h"
#include "families/gemm/cuda_gemm.h"
#include "families/gemm/cuda_gemm_wgmma_run.h"
#include "kernels/cuda/gemm/gemv_f16.h"

namespace tw::ops {

namespace gemv_f16 {
namespace {

namespace kernel = cuda::gemv_f16;
using matrix_multiply::Attrs;
using matrix_multiply::FirstNorm;
using matrix_multiply::Geometry;
using matrix_multiply::MatrixOperation;

constexpr size_t kMostConfigs = 4;
constexpr int64_t kUnit = 8; // of 16 bytes
// So many elements of b come into registers at once; a pipeline of copies reads more of them faster.
constexpr int64_t kMostElements = int64_t(6) << 20;

// What a run reads, beside a, and where that lies among the packed constants; -1: where the network has it.
struct Resolved
{
    kernel::Spec spec; // all but the tile
    int biasAt = -1, sumsAt = -1, bAt = -1;
    double epsilon = 0;
};

// b is [n, k] as it is stored.
bool isAlongK(Problem const& p)
{
    return p.node->attrsAs<Attrs>().b != MatrixOperation::kNone;
}

ProductRows rowsOf(Geometry const& g)
{
    return ops::rowsOf(g, true, true);
}

Resolved resolve(Problem const& p)
{
    Resolved r;
    auto const& attrs = p.node->attrsAs<Attrs>();
    r.spec.bias = isPresent(p, Epilogue::kBias);
    setEpilogue(r.spec, attrs.epilogue, isPresent(p, Epilogue::kResidual));
    r.spec.firstNorm = int(attrs.firstNorm);
    r.spec.rows = rowsOf(geometryOf(p, true)).m > kUnit ? kernel::kMostRows : int(kUnit);
    r.epsilon = attrs.firstEpsilon;
    r.spec.gated = attrs.gated;
    int packed = 0;
    if (r.spec.bias)
        r.biasAt = packed++;
    if (attrs.firstNorm == FirstNorm::kLayer)
        r.sumsAt = packed++;
    if (!isAlongK(p) || attrs.gated)
        r.bAt = packed++;
    return r;
}

// In the order of their places.
std::vector<std::string> pack(Problem const& p)
{
    Resolved const r = resolve(p);
    Geometry const g = geometryOf(p, false);
    std::vector<std::string> parts;
    auto addFloats = [&](std::string floats) {
        if (r.spec.gated)
            gemm_f16::packGatedBias(floats);
        parts.push_back(std::move(floats));
    };
    if (r.biasAt >= 0)
        addFloats(packFloats(p.inputs[size_t(Epilogue::kBias)], g.n));
    int64_t const rows = isAlongK(p) ? g.n : g.k, columns = isAlongK(p) ? g.k : g.n;
    if (r.sumsAt >= 0)
        addFloats(gemm_f16::packColumnSums(p.inputs[1], rows, columns, isAlongK(p)));
    if (r.bAt >= 0) {
        gemm_f16::PackedMatrices how{rows, columns, g.k};
        how.transposes = !isAlongK(p);
        if (r.spec.gated)
            how.gated = gemm_f16::PackedMatrices::Gated::kRows;
        parts.push_back(gemm_f16::packMatrices(*p.inputs[1].constant, how));
    }
    return parts;
}

Support supports(Problem const& p, GemmAlgorithm)
{
    if (!p.target.cuda || p.target.cuda->capability < 80)
        return Support::no("needs compute capability 8.0");
    if (matrix_multiply::hasNorm(*p.node))
        return Support::no("does not normalize results");
    for (TensorSpec const& t : p.inputs)
        if (t.present && !isNarrowFloat(t.type))
            return Support::no(std::string("computes in FP16, an input is ") + nameOf(t.type));
    auto const isConstant = [&](int i) { return !isPresent(p, i) || p.inputs[size_t(i)].constant; };
    if (!isConstant(matrix_multiply::kB) || !isConstant(Epilogue::kBias))
        return Support::no("the second operand, or the bias, is no constant");
    if (p.node->attrsAs<Attrs>().a == MatrixOperation::kTranspose)
        return Support::no("rows of the first operand do not lie together");
    kernel::Spec spec = resolve(p).spec;
    spec.tiles = 2; // of which there is a kernel where there is any
    for (bool const most : {false, true}) {
        Geometry const g = geometryOf(p, most);
        ProductRows const rows = rowsOf(g);
        if (rows.batch.volume() != 1)
            return Support::no("collections that have their own second operands");
        if (char const* const why = unsupported(spec, rows.m, g.n, g.k))
            return Support::no(why);
        if (g.n * g.k > kMostElements)
            return Support::no(fmt::format("leaves matrices of more than {} elements to pipelines", kMostElements));
    }
    return Support::yes();
}

std::vector<Config> configs(Problem const& p, GemmAlgorithm)
{
    Geometry const g = geometryOf(p, false);
    std::vector<Config> list;
    for (kernel::Spec const& s :
         kernel::candidates(resolve(p).spec, g.n, g.k, p.target.cuda->multiprocessors, kMostConfigs))
        list.push_back({s.tiles, s.warps, s.units});
    return list;
}

// False: nothing that configs() makes.
bool decode(Config const& c, kernel::Spec& s)
{
    if (!isConfig(c, 3, 1, 16))
        return false;
    readConfig(c, 0, s.tiles, s.warps, s.units);
    return !unsupported(s);
}

double estimate(Problem const& p, Config const& config, GemmAlgorithm)
{
    kernel::Spec s = resolve(p).spec;
    Geometry const g = geometryOf(p, false);
    return p.target.cuda && decode(config, s) ? kernel::estimateUs(s, g.n, g.k, p.target.cuda->multiprocessors) : 0;
}

Result<void> run(ir::Node const& node, Resolved const& r, CudaLaunch const& launch, RunArgs& args)
{
    Geometry const g = matrix_multiply::geometryOf(node, args.inputs[0].dims, args.inputs[1].dims);
    ProductRows const rows = rowsOf(g);
    char const* const why = rows.batch.volume() != 1 ? "collections that have their own second operands"
                                                     : unsupported(r.spec, rows.m, g.n, g.k);
    if (why)
        return wrongShapes(node, args, why);
    auto const floats = [&](int at) { return at < 0 ? nullptr : static_cast<float const*>(launch.packed(at)); };
    kernel::Args l;
    l.a = args.inputs[0].data;
    l.b = r.bAt < 0 ? args.inputs[1].data : launch.packed(r.bAt);
    l.y = args.outputs[0].data;
    l.bias = floats(r.biasAt);
    l.sums = floats(r.sumsAt);
    if (r.spec.residual)
        l.residual = args.inputs[size_t(Epilogue::kResidual)].data;
    l.lda = rows.lda;
    l.ldb = g.k;
    l.ldy = l.ldResidual = g.n / (r.spec.gated ? 2 : 1);
    l.epsilon = float(r.epsilon);
    cuda::LaunchGeometry const geometry = kernel::launch(r.spec, rows.m, g.n, g.k, l);
    return geometry.grid ? launch.withGeometry(0, geometry, {&l}) : Result<void>();
}

std::unique_ptr<CudaKernels> generate(Problem const& p, Config const& config, GemmAlgorithm)
{
    Resolved r = resolve(p);
    if (!decode(config, r.spec))
        return noKernels(invalidArgument("the plan's configuration of a matrix product names no kernel"));
    std::vector<size_t> replaced;
    if (r.biasAt >= 0)
        replaced.push_back(size_t(Epilogue::kBias));
    if (r.bAt >= 0)
        replaced.push_back(matrix_multiply::kB);
    return kernelsOf(
        wholeSource(kernel::kKernel, kernel::source(r.spec), 0),
        [&node = *p.node, r](CudaLaunch const& launch, RunArgs& args) { return run(node, r, launch, args); }, {}, pack,
        std::move(replaced));
}

} // namespace
} // namespace gemv_f16

constinit GemmTactics const kCudaGemvF16{gemv_f16::supports, gemv_f16::configs, gemv_f16::estimate, gemv_f16::generate};

} // namespace tw::ops
