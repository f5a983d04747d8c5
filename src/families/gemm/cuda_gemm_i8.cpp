// SPDX-License-Identifier: Apache-2.0
// Products of i8: of operands that lie in any way, and of few rows.
#include <algorithm>

#include "base/round.h"
#include "families/elementwise/cuda_epilogue.h"
#include "families/gemm/cuda_gemm.h"
#include "kernels/cuda/gemm/gemv_i8.h"
#include "kernels/cuda/gemm/mma.h"

namespace tw::ops {

namespace gemm_i8 {
namespace {

namespace kernel = cuda::gemm_mma;
namespace vectors = cuda::gemv_i8;
using matrix_multiply::Geometry;
using matrix_multiply::MatrixOperation;

constexpr size_t kMostConfigs = 5, kMostVectorConfigs = 3;
// So many products, with so many in each sum, are left to wgmma, where that exists: mma.sync keeps the tensor cores less
// busy, and each kernel not compiled makes builds shorter.
constexpr int64_t kWgmmaFactors = 128, kWgmmaProducts = int64_t(1) << 30;
constexpr int64_t kUnit = 16; // bytes of the widest copy

// A second operand [k, n] or [n, k] as [n, k] whose rows are whole 16 bytes, if it is a constant that does not lie so.
struct PackedB
{
    bool isNeeded = false;
    int64_t n = 0, k = 0, row = 0;            // bytes of a packed row
    int64_t count = 1, bRow = 0, bColumn = 0; // matrices, and steps in them as they were
};
PackedB packedB(Problem const& p)
{
    PackedB b;
    if (!p.inputs[1].constant)
        return b;
    Extents const& dims = p.inputs[1].dims;
    Geometry const g = geometryOf(p, false);
    b.n = g.n;
    b.k = g.k;
    b.row = roundUp(g.k, kUnit);
    b.count = g.n > 0 && g.k > 0 ? dims.volume() / (g.n * g.k) : 0;
    b.bRow = g.bRow;
    b.bColumn = g.bColumn;
    b.isNeeded = p.node->attrsAs<matrix_multiply::Attrs>().b == MatrixOperation::kNone || b.row != b.k;
    return b;
}

std::string packB(PackedB const& how, Blob const& b)
{
    constexpr int64_t kBlock = 64; // keeps both sides in L1
    std::string out(size_t(how.count * how.n * how.row), '\0');
    for (int64_t i = 0; i < how.count; ++i) {
        char* const to = out.data() + i * how.n * how.row;
        char const* const from = b.as<char>() + i * how.n * how.k;
        for (int64_t n0 = 0; n0 < how.n; n0 += kBlock)
            for (int64_t k0 = 0; k0 < how.k; k0 += kBlock)
                for (int64_t n = n0; n < std::min(n0 + kBlock, how.n); ++n)
                    for (int64_t k = k0; k < std::min(k0 + kBlock, how.k); ++k)
                        to[n * how.row + k] = from[k * how.bRow + n * how.bColumn];
    }
    return out;
}

// How far the batches of b are apart.
Extents batchesOfB(PackedB const& how, Extents batches)
{
    for (int d = 0; how.isNeeded && d < batches.rank; ++d)
        batches[d] = batches[d] / (how.n * how.k) * (how.n * how.row);
    return batches;
}

// Copies of an operand's rows, which are dense: of `row` bytes where `known`, else of a multiple of the last dimension.
int vectorOf(ir::Value const& v, bool known, int64_t row)
{
    if (!known)
        row = isKnown(v, 0) ? v.shape.back().value() : 1;
    return kernel::vectorOf(1, row);
}

// All but the tile.
kernel::Spec baseOf(Problem const& p)
{
    kernel::Spec s;
    auto const& attrs = p.node->attrsAs<matrix_multiply::Attrs>();
    Geometry const g = geometryOf(p, false);
    bool const isPacked = packedB(p).isNeeded;
    s.integers = integerEndOf(p, attrs.epilogue);
    s.paddedB = isPacked;
    s.aAlongK = attrs.a != MatrixOperation::kTranspose;
    s.bAlongK = isPacked || attrs.b != MatrixOperation::kNone;
    s.constantB = p.inputs[1].constant != nullptr;
    ir::Value const &a = *p.node->inputs[0], &b = *p.node->inputs[1];
    bool const aKnown = ir::isStatic(a.shape), bKnown = ir::isStatic(b.shape);
    s.vectorA = vectorOf(a, aKnown || (s.aAlongK && bKnown), s.aAlongK ? g.k : g.m);
    s.vectorB = isPacked ? int(kUnit) : vectorOf(b, bKnown || (s.bAlongK && aKnown), s.bAlongK ? g.k : g.n);
    bool const nKnown =
        bKnown || attrs.b == MatrixOperation::kVector || isKnown(b, attrs.b == MatrixOperation::kTranspose ? 1 : 0);
    s.aligned = nKnown && g.n % 8 == 0;
    return s;
}

struct Sizes
{
    ProductRows rows;
    kernel::Shape shape;
};

Sizes sizesOf(kernel::Spec const& s, Geometry const& g)
{
    Sizes z{rowsOf(g, s.aAlongK, s.bAlongK), {}};
    z.shape.m = z.rows.m;
    z.shape.n = g.n;
    z.shape.k = g.k;
    z.shape.batch = z.rows.batch.volume();
    if (s.paddedB)
        z.shape.ldb = roundUp(g.k, kUnit);
    return z;
}

// False: nothing that configs() makes, or no kernel.
bool decode(Config const& c, kernel::Spec& s)
{
    if (!isConfig(c, 6, 1, 256))
        return false;
    readConfig(c, 0, s.tileM, s.tileN, s.warpsM, s.warpsN, s.stages, s.split);
    return !kernel::unsupported(s);
}

// Kernels whose run(launch, args, b) takes the second operand, packed or not.
template <class Run>
std::unique_ptr<CudaKernels> kernelsWith(PackedB const& packed, CudaSource source, Run run)
{
    auto const runWith = [packed, run](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        return run(launch, args,
                   packed.isNeeded ? static_cast<int8_t const*>(launch.packed(0)) : args.inputs[1].as<int8_t>());
    };
    if (!packed.isNeeded)
        return kernelsOf(std::move(source), runWith);
    auto const pack = [packed](Problem const& p) {
        return std::vector<std::string>{packB(packed, *p.inputs[1].constant)};
    };
    return kernelsOf(std::move(source), runWith, {}, pack, {1});
}

Result<void> run(ir::Node const& node, kernel::Spec const& spec, PackedB const& packed, CudaLaunch const& launch,
                 RunArgs& args, int8_t const* b)
{
    Geometry const g = matrix_multiply::geometryOf(node, args.inputs[0].dims, args.inputs[1].dims);
    Sizes const z = sizesOf(spec, g);
    if (char const* const why = kernel::unsupported(spec, z.shape))
        return wrongShapes(node, args, why);
    auto launched = kernel::launchIntegers(spec, z.shape);
    kernel::IntegerArgs& l = launched.args;
    l.a = args.inputs[0].as<int8_t>();
    l.b = b;
    l.y = args.outputs[0].data;
    l.end = integerEndArgs(args);
    l.lda = z.rows.lda;
    l.ldb = spec.paddedB ? z.shape.ldb : z.rows.ldb;
    l.endA = args.inputs[0].count();
    l.endB = args.inputs[1].count(); // asked for where b comes through registers alone
    l.batch.set(z.rows.batch);
    l.batch.setStrides(0, z.rows.aBatch);
    l.batch.setStrides(1, batchesOfB(packed, z.rows.bBatch));
    return launched.geometry.grid ? launch.withGeometry(0, launched.geometry, {&l}) : Result<void>();
}

// Sums of i8 on compute capability 8.0 and later.
Support supportsSums(Problem const& p)
{
    if (!p.target.cuda || p.target.cuda->capability < 80)
        return Support::no("needs compute capability 8.0");
    if (!isQuantized(p.inputs[0].type) || !isQuantized(p.inputs[1].type))
        return Support::no(std::string("sums products of i8, input 0 is ") + nameOf(p.inputs[0].type));
    return Support::yes();
}

std::vector<Config> configs(Problem const& p, GemmAlgorithm)
{
    std::vector<Config> list;
    for (kernel::Spec const& s :
         kernel::candidates(baseOf(p), sizesOf(baseOf(p), geometryOf(p, false)).shape, p.target.cuda->multiprocessors,
                            p.target.cuda->capability, kMostConfigs))
        list.push_back({s.tileM, s.tileN, s.warpsM, s.warpsN, s.stages, s.split});
    return list;
}

Support supports(Problem const& p, GemmAlgorithm algorithm)
{
    TW_SUPPORTS(supportsSums(p));
    kernel::Spec const base = baseOf(p);
    kernel::Shape const z = sizesOf(base, geometryOf(p, false)).shape;
    bool const isLarge = z.k >= kWgmmaFactors && z.batch > 0 && z.m * z.n >= kWgmmaProducts / (z.k * z.batch);
    if (isLarge && p.target.cuda->capability == 90 && gemm_f16::supports(p, algorithm).ok)
        return Support::no("leaves large ones to wgmma");
    for (bool const most : {false, true})
        if (char const* const why = kernel::unsupported(base, sizesOf(base, geometryOf(p, most)).shape))
            return Support::no(why);
    return configs(p, algorithm).empty() ? Support::no("no tile fits") : Support::yes();
}

double estimate(Problem const& p, Config const& config, GemmAlgorithm)
{
    kernel::Spec s = baseOf(p);
    if (!p.target.cuda || !decode(config, s))
        return 0;
    kernel::Shape const z = sizesOf(s, geometryOf(p, false)).shape;
    return kernel::estimateUs(s, z.m, z.n, z.k, z.batch, p.target.cuda->multiprocessors);
}

std::unique_ptr<CudaKernels> generate(Problem const& p, Config const& config, GemmAlgorithm)
{
    kernel::Spec s = baseOf(p);
    if (!decode(config, s))
        return noKernels(invalidArgument("the plan's configuration of a matrix product names no kernel"));
    PackedB const packed = packedB(p);
    return kernelsWith(packed, wholeSource(kernel::kKernel, s),
                       [&node = *p.node, s, packed](CudaLaunch const& launch, RunArgs& args, int8_t const* b) {
                           return run(node, s, packed, launch, args, b);
                       });
}

// --- few rows ---

ProductRows rowsOf(Geometry const& g)
{
    return ops::rowsOf(g, true, true);
}

vectors::Spec vectorsOf(Problem const& p)
{
    vectors::Spec s;
    s.end = integerEndOf(p, p.node->attrsAs<matrix_multiply::Attrs>().epilogue);
    s.packs = geometryOf(p, false).k % 16 == 0;
    int64_t const rows = rowsOf(geometryOf(p, true)).m;
    while (s.rows < rows && s.rows < vectors::kMostRows)
        s.rows *= 2;
    return s;
}

Result<void> run(ir::Node const& node, vectors::Spec const& spec, int64_t packedRow, CudaLaunch const& launch,
                 RunArgs& args, int8_t const* b)
{
    Geometry const g = matrix_multiply::geometryOf(node, args.inputs[0].dims, args.inputs[1].dims);
    ProductRows const rows = rowsOf(g);
    char const* const why = rows.batch.volume() != 1 ? "collections that have their own second operands"
                                                     : unsupported(spec, rows.m, g.n, g.k);
    if (why)
        return wrongShapes(node, args, why);
    vectors::Args l;
    l.a = args.inputs[0].as<int8_t>();
    l.b = b;
    l.y = args.outputs[0].data;
    l.end = integerEndArgs(args);
    l.lda = rows.lda;
    l.ldb = packedRow ? packedRow : g.k;
    cuda::LaunchGeometry const geometry = vectors::launch(spec, rows.m, g.n, g.k, l);
    return geometry.grid ? launch.withGeometry(0, geometry, {&l}) : Result<void>();
}

// False: nothing that configs() makes.
bool decode(Config const& c, vectors::Spec& s)
{
    if (!isConfig(c, 3, 1, vectors::kMostRows) || c[0] != s.rows)
        return false;
    s.columns = int(c[1]);
    s.warpsK = int(c[2]);
    return !vectors::unsupported(s);
}

Support supportsVectors(Problem const& p, GemmAlgorithm)
{
    TW_SUPPORTS(supportsSums(p));
    if (!p.inputs[1].constant)
        return Support::no("the second operand is no constant");
    Geometry const g = geometryOf(p, false);
    if (p.node->attrsAs<matrix_multiply::Attrs>().a == MatrixOperation::kTranspose && g.aColumn != 1)
        return Support::no("rows of the first operand do not lie together");
    for (bool const most : {false, true}) {
        ProductRows const rows = rowsOf(geometryOf(p, most));
        if (rows.batch.volume() != 1)
            return Support::no("collections that have their own second operands");
        if (char const* const why = vectors::unsupported(vectorsOf(p), rows.m, g.n, g.k))
            return Support::no(why);
    }
    return Support::yes();
}

std::vector<Config> vectorConfigs(Problem const& p, GemmAlgorithm)
{
    Geometry const g = geometryOf(p, false);
    std::vector<Config> list;
    for (vectors::Spec const& s :
         vectors::candidates(vectorsOf(p), rowsOf(g).m, g.n, g.k, p.target.cuda->multiprocessors, kMostVectorConfigs))
        list.push_back({s.rows, s.columns, s.warpsK});
    return list;
}

double estimateVectors(Problem const& p, Config const& config, GemmAlgorithm)
{
    vectors::Spec s = vectorsOf(p);
    if (!p.target.cuda || !decode(config, s))
        return 0;
    Geometry const g = geometryOf(p, false);
    return vectors::estimateUs(s, rowsOf(g).m, g.n, g.k, p.target.cuda->multiprocessors);
}

std::unique_ptr<CudaKernels> generateVectors(Problem const& p, Config const& config, GemmAlgorithm)
{
    vectors::Spec s = vectorsOf(p);
    if (!decode(config, s))
        return noKernels(invalidArgument("the plan's configuration of a matrix product names no kernel"));
    PackedB const packed = packedB(p);
    return kernelsWith(packed, wholeSource(vectors::kKernel, vectors::source(s), vectors::kMostShared),
                       [&node = *p.node, s, row = packed.isNeeded ? packed.row : 0](CudaLaunch const& launch,
                                                                                    RunArgs& args, int8_t const* b) {
                           return run(node, s, row, launch, args, b);
                       });
}

} // namespace
} // namespace gemm_i8

constinit GemmTactics const kCudaGemmI8{gemm_i8::supports, gemm_i8::configs, gemm_i8::estimate, gemm_i8::generate};
constinit GemmTactics const kCudaGemvI8{gemm_i8::supportsVectors, gemm_i8::vectorConfigs, gemm_i8::estimateVectors,
                                        gemm_i8::generateVectors};

} // namespace tw::ops
