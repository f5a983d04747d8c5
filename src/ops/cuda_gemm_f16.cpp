// SPDX-License-Identifier: Apache-2.0
#include "ops/cuda_gemm_f16.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/tf32.h"
#include "kernels/cuda/gemm_f16.h"
#include "ops/cuda_epilogue.h"

namespace tw::ops::gemm_f16 {

namespace {

namespace kernel = cuda::gemm_f16;
using matrix_multiply::Geometry;
using matrix_multiply::MatrixOperation;

constexpr size_t kMostConfigs = 8, kMostNormConfigs = 4, kMostExactConfigs = 6,
                 kMostTf32Configs = 4; // of FP32 there are other tactics

// What does not depend on the sizes of a run.
struct Settled
{
    CudaProductOp const* op = nullptr;
    ir::Node const* node = nullptr;
    kernel::Spec spec; // all but the tile, until a config is given
    // Of b as stored, and of the copy that is packed: 16 bytes or a multiple, and k contiguous where FP32 wants it.
    // paddedB = 0: b is read in place.
    int64_t rowsB = 0, columnsB = 0, paddedB = 0;
    bool transposesB = false;
    int biasAt = -1, gammaAt = -1, packedBAt = -1; // among the packed constants; beta is behind gamma
    bool normalizes = false;
    double epsilon = 0;
};

// The part of a run that one launch does, and the launches: each at offsets of its own.
struct Product
{
    kernel::Shape shape;
    Extents outer, aOuter, bOuter; // strides in elements
};

int64_t roundUp(int64_t v, int64_t step)
{
    return (v + step - 1) / step * step;
}

Product productOf(Settled const& s, Geometry const& g)
{
    Product p;
    kernel::Shape& shape = p.shape;
    ProductRows const r = rowsOf(g, s.spec.aAlongK, s.spec.bAlongK);
    Extents bBatch = r.bBatch;
    for (int d = 0; s.paddedB && d < bBatch.rank; ++d)
        bBatch[d] = bBatch[d] / (s.rowsB * s.columnsB) * (s.transposesB ? s.columnsB : s.rowsB) * s.paddedB;
    ProductBatches const b = batchesOf(r.batch, r.aBatch, bBatch);
    shape.m = r.m;
    shape.n = g.n;
    shape.k = g.k;
    shape.lda = r.lda;
    shape.ldb = s.paddedB ? s.paddedB : r.ldb;
    shape.batch = b.batch;
    shape.batchA = b.batchA;
    shape.batchB = b.batchB;
    shape.batchY = r.m * g.n;
    p.outer = b.outer;
    p.aOuter = b.aOuter;
    p.bOuter = b.bOuter;
    return p;
}

Settled settle(CudaProductOp const& op, Problem const& p, GemmF16Way way)
{
    Settled s;
    s.op = &op;
    s.node = p.node;
    matrix_multiply::Attrs const operations = op.operations(*p.node);
    Geometry const g = op.geometry(*p.node, p.inputs[0].dims, p.inputs[1].dims);
    kernel::Spec& spec = s.spec;
    s.normalizes = way == GemmF16Way::kNorm;
    spec.single = way != GemmF16Way::kHalf && !s.normalizes;
    spec.exact = way == GemmF16Way::kThreeTf32;
    spec.bias = isPresent(p, op.bias);
    spec.residual = isPresent(p, op.residual);
    spec.activateLast = true;
    if (op.activation)
        spec.activation = epilogueActivation(op.activation(*p.node), spec.exact);
    spec.aAlongK = operations.a != MatrixOperation::kTranspose;
    spec.bAlongK = operations.b != MatrixOperation::kNone;
    spec.constantB = p.inputs[1].constant != nullptr;
    ir::Value const& b = *p.node->inputs[1];
    bool const nKnown = ir::isStatic(b.shape) || operations.b == MatrixOperation::kVector ||
                        isKnown(b, operations.b == MatrixOperation::kTranspose ? 1 : 0);
    spec.aligned = nKnown && g.n % spec.alignment() == 0;
    spec.copies = spec.aligned && !spec.single;
    int packed = 0;
    if (spec.bias && !spec.single) // floats are what the kernel reads
        s.biasAt = packed++;
    if (s.normalizes) {
        s.gammaAt = packed;
        packed += 2;
        s.epsilon = op.epsilon(*p.node);
    }
    s.rowsB = spec.bAlongK ? g.n : g.k;
    s.columnsB = spec.bAlongK ? g.k : g.n;
    s.transposesB = spec.single && !spec.bAlongK && spec.constantB;
    int64_t const unit = 16 / spec.elementBytes();
    if (spec.constantB && s.rowsB * s.columnsB > 0 && (s.columnsB % unit || s.transposesB || spec.exact)) {
        s.packedBAt = packed++;
        s.paddedB = roundUp(s.transposesB ? s.rowsB : s.columnsB, unit);
        if (spec.exact)
            s.paddedB = kernel::splitRow(g.k);
        spec.bAlongK = spec.bAlongK || s.transposesB;
    }
    return s;
}

Product productOf(Settled const& s, Problem const& p, bool most)
{
    auto dims = [&](size_t i) -> Extents const& { return most ? p.inputs[i].maxDims : p.inputs[i].dims; };
    return productOf(s, s.op->geometry(*s.node, dims(0), dims(1)));
}

Config encode(kernel::Spec const& s)
{
    Config c{s.tileP, s.tileQ, s.stages, s.groups, s.pingPong, s.split, s.multicast, s.swap, s.copies};
    if (s.norm)
        c.push_back(s.norm);
    return c;
}

// False: nothing that encode() makes, or no kernel.
bool decode(Config const& c, bool normalizes, kernel::Spec& s)
{
    constexpr size_t kNumbers = 9;
    constexpr int64_t kMost = 256;
    if (!isConfig(c, kNumbers + normalizes, 0, kMost) || (normalizes && c[kNumbers] == 0))
        return false;
    s.norm = normalizes ? int(c[kNumbers]) : 0;
    s.tileP = int(c[0]);
    s.tileQ = int(c[1]);
    s.stages = int(c[2]);
    s.groups = int(c[3]);
    s.pingPong = c[4] != 0;
    s.split = int(c[5]);
    s.multicast = int(c[6]);
    s.swap = c[7] != 0;
    s.copies = c[8] != 0;
    return !kernel::unsupported(s);
}

// Matrices of b, turned round where the kernel wants it; each row with zeros behind.
template <class T>
std::string packMatrices(Settled const& s, Blob const& b)
{
    constexpr int64_t kBlock = 16; // keeps both sides in L1
    int64_t const rows = s.transposesB ? s.columnsB : s.rowsB, columns = s.transposesB ? s.rowsB : s.columnsB;
    int64_t const count = int64_t(b.sizeBytes() / sizeof(T)) / (rows * columns);
    std::string out(size_t(count * rows * s.paddedB) * sizeof(T), '\0');
    auto* to = reinterpret_cast<T*>(out.data());
    T const* from = b.as<T>();
    for (int64_t i = 0; i < count; ++i, to += rows * s.paddedB, from += rows * columns) {
        if (!s.transposesB) {
            for (int64_t r = 0; r < rows; ++r)
                std::memcpy(to + r * s.paddedB, from + r * columns, size_t(columns) * sizeof(T));
            continue;
        }
        for (int64_t r0 = 0; r0 < rows; r0 += kBlock)
            for (int64_t c0 = 0; c0 < columns; c0 += kBlock)
                for (int64_t r = r0; r < std::min(r0 + kBlock, rows); ++r)
                    for (int64_t c = c0; c < std::min(c0 + kBlock, columns); ++c)
                        to[r * s.paddedB + c] = from[c * rows + r];
    }
    return out;
}

// High and low parts of rows that hold numbers in their first half.
void splitRows(std::string& packed, int64_t row)
{
    auto* v = reinterpret_cast<float*>(packed.data());
    for (float* const end = v + packed.size() / sizeof(float); v != end; v += row)
        for (int64_t i = 0; i < row / 2; ++i) {
            float const whole = v[i];
            v[i] = roundToTf32(whole);
            v[row / 2 + i] = roundToTf32(whole - v[i]);
        }
}

std::string packMatrices(Settled const& s, Blob const& b)
{
    std::string packed = s.spec.single ? packMatrices<float>(s, b) : packMatrices<uint16_t>(s, b);
    if (s.spec.exact)
        splitRows(packed, s.paddedB);
    return packed;
}

Result<void> run(Settled const& s, CudaLaunch const& launch, RunArgs& args)
{
    Product const p = productOf(s, s.op->geometry(*s.node, args.inputs[0].dims, args.inputs[1].dims));
    if (char const* const why = kernel::unsupported(s.spec, p.shape))
        return Error{ErrorCode::kFailedExecution, "layer '" + s.node->name + "': shapes " + args.inputs[0].dims.str() +
                                                      " and " + args.inputs[1].dims.str() +
                                                      " are not among those that its kernel was made for: " + why};
    kernel::Shape shape = p.shape;
    if (s.spec.exact)
        shape.lda = 0; // its parts are dense
    kernel::Launch l = kernel::launch(s.spec, shape, launch.multiprocessors());
    kernel::Norm norm;
    if (s.normalizes) {
        kernel::FillArgs fill;
        fill.parts = norm.parts = static_cast<uint64_t*>(args.workspace);
        fill.count = kernel::normParts(s.spec, shape);
        TW_TRY(launch(1, blocksFor(fill.count, 256), 256, fill));
        norm.rows = int32_t(kernel::normRows(s.spec, shape));
        norm.gamma = static_cast<float const*>(launch.packed(s.gammaAt));
        norm.beta = static_cast<float const*>(launch.packed(s.gammaAt + 1));
        norm.epsilon = float(s.epsilon);
    }
    if (s.spec.bias)
        l.args.bias =
            static_cast<float const*>(s.biasAt >= 0 ? launch.packed(s.biasAt) : args.inputs[size_t(s.op->bias)].data);
    auto at = [&](void const* base, int64_t elements) {
        return static_cast<std::byte const*>(base) + elements * s.spec.elementBytes();
    };
    if (s.spec.exact) {
        kernel::SplitArgs split;
        split.a = args.inputs[0].data;
        split.to = args.workspace;
        split.lda = p.shape.lda;
        split.rows = int32_t(p.shape.m);
        split.k = int32_t(p.shape.k);
        split.padded = int32_t(kernel::splitRow(p.shape.k) / 2);
        TW_TRY(launch(1, kernel::splitBlocks(split), 256, split));
    }
    void const* const b = s.packedBAt >= 0 ? launch.packed(s.packedBAt) : args.inputs[1].data;
    int64_t y = 0;
    Counter outer(p.outer);
    do {
        void const* const aAt = s.spec.exact ? args.workspace : at(args.inputs[0].data, outer.offset(p.aOuter));
        void const* const bAt = at(b, outer.offset(p.bOuter));
        TW_ASSIGN(cuda::TensorMap const mapP, launch.encode(l.p, s.spec.swap ? bAt : aAt));
        TW_ASSIGN(cuda::TensorMap const mapQ, launch.encode(l.q, s.spec.swap ? aAt : bAt));
        l.args.y = static_cast<std::byte*>(args.outputs[0].data) + y * s.spec.elementBytes();
        if (s.spec.residual)
            l.args.residual = at(args.inputs[size_t(s.op->residual)].data, y);
        if (!s.spec.copies) {
            TW_TRY(launch.withGeometry(0, l.geometry, {&mapP, &mapQ, &l.args}));
        } else {
            TW_ASSIGN(cuda::TensorMap const mapY, launch.encode(l.y, l.args.y));
            cuda::TensorMap mapResidual;
            if (s.spec.residual) {
                TW_ASSIGN(mapResidual, launch.encode(l.y, l.args.residual));
            }
            if (s.normalizes && s.spec.residual) {
                TW_TRY(launch.withGeometry(0, l.geometry, {&mapP, &mapQ, &mapY, &mapResidual, &norm, &l.args}));
            } else if (s.normalizes) {
                TW_TRY(launch.withGeometry(0, l.geometry, {&mapP, &mapQ, &mapY, &norm, &l.args}));
            } else if (s.spec.residual) {
                TW_TRY(launch.withGeometry(0, l.geometry, {&mapP, &mapQ, &mapY, &mapResidual, &l.args}));
            } else {
                TW_TRY(launch.withGeometry(0, l.geometry, {&mapP, &mapQ, &mapY, &l.args}));
            }
        }
        y += p.shape.batchY * p.shape.batch;
    } while (outer.next());
    return {};
}

} // namespace

Support supports(CudaProductOp const& op, Problem const& p, GemmF16Way way)
{
    bool const normalizes = way == GemmF16Way::kNorm;
    DataType const type = way == GemmF16Way::kHalf || normalizes ? DataType::kHalf : DataType::kFloat;
    bool const exact = way == GemmF16Way::kThreeTf32;
    if (!p.cuda || p.cuda->capability != 90)
        return Support::no("its instructions (wgmma) exist on GPUs of compute capability 9.0");
    for (size_t i = 0; i < p.inputs.size(); ++i)
        if (p.inputs[i].present && p.inputs[i].type != type)
            return Support::no(std::string("computes in ") + nameOf(type) + ", input " + std::to_string(i) + " is " +
                               nameOf(p.inputs[i].type));
    if (type == DataType::kHalf && isPresent(p, op.bias) && !p.inputs[size_t(op.bias)].constant)
        return Support::no("a bias that is no constant");
    if (normalizes && !(p.inputs[size_t(op.gamma)].constant && p.inputs[size_t(op.beta)].constant))
        return Support::no("a gamma or beta that is no constant");
    matrix_multiply::Attrs const operations = op.operations(*p.node);
    ir::Value const &a = *p.node->inputs[0], &b = *p.node->inputs[1];
    bool const bStatic = ir::isStatic(b.shape), aTransposed = operations.a == MatrixOperation::kTranspose;
    if (!bStatic && !isKnown(a, aTransposed ? 1 : 0) && !isKnown(b, operations.b == MatrixOperation::kNone ? 1 : 0))
        return Support::no("the summed dimension is not known when the engine is built");
    if (aTransposed && !isKnown(a, 0))
        return Support::no("the rows of a transposed first operand are not known when the engine is built");
    if (operations.b == MatrixOperation::kNone && !bStatic && !isKnown(b, 0))
        return Support::no("the columns of the second operand are not known when the engine is built");
    if (exact && !p.inputs[1].constant)
        return Support::no("the second operand is no constant");
    Settled const s = settle(op, p, way);
    for (bool const most : {false, true}) {
        Product const product = productOf(s, p, most);
        if (char const* const why = kernel::unsupported(s.spec, product.shape))
            return Support::no(why);
        if (exact && (product.outer.volume() != 1 || product.shape.batch != 1))
            return Support::no("collections that have their own second operands");
        if (normalizes && (product.outer.volume() != 1 || product.shape.batch != 1))
            return Support::no("collections that have their own second operands");
        if (normalizes && kernel::normCandidates(s.spec, product.shape, p.cuda->multiprocessors, 1).empty())
            return Support::no("rows that 2 to 8 blocks cannot hold in tiles of 128 to 256 columns");
        if (product.outer.volume() > kMostProductLaunches)
            return Support::no("its collections would take " + std::to_string(product.outer.volume()) + " launches, " +
                               std::to_string(kMostProductLaunches) + " are allowed");
    }
    return Support::yes();
}

std::vector<Config> configs(CudaProductOp const& op, Problem const& p, GemmF16Way way)
{
    Settled const s = settle(op, p, way);
    std::vector<Config> list;
    if (s.normalizes) {
        for (kernel::Spec const& spec :
             kernel::normCandidates(s.spec, productOf(s, p, false).shape, p.cuda->multiprocessors, kMostNormConfigs))
            list.push_back(encode(spec));
        return list;
    }
    for (kernel::Spec const& spec : kernel::candidates(s.spec, productOf(s, p, false).shape, p.cuda->multiprocessors,
                                                       s.spec.exact    ? kMostExactConfigs
                                                       : s.spec.single ? kMostTf32Configs
                                                                       : kMostConfigs))
        list.push_back(encode(spec));
    return list;
}

double estimate(CudaProductOp const& op, Problem const& p, Config const& config, GemmF16Way way)
{
    constexpr double kSplitUs = 1.5;
    Settled s = settle(op, p, way);
    if (!p.cuda || !decode(config, s.normalizes, s.spec))
        return 0;
    Product const product = productOf(s, p, false);
    return kernel::estimateUs(s.spec, product.shape, p.cuda->multiprocessors) * double(product.outer.volume()) +
           (s.spec.exact ? kSplitUs : 0);
}

CudaKernels generate(CudaProductOp const& op, Problem const& p, Config const& config, GemmF16Way way)
{
    Settled s = settle(op, p, way);
    if (!decode(config, s.normalizes, s.spec))
        return noKernels(invalidArgument("the plan's configuration of a matrix product names no kernel"));
    CudaKernels out = wholeKernels(kernel::kKernel, kernel::source(s.spec), s.spec.sharedBytes());
    if (s.spec.exact) {
        out.source += kernel::splitSource();
        out.names.push_back(kernel::kSplitKernel);
        out.workspace = [s](std::span<TensorRef const> in, std::span<TensorRef const>) {
            Product const product = productOf(s, s.op->geometry(*s.node, in[0].dims, in[1].dims));
            return product.shape.m * kernel::splitRow(product.shape.k) * int64_t(sizeof(float));
        };
    }
    if (s.normalizes) {
        out.names.push_back(kernel::kFillKernel);
        out.workspace = [s](std::span<TensorRef const> in, std::span<TensorRef const>) {
            Product const product = productOf(s, s.op->geometry(*s.node, in[0].dims, in[1].dims));
            return kernel::normParts(s.spec, product.shape) * int64_t(sizeof(uint64_t));
        };
    }
    if (s.biasAt >= 0)
        out.packedInputs.push_back(op.bias);
    if (s.normalizes)
        out.packedInputs.insert(out.packedInputs.end(), {op.gamma, op.beta});
    if (s.packedBAt >= 0)
        out.packedInputs.push_back(1);
    if (!out.packedInputs.empty()) {
        TensorSpec const bias = s.biasAt >= 0 ? p.inputs[size_t(op.bias)] : TensorSpec();
        std::vector<TensorSpec> norm;
        if (s.normalizes)
            norm = {p.inputs[size_t(op.gamma)], p.inputs[size_t(op.beta)]};
        out.pack = [bias, norm, b = p.inputs[1].constant, s]() -> Result<std::vector<std::string>> {
            std::vector<std::string> parts;
            if (s.biasAt >= 0)
                parts.push_back(packFloats(bias, bias.dims.volume()));
            for (TensorSpec const& t : norm)
                parts.push_back(packFloats(t, t.dims.volume()));
            if (s.packedBAt >= 0)
                parts.push_back(packMatrices(s, *b));
            return parts;
        };
    }
    out.run = [s](CudaLaunch const& launch, RunArgs& args) { return run(s, launch, args); };
    return out;
}

} // namespace tw::ops::gemm_f16
