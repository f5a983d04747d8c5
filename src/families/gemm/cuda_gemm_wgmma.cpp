// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>

#include "families/elementwise/cuda_epilogue.h"
#include "families/gemm/cuda_gemm_wgmma_run.h"

namespace tw::ops {

namespace gemm_f16 {
namespace {

using matrix_multiply::Geometry;
using matrix_multiply::MatrixOperation;

constexpr size_t kMostConfigs = 8, kMostMmaConfigs = 6, kMostPaddedConfigs = 4, kMostNormConfigs = 4,
                 kMostTf32x3Configs = 6,
                 kMostTf32Configs = 4; // of FP32 there are other tactics

DataType typeOf(Problem const& p, GemmAlgorithm algorithm)
{
    bool const half = algorithm == GemmAlgorithm::kHalf || algorithm == GemmAlgorithm::kHalfMma ||
                      algorithm == GemmAlgorithm::kNorm || algorithm == GemmAlgorithm::kFirst;
    return half                                ? narrowOr(DataType::kHalf, p.inputs[0].type)
           : algorithm == GemmAlgorithm::kInt8 ? DataType::kInt8
                                               : DataType::kFloat;
}

// Of an operand's stored rows, which are dense: `row` elements where `known`, else a multiple of the last dimension.
int vectorOf(ir::Value const& v, bool known, int64_t row)
{
    if (!known)
        row = isKnown(v, 0) ? v.shape.back().value() : 1;
    return matrix::vectorOf(2, row);
}

// Has each run copy the operands whose rows are not whole 16 bytes.
void padOperands(Resolved& s)
{
    constexpr int64_t kUnit = 8;
    if (s.columnsA % kUnit)
        s.paddedA = roundUp(s.columnsA, kUnit);
    s.padsB = !s.paddedB && s.columnsB % kUnit;
    if (s.padsB)
        s.paddedB = roundUp(s.columnsB, kUnit);
    s.mma.vectorA = s.mma.vectorB = int(kUnit);
    s.mma.paddedA = s.paddedA != 0;
    s.mma.paddedB = s.paddedB != 0;
}

Resolved resolve(Problem const& p, GemmAlgorithm algorithm)
{
    Resolved s;
    s.node = p.node;
    auto const& operations = p.node->attrsAs<matrix_multiply::Attrs>();
    Geometry const g = geometryOf(p, false);
    kernel::Spec& spec = s.spec;
    s.normalizes = algorithm == GemmAlgorithm::kNorm;
    spec.single = isFullFloat(typeOf(p, algorithm));
    spec.tf32x3 = algorithm == GemmAlgorithm::kTf32x3;
    if (algorithm == GemmAlgorithm::kInt8) {
        spec.integers = integerEndOf(p, operations.epilogue);
        spec.bias = false;
    } else {
        spec.bias = isPresent(p, Epilogue::kBias);
        setEpilogue(spec, operations.epilogue, isPresent(p, Epilogue::kResidual),
                    spec.tf32x3 ? DataType::kFloat : DataType::kHalf);
    }
    spec.aAlongK = operations.a != MatrixOperation::kTranspose;
    spec.bAlongK = operations.b != MatrixOperation::kNone;
    spec.constantB = p.inputs[1].constant != nullptr;
    ir::Value const& b = *p.node->inputs[1];
    bool const nKnown = ir::isStatic(b.shape) || operations.b == MatrixOperation::kVector ||
                        isKnown(b, operations.b == MatrixOperation::kTranspose ? 1 : 0);
    spec.gated = operations.gated;
    spec.aligned = nKnown && g.n / (spec.gated ? 2 : 1) % spec.storeAlignment() == 0;
    s.isMma = algorithm == GemmAlgorithm::kHalfMma;
    if (algorithm == GemmAlgorithm::kFirst) {
        spec.firstNorm = int(operations.firstNorm);
        Geometry const most = geometryOf(p, true);
        spec.firstWarps = int(std::clamp<int64_t>(most.m * most.batch.volume(), 1, kernel::kMostFirstWarps));
        s.epsilon = operations.firstEpsilon;
    }
    spec.copies = spec.aligned && !spec.single && !s.isMma && !spec.firstNorm;
    int packed = 0;
    if (spec.bias && (!spec.single || spec.gated)) // floats are what the kernel reads
        s.biasAt = packed++;
    if (s.normalizes) {
        s.gammaAt = packed;
        packed += 2;
        s.epsilon = operations.epilogue.epsilon;
    }
    if (operations.firstNorm == matrix_multiply::FirstNorm::kLayer && spec.firstNorm)
        s.sumsAt = packed++;
    s.columnsA = spec.aAlongK ? g.k : g.m;
    s.rowsB = spec.bAlongK ? g.n : g.k;
    s.columnsB = spec.bAlongK ? g.k : g.n;
    s.transposesB = (spec.single || spec.integers) && !spec.bAlongK && spec.constantB;
    int64_t const unit = 16 / spec.operandBytes();
    if (spec.constantB && s.rowsB * s.columnsB > 0 &&
        (s.columnsB % unit || s.transposesB || spec.tf32x3 || spec.gated)) {
        s.packedBAt = packed++;
        s.paddedB = roundUp(s.transposesB ? s.rowsB : s.columnsB, unit);
        if (spec.tf32x3)
            s.paddedB = kernel::splitRow(g.k);
        spec.bAlongK = spec.bAlongK || s.transposesB;
    }
    if (s.isMma) {
        static_cast<cuda::Epilogue&>(s.mma) = spec;
        s.mma.aAlongK = spec.aAlongK;
        s.mma.bAlongK = spec.bAlongK;
        s.mma.constantB = spec.constantB;
        s.mma.clusters = p.target.cuda && p.target.cuda->capability >= 90;
        ir::Value const& a = *p.node->inputs[0];
        bool const aStatic = ir::isStatic(a.shape), bStatic = ir::isStatic(b.shape);
        bool const aKnown = aStatic || (bStatic && spec.aAlongK);
        bool const bKnown = s.paddedB || bStatic || (aStatic && spec.bAlongK);
        s.mma.vectorA = vectorOf(a, aKnown, s.columnsA);
        s.mma.vectorB = vectorOf(b, bKnown, s.paddedB ? s.paddedB : s.columnsB);
        s.mma.paddedB = s.paddedB != 0;
        s.canPad = aKnown && bKnown;
    } else if (algorithm == GemmAlgorithm::kHalf && s.rowsB * s.columnsB > 0) {
        padOperands(s); // supports() has seen that lengths are known
    }
    return s;
}

Config encode(matrix::Spec const& s, bool pads)
{
    return {s.tileM, s.tileN, s.warpsM, s.warpsN, s.stages, s.split, pads};
}

// False: nothing that encode() makes, or no kernel.
bool decode(Config const& c, matrix::Spec& s)
{
    if (!isConfig(c, 7, 0, 256))
        return false;
    readConfig(c, 0, s.tileM, s.tileN, s.warpsM, s.warpsN, s.stages, s.split);
    return !matrix::unsupported(s);
}

Config encode(kernel::Spec const& s)
{
    Config c{s.tileP, s.tileQ, s.stages, s.groups, s.pingPong, s.split, s.multicast, s.swap, s.copies};
    if (s.norm)
        c.push_back(s.norm);
    if (s.integers) {
        c.push_back(s.stepBytes);
        c.push_back(s.ahead);
    }
    return c;
}

bool decode(Config const& c, bool normalizes, kernel::Spec& s)
{
    constexpr size_t kNumbers = 9;
    constexpr int64_t kMost = 256;
    size_t const more = s.integers ? 2 : normalizes ? 1 : 0;
    if (!isConfig(c, kNumbers + more, 0, kMost) || (normalizes && c[kNumbers] == 0))
        return false;
    if (s.integers)
        readConfig(c, kNumbers, s.stepBytes, s.ahead);
    s.norm = normalizes ? int(c[kNumbers]) : 0;
    readConfig(c, 0, s.tileP, s.tileQ, s.stages, s.groups, s.pingPong, s.split, s.multicast, s.swap, s.copies);
    return !kernel::unsupported(s);
}

bool decode(Config const& c, Resolved& s)
{
    if (!s.isMma)
        return decode(c, s.normalizes, s.spec);
    if (isConfig(c, 7, 0, 256) && c[6]) {
        if (!s.canPad)
            return false;
        padOperands(s);
    }
    return decode(c, s.mma);
}

// Whether TMA's steps can be checked.
Support sizesAreKnown(matrix_multiply::Attrs const& operations, ir::Value const& a, ir::Value const& b)
{
    bool const bStatic = ir::isStatic(b.shape), aTransposed = operations.a == MatrixOperation::kTranspose;
    if (!bStatic && !isKnown(a, aTransposed ? 1 : 0) && !isKnown(b, operations.b == MatrixOperation::kNone ? 1 : 0))
        return Support::no("the summed dimension is not known when the engine is built");
    if (aTransposed && !isKnown(a, 0))
        return Support::no("the rows of a transposed first operand are not known when the engine is built");
    if (operations.b == MatrixOperation::kNone && !bStatic && !isKnown(b, 0))
        return Support::no("the columns of the second operand are not known when the engine is built");
    return Support::yes();
}

std::vector<Config> configs(Problem const& p, GemmAlgorithm algorithm)
{
    Resolved s = resolve(p, algorithm);
    std::vector<Config> list;
    if (s.normalizes) {
        for (kernel::Spec const& spec : kernel::normCandidates(s.spec, productOf(s, geometryOf(p, false)).shape,
                                                               p.target.cuda->multiprocessors, kMostNormConfigs))
            list.push_back(encode(spec));
        return list;
    }
    if (s.isMma) {
        bool const aligned = s.mma.vectorA == 8 && s.mma.vectorB == 8;
        auto add = [&](bool pads, size_t most) {
            if (pads)
                padOperands(s);
            for (matrix::Spec const& spec :
                 matrix::candidates(s.mma, productOf(s, geometryOf(p, false)).shape, p.target.cuda->multiprocessors,
                                    p.target.cuda->capability, most))
                list.push_back(encode(spec, pads));
        };
        // Where there is wgmma, that is for operands that are copied, and most of the others too.
        bool const wgmma = p.target.cuda->capability == 90, pads = !aligned && s.canPad && !wgmma;
        add(false, pads || wgmma ? kMostMmaConfigs / 2 : kMostMmaConfigs);
        if (pads)
            add(true, kMostMmaConfigs / 2);
        return list;
    }
    for (kernel::Spec const& spec :
         kernel::candidates(s.spec, productOf(s, geometryOf(p, false)).shape, p.target.cuda->multiprocessors,
                            s.spec.tf32x3   ? kMostTf32x3Configs
                            : s.spec.single ? kMostTf32Configs
                            : s.pads()      ? kMostPaddedConfigs
                                            : kMostConfigs))
        list.push_back(encode(spec));
    return list;
}

double estimate(Problem const& p, Config const& config, GemmAlgorithm algorithm)
{
    constexpr double kSplitUs = 1.5;
    Resolved s = resolve(p, algorithm);
    if (!p.target.cuda || !decode(config, s))
        return 0;
    Product const product = productOf(s, geometryOf(p, false));
    kernel::Shape const& shape = product.shape;
    // Copies: each number is read and written, at about 1 TB/s.
    double const padding = !s.pads() ? 0
                                     : kSplitUs + 4e-6 * double((s.paddedA ? p.inputs[0].dims.volume() : 0) +
                                                                (s.padsB ? p.inputs[1].dims.volume() : 0));
    double const launches = double(product.outer.volume());
    if (s.isMma)
        return matrix::estimateUs(s.mma, shape.m, shape.n, shape.k, shape.batch, p.target.cuda->multiprocessors) *
                   launches +
               padding;
    return kernel::estimateUs(s.spec, shape, p.target.cuda->multiprocessors) * launches + padding +
           (s.spec.tf32x3 ? kSplitUs : 0);
}

std::unique_ptr<CudaKernels> generate(Problem const& p, Config const& config, GemmAlgorithm algorithm)
{
    Resolved s = resolve(p, algorithm);
    if (!decode(config, s))
        return noKernels(invalidArgument("the plan's configuration of a matrix product names no kernel"));
    return kernelsOf(s);
}

} // namespace

Support supports(Problem const& p, GemmAlgorithm algorithm)
{
    bool const gated = matrix_multiply::isGated(*p.node);
    if (gated && (algorithm == GemmAlgorithm::kHalfMma || !p.inputs[1].constant))
        return Support::no("gates columns of a known second operand by wgmma alone");
    if (gated && isPresent(p, Epilogue::kBias) && !p.inputs[size_t(Epilogue::kBias)].constant)
        return Support::no("a bias of gated columns that is no constant");
    DataType const type = typeOf(p, algorithm);
    bool const tf32x3 = algorithm == GemmAlgorithm::kTf32x3, isMma = algorithm == GemmAlgorithm::kHalfMma,
               normalizes = algorithm == GemmAlgorithm::kNorm;
    if (!isMma && (!p.target.cuda || p.target.cuda->capability != 90))
        return Support::no("its instructions (wgmma) exist on GPUs of compute capability 9.0");
    if (!p.target.cuda || p.target.cuda->capability < 80)
        return Support::no("needs compute capability 8.0");
    for (size_t i = 0; i < (isQuantized(type) ? size_t(matrix_multiply::kB) + 1 : p.inputs.size()); ++i)
        if (p.inputs[i].present && p.inputs[i].type != type)
            return Support::no(
                fmt::format("computes in {}, input {} is {}", nameOf(type), i, nameOf(p.inputs[i].type)));
    if (isNarrowFloat(type) && isPresent(p, Epilogue::kBias) && !p.inputs[size_t(Epilogue::kBias)].constant)
        return Support::no("a bias that is no constant");
    if (normalizes && !(p.inputs[size_t(Epilogue::kGamma)].constant && p.inputs[size_t(Epilogue::kBeta)].constant))
        return Support::no("a gamma or beta that is no constant");
    auto const& operations = p.node->attrsAs<matrix_multiply::Attrs>();
    ir::Value const &a = *p.node->inputs[0], &b = *p.node->inputs[1];
    if (!isMma)
        TW_SUPPORTS(sizesAreKnown(operations, a, b));
    if (isMma && supports(p, GemmAlgorithm::kHalf).ok && !resolve(p, GemmAlgorithm::kHalf).pads())
        return Support::no("tensor cores take these operands in a faster way");
    if ((tf32x3 || algorithm == GemmAlgorithm::kFirst) && !p.inputs[1].constant)
        return Support::no("the second operand is no constant");
    Resolved const s = resolve(p, algorithm);
    for (bool const most : {false, true}) {
        Product const product = productOf(s, geometryOf(p, most));
        if (char const* const why = unsupported(s, product.shape))
            return Support::no(why);
        if ((tf32x3 || normalizes || s.spec.firstNorm) && (product.outer.volume() != 1 || product.shape.batch != 1))
            return Support::no("collections that have their own second operands");
        if (normalizes && kernel::normCandidates(s.spec, product.shape, p.target.cuda->multiprocessors, 1).empty())
            return Support::no("rows that 2 to 8 blocks cannot hold in tiles of 128 to 256 columns");
        if (product.outer.volume() > kMostProductLaunches)
            return Support::no(fmt::format("its collections would take {} launches, {} are allowed",
                                           product.outer.volume(), kMostProductLaunches));
    }
    return Support::yes();
}

} // namespace gemm_f16

constinit GemmTactics const kCudaGemm{[](Problem const& p, GemmAlgorithm algorithm) {
                                          TW_SUPPORTS(algorithm == GemmAlgorithm::kFirst
                                                          ? supportsFirstNorm(p)
                                                          : supportsNorm(p, algorithm == GemmAlgorithm::kNorm));
                                          return gemm_f16::supports(p, algorithm);
                                      },
                                      gemm_f16::configs, gemm_f16::estimate, gemm_f16::generate};

} // namespace tw::ops
