// SPDX-License-Identifier: Apache-2.0
#include "base/round.h"
#include "families/elementwise/cuda_epilogue.h"
#include "families/gemm/cuda_gemm_wgmma_run.h"
#include "kernels/cuda/gemm/wgmma_sparse.h"
#include "tactic/sparsity.h"

namespace tw::ops {

namespace gemm_sparse {
namespace {

namespace kernel = cuda::gemm_sparse;
using matrix_multiply::Geometry;
using matrix_multiply::MatrixOperation;

constexpr size_t kMostConfigs = 6;

// All but the tile.
kernel::Spec baseOf(Problem const& p)
{
    kernel::Spec s;
    auto const& epilogue = p.node->attrsAs<matrix_multiply::Attrs>().epilogue;
    if (isQuantized(p.inputs[0].type)) {
        s.integers = integerEndOf(p, epilogue);
        s.bias = false;
        return s;
    }
    s.bias = isPresent(p, Epilogue::kBias);
    setEpilogue(s, epilogue, isPresent(p, Epilogue::kResidual));
    return s;
}

// False: nothing that configs() makes, or no kernel.
bool specOf(Problem const& p, Config const& c, kernel::Spec& s)
{
    s = baseOf(p);
    if (!isConfig(c, 4, 0, 256))
        return false;
    readConfig(c, 0, s.tileP, s.tileQ, s.stages, s.multicast);
    return !kernel::unsupported(s);
}

bool isBAlongK(ir::Node const& n)
{
    return n.attrsAs<matrix_multiply::Attrs>().b != MatrixOperation::kNone;
}

// What one launch does; `isOne`: there is no more than that.
kernel::Shape shapeOf(ir::Node const& n, Geometry const& g, bool* isOne = nullptr)
{
    ProductRows const r = rowsOf(g, true, isBAlongK(n));
    ProductBatches const b = batchesOf(r.batch, r.aBatch, r.bBatch);
    if (isOne)
        *isOne = b.batch == 1 && b.outer.volume() == 1;
    kernel::Shape s;
    s.m = r.m;
    s.n = g.n;
    s.k = g.k;
    s.lda = r.lda;
    return s;
}
PackedParts pack(Problem const& p, kernel::Spec const& spec)
{
    Geometry const g = geometryOf(p, false);
    bool const alongK = isBAlongK(*p.node);
    int64_t const k = roundUp(g.k, spec.stepK());
    std::string const dense = gemm_f16::packMatrices(
        *p.inputs[1].constant, {alongK ? g.n : g.k, alongK ? g.k : g.n, k, spec.operandBytes(), !alongK});
    std::optional<std::string> packed =
        spec.integers ? kernel::packSparse(reinterpret_cast<int8_t const*>(dense.data()), g.n, k)
                      : kernel::packSparse(reinterpret_cast<uint16_t const*>(dense.data()), g.n, k);
    if (!packed)
        return notTwoOfFour(p.node->name, "those of its second operand, along the summed dimension");
    std::vector<std::string> parts{std::move(*packed)};
    if (spec.bias) {
        TensorSpec const& bias = p.inputs[size_t(Epilogue::kBias)];
        parts.push_back(packFloats(bias, bias.dims.volume()));
    }
    return parts;
}

Result<void> run(ir::Node const& node, kernel::Spec const& spec, CudaLaunch const& launch, RunArgs& args)
{
    kernel::Shape const shape =
        shapeOf(node, matrix_multiply::geometryOf(node, args.inputs[0].dims, args.inputs[1].dims));
    if (shape.m == 0)
        return {};
    if (char const* const why = kernel::unsupported(spec, shape))
        return failedExecution("layer '" + node.name + "': shape " + args.inputs[0].dims.str() +
                               " is not among those that its kernel was made for: " + why);
    kernel::Launch l = kernel::launch(spec, shape, launch.multiprocessors());
    l.args.weights = launch.packed(0);
    l.args.bias = spec.bias ? static_cast<float const*>(launch.packed(1)) : nullptr;
    if (spec.integers)
        l.args.end = integerEndArgs(args);
    TW_ASSIGN(cuda::TensorMap const mapQ, launch.encode(l.q, args.inputs[0].data));
    TW_ASSIGN(cuda::TensorMap const mapY, launch.encode(l.y, args.outputs[0].data));
    if (!spec.hasResidual())
        return launch.withGeometry(0, l.geometry, {&mapQ, &mapY, &l.args});
    TW_ASSIGN(cuda::TensorMap const mapResidual, launch.encode(l.y, args.inputs[size_t(Epilogue::kResidual)].data));
    return launch.withGeometry(0, l.geometry, {&mapQ, &mapY, &mapResidual, &l.args});
}

std::vector<Config> configs(Problem const& p, GemmAlgorithm)
{
    std::vector<Config> list;
    kernel::Shape const shape = shapeOf(*p.node, geometryOf(p, false));
    if (shape.m == 0)
        return list;
    for (kernel::Spec const& s : kernel::candidates(baseOf(p), shape, p.target.cuda->multiprocessors, kMostConfigs))
        list.push_back({s.tileP, s.tileQ, s.stages, s.multicast});
    return list;
}

Support supports(Problem const& p, GemmAlgorithm algorithm)
{
    DataType const factors = algorithm == GemmAlgorithm::kInt8 ? DataType::kInt8 : DataType::kHalf;
    if (!p.target.cuda || p.target.cuda->capability != 90)
        return Support::no("its instructions (sparse wgmma) exist on GPUs of compute capability 9.0");
    TW_SUPPORTS(supportsProductAlone(p));
    // Of i8 these are the factors; what its end reads has types of its own.
    for (size_t i = 0; i < (isQuantized(factors) ? 2 : p.inputs.size()); ++i)
        if (p.inputs[i].present && p.inputs[i].type != factors)
            return Support::no(
                fmt::format("multiplies {}, input {} is {}", nameOf(factors), i, nameOf(p.inputs[i].type)));
    if (!p.inputs[1].constant)
        return Support::no("the second operand is no constant");
    if (isNarrowFloat(factors) && isPresent(p, Epilogue::kBias) && !p.inputs[size_t(Epilogue::kBias)].constant)
        return Support::no("a bias that is no constant");
    if (p.node->attrsAs<matrix_multiply::Attrs>().a == MatrixOperation::kTranspose)
        return Support::no("the first operand is transposed");
    kernel::Spec const spec = baseOf(p);
    for (bool const most : {false, true}) {
        Geometry const g = geometryOf(p, most);
        bool isOne = false;
        kernel::Shape const shape = shapeOf(*p.node, g, &isOne);
        if (!isOne)
            return Support::no("collections that have their own second operands");
        if (shape.k < spec.stepK() / 2)
            return Support::no(fmt::format("sums fewer than {} products", spec.stepK() / 2));
        if (shape.m > 0)
            if (char const* const why = kernel::unsupported(spec, shape))
                return Support::no(why);
    }
    Geometry const g = geometryOf(p, false);
    bool const alongK = isBAlongK(*p.node);
    Extents const stored = alongK ? Extents{g.n, g.k} : Extents{g.k, g.n};
    if (!isTwoOfFour({factors, stored, const_cast<void*>(p.inputs[1].constant->data())}, alongK ? 1 : 0))
        return Support::no("the second operand does not follow 2:4 along the summed dimension");
    return configs(p, algorithm).empty() ? Support::no("nothing to do") : Support::yes();
}

double estimate(Problem const& p, Config const& config, GemmAlgorithm)
{
    kernel::Spec spec;
    kernel::Shape const shape = shapeOf(*p.node, geometryOf(p, false));
    if (!p.target.cuda || !specOf(p, config, spec) || shape.m == 0)
        return 0;
    return kernel::estimateUs(spec, shape, p.target.cuda->multiprocessors);
}

std::unique_ptr<CudaKernels> generate(Problem const& p, Config const& config, GemmAlgorithm)
{
    kernel::Spec spec;
    if (!specOf(p, config, spec))
        return noKernels(invalidArgument("layer '" + p.node->name + "': no such tile of a sparse product"));
    return kernelsOf(
        wholeSource(kernel::kKernel, spec),
        [&node = *p.node, spec](CudaLaunch const& launch, RunArgs& args) { return run(node, spec, launch, args); }, {},
        [spec](Problem const& p) { return pack(p, spec); },
        spec.integers ? std::vector<size_t>{1} : std::vector<size_t>{1, Epilogue::kBias});
}

} // namespace
} // namespace gemm_sparse

constinit GemmTactics const kCudaGemmSparse{gemm_sparse::supports, gemm_sparse::configs, gemm_sparse::estimate,
                                            gemm_sparse::generate};

} // namespace tw::ops
