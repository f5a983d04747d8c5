// SPDX-License-Identifier: Apache-2.0
#include "families/gemm/cuda_gemm_i8.h"

#include <algorithm>

#include "base/round.h"
#include "families/elementwise/cuda_epilogue.h"
#include "families/gemm/cuda_gemm_wgmma.h"
#include "kernels/cuda/gemm/mma.h"
#include "tactic/cuda_tactic.h"

namespace tw::ops::gemm_i8 {

namespace {

namespace kernel = cuda::gemm_mma;
using matrix_multiply::Geometry;
using matrix_multiply::MatrixOperation;

constexpr size_t kMostConfigs = 5;
// So many products, with so many in each sum, are left to wgmma, where that exists: mma.sync keeps the tensor cores less
// busy, and each kernel not compiled makes builds shorter.
constexpr int64_t kWgmmaFactors = 128, kWgmmaProducts = int64_t(1) << 30;
constexpr int64_t kUnit = 16; // bytes of the widest copy

Geometry geometryOf(ir::Node const& node, std::span<TensorRef const> in)
{
    return matrix_multiply::geometryOf(node, in[0].dims, in[1].dims);
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
    Geometry const g = matrix_multiply::geometryOf(*p.node, p.inputs[0].dims, p.inputs[1].dims);
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

Sizes sizesOf(Problem const& p, bool most)
{
    auto dims = [&](size_t i) -> Extents const& { return most ? p.inputs[i].maxDims : p.inputs[i].dims; };
    return sizesOf(baseOf(p), matrix_multiply::geometryOf(*p.node, dims(0), dims(1)));
}

// False: nothing that configs() makes, or no kernel.
bool decode(Config const& c, kernel::Spec& s)
{
    if (!isConfig(c, 6, 1, 256))
        return false;
    s.tileM = int(c[0]);
    s.tileN = int(c[1]);
    s.warpsM = int(c[2]);
    s.warpsN = int(c[3]);
    s.stages = int(c[4]);
    s.split = int(c[5]);
    return !kernel::unsupported(s);
}

class ProductKernels final : public CudaKernels
{
public:
    ProductKernels(Problem const& p, kernel::Spec const& spec)
        : CudaKernels(wholeSource(kernel::kKernel, spec)), node_(*p.node), spec_(spec), packed_(packedB(p))
    {}
    Result<std::vector<std::string>> pack(Problem const& p) const override
    {
        if (!packed_.isNeeded)
            return std::vector<std::string>();
        return std::vector<std::string>{packB(packed_, *p.inputs[1].constant)};
    }
    bool readsOnDevice(size_t i) const override { return i != 1 || !packed_.isNeeded; }
    Result<void> run(CudaLaunch const& launch, RunArgs& args) const override;

private:
    ir::Node const& node_;
    kernel::Spec const spec_;
    PackedB const packed_;
};

Result<void> ProductKernels::run(CudaLaunch const& launch, RunArgs& args) const
{
    TensorRef const &a = args.inputs[0], &b = args.inputs[1];
    Geometry const g = geometryOf(node_, args.inputs);
    Sizes const z = sizesOf(spec_, g);
    if (char const* const why = kernel::unsupported(spec_, z.shape))
        return Error{ErrorCode::kFailedExecution, "layer '" + node_.name + "': shapes " + a.dims.str() + " and " +
                                                      b.dims.str() +
                                                      " are not among those that its kernel was made for: " + why};
    auto launched = kernel::launchIntegers(spec_, z.shape);
    kernel::IntegerArgs& l = launched.args;
    l.a = a.as<int8_t>();
    l.b = packed_.isNeeded ? static_cast<int8_t const*>(launch.packed(0)) : b.as<int8_t>();
    l.y = args.outputs[0].data;
    l.end = integerEndArgs(args);
    l.lda = z.rows.lda;
    l.ldb = spec_.paddedB ? z.shape.ldb : z.rows.ldb;
    l.endA = a.count();
    l.endB = b.count(); // asked for where b comes through registers alone
    l.batch.set(z.rows.batch);
    l.batch.setStrides(0, z.rows.aBatch);
    l.batch.setStrides(1, batchesOfB(packed_, z.rows.bBatch));
    return launched.geometry.grid ? launch.withGeometry(0, launched.geometry, {&l}) : Result<void>();
}

} // namespace

PackedB packedB(Problem const& p)
{
    PackedB b;
    if (!p.inputs[1].constant)
        return b;
    Extents const& dims = p.inputs[1].dims;
    Geometry const g = matrix_multiply::geometryOf(*p.node, p.inputs[0].dims, dims);
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

Extents batchesOfB(PackedB const& how, Extents batches)
{
    for (int d = 0; how.isNeeded && d < batches.rank; ++d)
        batches[d] = batches[d] / (how.n * how.k) * (how.n * how.row);
    return batches;
}

Support supportsSums(Problem const& p)
{
    if (!p.cuda || p.cuda->capability < 80)
        return Support::no("needs compute capability 8.0");
    if (!isQuantized(p.inputs[0].type) || !isQuantized(p.inputs[1].type))
        return Support::no(std::string("sums products of i8, input 0 is ") + nameOf(p.inputs[0].type));
    return Support::yes();
}

Support supports(Problem const& p)
{
    if (Support const s = supportsSums(p); !s.ok)
        return s;
    kernel::Shape const z = sizesOf(p, false).shape;
    bool const isLarge = z.k >= kWgmmaFactors && z.batch > 0 && z.m * z.n >= kWgmmaProducts / (z.k * z.batch);
    if (isLarge && p.cuda->capability == 90 && gemm_f16::supports(p, GemmAlgorithm::kInt8).ok)
        return Support::no("leaves large ones to wgmma");
    for (bool const most : {false, true}) {
        Sizes const z = sizesOf(p, most);
        if (char const* const why = kernel::unsupported(baseOf(p), z.shape))
            return Support::no(why);
    }
    return configs(p).empty() ? Support::no("no tile fits") : Support::yes();
}

std::vector<Config> configs(Problem const& p)
{
    std::vector<Config> list;
    for (kernel::Spec const& s : kernel::candidates(baseOf(p), sizesOf(p, false).shape, p.cuda->multiprocessors,
                                                    p.cuda->capability, kMostConfigs))
        list.push_back({s.tileM, s.tileN, s.warpsM, s.warpsN, s.stages, s.split});
    return list;
}

double estimate(Problem const& p, Config const& config)
{
    kernel::Spec s = baseOf(p);
    if (!p.cuda || !decode(config, s))
        return 0;
    kernel::Shape const z = sizesOf(p, false).shape;
    return kernel::estimateUs(s, z.m, z.n, z.k, z.batch, p.cuda->multiprocessors);
}

std::unique_ptr<CudaKernels> generate(Problem const& p, Config const& config)
{
    kernel::Spec s = baseOf(p);
    if (!decode(config, s))
        return noKernels(invalidArgument("the plan's configuration of a matrix product names no kernel"));
    return std::make_unique<ProductKernels>(p, s);
}

} // namespace tw::ops::gemm_i8
