// SPDX-License-Identifier: Apache-2.0
#include "ops/matrix_multiply/op.h"

#include <algorithm>

#include "families/gemm/layer_facts.h"
#include "ir/signs.h"
#include "tactic/domain.h"
#include "tactic/registry.h"

namespace tw::ops::matrix_multiply {

namespace {

using ir::Dim;
using ir::Shape;

int matrixRank(MatrixOperation op)
{
    return op == MatrixOperation::kVector ? 1 : 2;
}

// y of a product of matrices or vectors.
Result<Shape> productShape(ir::InferContext& ctx)
{
    auto const& attrs = ctx.attrs<Attrs>();
    for (int i = 0; i < 2; ++i) {
        MatrixOperation const op = i == 0 ? attrs.a : attrs.b;
        if (op < MatrixOperation::kNone || op > MatrixOperation::kVector)
            return ctx.error("matrix operation {} of input {} is unknown (allowed: 0 to 2)", int(op), i);
        if (!isReal(ctx.type(i)))
            return ctx.error(ctx.describe(i) + " must be f32, f16 or i8");
        if (ctx.rank(i) < matrixRank(op))
            return ctx.error("{} must have at least {} dimensions", ctx.describe(i), matrixRank(op));
    }
    if (ctx.type(0) != ctx.type(1))
        return ctx.error(ctx.describe(0) + " and " + ctx.describe(1) + " must have one type");
    Shape const &a = ctx.shape(0), &b = ctx.shape(1);
    size_t const aBatch = a.size() - size_t(matrixRank(attrs.a)), bBatch = b.size() - size_t(matrixRank(attrs.b));
    if (aBatch != bBatch)
        return ctx.error("{} has {} collection dimensions, {} has {}; they must be equal (add leading dimensions of 1)",
                         ctx.describe(0), aBatch, ctx.describe(1), bBatch);
    std::string why;
    auto y = ir::broadcast(Shape(a.begin(), a.begin() + int64_t(aBatch)), Shape(b.begin(), b.begin() + int64_t(bBatch)),
                           why);
    if (!y)
        return ctx.error("collections of " + ctx.describe(0) + " and " + ctx.describe(1) + ": " + why);
    Dim const aK = attrs.a == MatrixOperation::kTranspose ? a[aBatch] : a.back();
    Dim const bK = attrs.b == MatrixOperation::kTranspose ? b.back() : b[bBatch];
    if (aK.isConst() && bK.isConst() && !(aK == bK))
        return ctx.error(ctx.describe(0) + " and " + ctx.describe(1) +
                         " cannot be multiplied: the summed dimensions are " + aK.str() + " and " + bK.str());
    if (attrs.a != MatrixOperation::kVector)
        y->push_back(attrs.a == MatrixOperation::kTranspose ? a.back() : a[aBatch]);
    if (attrs.b != MatrixOperation::kVector)
        y->push_back(attrs.b == MatrixOperation::kTranspose ? b[bBatch] : b.back());
    return std::move(*y);
}

Result<Shape> connectedShape(ir::InferContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    if (a.a != MatrixOperation::kNone || a.b != MatrixOperation::kTranspose)
        return ctx.error("a fully connected layer has input 1 transposed, and nothing else");
    Shape const &x = ctx.shape(0), &w = ctx.shape(1);
    if (x.size() < 3)
        return ctx.error(ctx.describe(0) + " must have at least 3 dimensions");
    if (!isReal(ctx.type(0)))
        return ctx.error(ctx.describe(0) + " must be f32, f16 or i8");
    if (ctx.type(1) != ctx.type(0) || (ctx.has(2) && ctx.type(2) != biasType(ctx)))
        return ctx.error("input, kernel and bias must have one type (the bias of i8: f32), but they are " +
                         ctx.describe(0) + ", " + ctx.describe(1) + (ctx.has(2) ? ", " + ctx.describe(2) : ""));
    if (!x[x.size() - 3].isConst())
        return ctx.error("the channel dimension of " + ctx.describe(0) + " must not be a wildcard");
    if (w.empty() || !isStatic(w))
        return ctx.error("kernel " + ctx.describe(1) + " must have known dimensions, outputs first");
    Dim const k = w[0], kernelVolume = volume(Shape(w.begin() + 1, w.end()));
    Dim const inputVolume = volume(Shape(x.end() - 3, x.end()));
    if (inputVolume.isConst() && !(inputVolume == kernelVolume))
        return ctx.error("kernel " + ctx.describe(1) + " has " + kernelVolume.str() +
                         " weights for each output, the last three dimensions of " + ctx.describe(0) + " have volume " +
                         inputVolume.str());
    if (ctx.has(Epilogue::kBias) && !(ctx.rank(2) == 1 && ctx.shape(2)[0] == k))
        return ctx.error("bias " + ctx.describe(2) + " must have shape [" + k.str() + "]");
    Shape y(x.begin(), x.end() - 3);
    y.push_back(k);
    y.emplace_back(1);
    y.emplace_back(1);
    return y;
}

// `n`: columns of y.
Result<void> checkBias(ir::InferContext& ctx, Dim const& n)
{
    constexpr int kBias = Epilogue::kBias;
    if (ctx.attrs<Attrs>().b == MatrixOperation::kVector)
        return ctx.error("a bias needs columns, but input 1 is a vector");
    Dim const given = ctx.rank(kBias) == 1 ? ctx.shape(kBias)[0] : Dim(-1);
    if (ctx.type(kBias) != biasType(ctx) || ctx.rank(kBias) != 1 || (given.isConst() && n.isConst() && !(given == n)))
        return ctx.error("bias " + ctx.describe(kBias) + " must be " + nameOf(biasType(ctx)) + "[" + n.str() + "]");
    return {};
}

Result<void> checkNorm(ir::InferContext& ctx, Dim const& n)
{
    auto const& a = ctx.attrs<Attrs>();
    double const epsilon = a.epilogue.epsilon;
    if (!std::isfinite(epsilon) || epsilon < 0)
        return ctx.error("epsilon {} must be finite and not negative", epsilon);
    if (a.a == MatrixOperation::kVector || a.b == MatrixOperation::kVector || a.connected)
        return ctx.error("rows are normalized, but an operand is a vector or connected");
    for (int i : {Epilogue::kGamma, Epilogue::kBeta})
        if (!ctx.has(i) || ctx.type(i) != ctx.type(0) || ctx.rank(i) != 1 ||
            (n.isConst() && ctx.shape(i)[0].isConst() && !(n == ctx.shape(i)[0])))
            return ctx.error(std::string(i == Epilogue::kGamma ? "gamma " : "beta ") +
                             (ctx.has(i) ? ctx.describe(i) : "") + " must be " + nameOf(ctx.type(0)) + "[" + n.str() +
                             "]");
    if (!ctx.has(Epilogue::kBias) || !ctx.has(Epilogue::kResidual))
        return ctx.error("rows are normalized behind a bias and a residual only");
    return {};
}

Result<void> checkFirstNorm(ir::InferContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    if (a.firstNorm < FirstNorm::kNone || a.firstNorm > FirstNorm::kRms)
        return ctx.error("the norm {} of the rows of input 0 is unknown (allowed: 0 to 2)", int(a.firstNorm));
    if (!std::isfinite(a.firstEpsilon) || a.firstEpsilon < 0)
        return ctx.error("first_epsilon {} must be finite and not negative", a.firstEpsilon);
    if (isQuantized(ctx.type(0)))
        return ctx.error("the rows of " + ctx.describe(0) + " are normalized first, which is for f32 and f16");
    if (a.a != MatrixOperation::kNone || a.connected)
        return ctx.error("the rows of input 0 are normalized first, but it is transposed, a vector or connected");
    if (ctx.has(Epilogue::kGamma) || ctx.has(Epilogue::kBeta))
        return ctx.error("rows of the product and of input 0 are not both normalized");
    return {};
}

// `y`: the product's shape, of which half of the columns stay.
Result<void> takeGate(ir::InferContext& ctx, Shape& y)
{
    auto const& a = ctx.attrs<Attrs>();
    if (isQuantized(ctx.type(0)))
        return ctx.error("columns are gated, but input 0 is i8; gates are for f32 and f16");
    if (a.epilogue.hasSteps())
        return ctx.error("a gated product has no steps");
    if (a.connected || a.b == MatrixOperation::kVector)
        return ctx.error("columns are gated, but input 1 is a vector or connected");
    for (int i : {Epilogue::kResidual, Epilogue::kGamma, Epilogue::kBeta})
        if (ctx.has(i))
            return ctx.error("a gated product has neither a residual nor a norm, but " + ctx.describe(i));
    Dim const n = y.back();
    if (!n.isConst() || n.value() % 2 != 0)
        return ctx.error("gates and what they let through are halves of " + n.str() +
                         " columns, which must be a known even number");
    y.back() = Dim(n.value() / 2);
    return {};
}

// How many products each sum has; a number where either operand tells.
Dim factorsOf(Attrs const& attrs, Shape const& a, Shape const& b)
{
    if (attrs.connected)
        return volume(Shape(b.begin() + 1, b.end()));
    Dim const inA = attrs.a == MatrixOperation::kTranspose ? a[a.size() - 2] : a.back();
    Dim const inB = attrs.b == MatrixOperation::kNone ? b[b.size() - 2] : b.back();
    return inA.isConst() ? inA : inB;
}

Result<void> infer(ir::InferContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    TW_ASSIGN(Shape y, a.connected ? connectedShape(ctx) : productShape(ctx));
    Dim const n = y.empty() ? Dim(1) : a.connected ? y[y.size() - 3] : y.back();
    if (!a.connected && ctx.has(Epilogue::kBias))
        TW_TRY(checkBias(ctx, n));
    if (a.firstNorm != FirstNorm::kNone)
        TW_TRY(checkFirstNorm(ctx));
    if (a.gated)
        TW_TRY(takeGate(ctx, y));
    TW_ASSIGN(DataType const type, inferOutputType(ctx, a.epilogue, factorsOf(a, ctx.shape(0), ctx.shape(1))));
    ctx.output(0, type, std::move(y));
    if (ctx.has(Epilogue::kGamma) || ctx.has(Epilogue::kBeta))
        TW_TRY(checkNorm(ctx, n));
    return inferEpilogue(ctx, a.epilogue, a.b == MatrixOperation::kVector ? Dim(1) : n);
}

Tolerance tolerance(ir::Node const& node, DataType type)
{
    auto const& a = node.attrsAs<Attrs>();
    ir::Value const& b = *node.inputs[kB];
    if (sumsIntegers(node))
        return integerTolerance(a.epilogue, type);
    if (hasNorm(node) || !b.constant)
        return epilogueTolerance(node, a.epilogue, type, [] { return 0.; });
    return epilogueTolerance(node, a.epilogue, type, [&] {
        // Columns of all collections: the largest of each is a bound of all.
        int64_t const count = int64_t(b.constant->data->sizeBytes()) / sizeOf(b.type);
        TensorRef const values{b.type, {count}, const_cast<void*>(b.constant->data->data())};
        bool const byRows = a.b != MatrixOperation::kNone;
        int64_t const inner = b.shape.back().value(), rows = b.rank() > 1 ? b.shape[size_t(b.rank() - 2)].value() : 1;
        int64_t const k = a.connected ? count / std::max<int64_t>(b.shape[0].value(), 1) : byRows ? inner : rows;
        int64_t const step = byRows ? 1 : inner;
        double largest = 0;
        for (int64_t first = 0; k > 0 && first < count; first += byRows ? k : rows * inner)
            for (int64_t column = 0; column < (byRows ? 1 : inner); ++column) {
                double squares = 0;
                for (int64_t p = 0; p < k; ++p) {
                    double const v = values.get(first + column + p * step);
                    squares += v * v;
                }
                largest = std::max(largest, squares);
            }
        return hasFirstNorm(node) ? 3 * largest : largest; // normalized numbers have a variance of 1, not 1/3
    });
}

void domain(ir::Node const& node, int input, Domain& domain)
{
    auto const& a = node.attrsAs<Attrs>();
    Dim const k = factorsOf(a, node.inputs[kA]->shape, node.inputs[kB]->shape);
    constexpr double kUsual = 256; // where only a run tells
    integerDomain(node, a.epilogue, input, k.isConst() ? double(k.value()) : kUsual, domain);
}

double operations(ir::Node const& node, std::span<TensorRef const> in, std::span<TensorRef const>)
{
    Geometry const g = geometryOf(node, in[kA].dims, in[kB].dims);
    return 2.0 * double(g.batch.volume()) * double(g.m) * double(g.n) * double(g.k);
}

} // namespace

Geometry geometryOf(Attrs const& attrs, Extents const& a, Extents const& b)
{
    Geometry g;
    if (attrs.connected) {
        g.m = a.volume(0, a.rank - 3);
        g.n = b[0];
        g.k = a.volume(a.rank - 3, a.rank);
        g.aRow = g.bColumn = g.k;
        g.aColumn = g.bRow = 1;
        return g;
    }
    Extents const as = stridesOf(a), bs = stridesOf(b);
    int const batchRank = a.rank - matrixRank(attrs.a);
    for (int d = 0; d < batchRank; ++d) {
        g.batch.push(a[d] == 1 ? b[d] : a[d]);
        g.aBatch.push(a[d] == 1 ? 0 : as[d]);
        g.bBatch.push(b[d] == 1 ? 0 : bs[d]);
    }
    int const a0 = batchRank, a1 = batchRank + 1; // rows and columns as stored
    if (attrs.a == MatrixOperation::kVector) {
        g.k = a[a0];
        g.aColumn = 1;
    } else {
        bool const t = attrs.a == MatrixOperation::kTranspose;
        g.m = a[t ? a1 : a0];
        g.k = a[t ? a0 : a1];
        g.aRow = as[t ? a1 : a0];
        g.aColumn = as[t ? a0 : a1];
    }
    if (attrs.b == MatrixOperation::kVector) {
        g.bRow = 1;
    } else {
        bool const t = attrs.b == MatrixOperation::kTranspose;
        g.n = b[t ? a0 : a1];
        g.bRow = bs[t ? a1 : a0];
        g.bColumn = bs[t ? a0 : a1];
    }
    return g;
}

bool isBare(ir::Node const& node)
{
    if (node.op != &def() || node.body || hasNorm(node) || hasFirstNorm(node) || hasInput(node, Epilogue::kResidual))
        return false;
    auto const& a = node.attrsAs<Attrs>();
    return !a.gated && !a.epilogue.activation.any() && !a.epilogue.hasSteps() &&
           (a.connected || !hasInput(node, Epilogue::kBias));
}

bool isBareProduct(ir::Node const& node)
{
    return isBare(node) && !node.attrsAs<Attrs>().connected;
}

bool isBareConnected(ir::Node const& node)
{
    return isBare(node) && node.attrsAs<Attrs>().connected;
}

// Of 2 to 8 blocks that have 128, 192 or 256 columns each.
bool takesRows(int64_t n)
{
    constexpr int64_t kColumns[] = {128, 192, 256};
    return std::any_of(std::begin(kColumns), std::end(kColumns),
                       [&](int64_t columns) { return n % columns == 0 && n / columns >= 2 && n / columns <= 8; });
}

namespace {

void inspect(LayerFacts& facts)
{
    auto const& a = facts.attrs<Attrs>();
    if (hasNorm(facts.node) || hasFirstNorm(facts.node) || a.gated)
        facts.kind("Myelin", ""); // 8.5 gives such a subgraph to another compiler
    else if (a.connected)
        addFullyConnected(facts, a.epilogue);
    else
        addProduct(facts, a);
}

} // namespace

constinit ir::OpDef const kDef{
    .name = "matrix_multiply",
    TW_OP_PARTS(Attrs),
    .inputs = {2, kInputs},
    .domain = domain,
    .tolerance = tolerance,
    .isNonNegative = [](ir::Node const& n,
                        ir::Signs&) { return !isGated(n) && epilogueIsNonNegative(n, n.attrsAs<Attrs>().epilogue); },
    .inspect = inspect,
    .operations = operations,
};

} // namespace tw::ops::matrix_multiply
