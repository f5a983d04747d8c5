// SPDX-License-Identifier: Apache-2.0
// Makes one node of a norm of few rows and the product that reads them.
//   before: n = layer_norm(x, gamma, beta), y = f(n w + b + r)    after: y = matrix_multiply(x, gamma w, beta w + b, r),
// which normalizes the rows of x first; the same of RMSNorm. gamma w and beta w + b are constants of the engine, with
// recipes for refits. A step of a decoder reads one row for each sequence: a norm of it is a kernel of 1.8 us, nearly as
// long as a product, whose own kernel has the time to measure the rows (H200).
// In FP16 on GPUs of capability 9.0, where the first optimization profile, for which the graph is made, has up to 16
// rows; the tuner still has two kernels, one after the other, for other profiles and to choose. Where several products
// read the norm, each of them normalizes. Expects Form::kFused: products have their biases, residuals, activations and
// gates. Stands after lower_precision, where types are known; where the clock chooses them, it runs once more. The op's
// reference is the oracle: the node has no body.
// Leaves alone: norms that others than products read, weights that others read, too, or that FP16 would not hold as well
// with gamma in them, and nodes whose wishes of the user differ.
#include <algorithm>
#include <cmath>

#include "ops/elementwise/op.h"
#include "ops/layer_norm/op.h"
#include "ops/matrix_multiply/op.h"
#include "passes/few_rows.h"
#include "passes/fuse_nodes.h"
#include "passes/list.h"
#include "passes/rewrite.h"
#include "recipe/recipes.h"
#include "tactic/blocks.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace norm_matmul {
namespace {

using ops::Epilogue;
using ops::matrix_multiply::FirstNorm;
using ops::matrix_multiply::MatrixOperation;

constexpr int kCapability = 90;
constexpr int64_t kUnit = 8; // numbers of FP16 in 16 bytes
constexpr DataType kType = DataType::kHalf;

// In FP16, and the user has no wish for more.
bool isHalf(ir::Node const& n)
{
    auto const isFloat = [](auto const& wish) { return wish.byUser && !isNarrowFloat(wish.value); };
    return n.outputs[0]->type == kType && !isFloat(n.precision) && std::ranges::none_of(n.outputTypes, isFloat);
}

bool isConstantOrNone(ir::Node const& n, int input)
{
    return input < 0 || !ops::hasInput(n, input) || n.inputs[size_t(input)]->isConstant();
}

bool isNorm(ir::Node const& n)
{
    if (n.op != &ops::layer_norm::def())
        return false;
    auto const& a = n.attrsAs<ops::layer_norm::Attrs>();
    return !a.integers && a.isOfRows() && !a.activation.any() && n.outputs[0]->rank() > 1 &&
           a.axis == n.outputs[0]->rank() - 1 && n.inputs[0]->type == kType && isConstantOrNone(n, a.gammaInput()) &&
           isConstantOrNone(n, a.betaInput());
}

// A product of the rows of `normalized` and one constant matrix.
bool takesNorm(ir::Graph const& g, ir::Node const& n, ir::Value const* normalized)
{
    if (n.op != &ops::matrix_multiply::def() || ops::sumsIntegers(n) || ops::matrix_multiply::hasNorm(n) ||
        ops::matrix_multiply::hasFirstNorm(n) || std::ranges::count(n.inputs, normalized) != 1 ||
        n.inputs[0] != normalized || !isHalf(n))
        return false;
    auto const& a = n.attrsAs<ops::matrix_multiply::Attrs>();
    return a.a == MatrixOperation::kNone && a.b != MatrixOperation::kVector && !a.connected &&
           isConstantOf(*n.inputs[1], 2) && g.useCount(n.inputs[1]) == 1 && isConstantOrNone(n, Epilogue::kBias);
}

// gamma w, beta w + b.
class Weights
{
public:
    Weights(ir::Node const& norm, ir::Node const& product, recipe::Recipes* recipes)
        : product_(product), w_(*product.inputs[1]), recipes_(recipes)
    {
        auto const& a = norm.attrsAs<ops::layer_norm::Attrs>();
        gamma_ = a.hasGamma ? norm.inputs[size_t(a.gammaInput())] : nullptr;
        beta_ = a.hasBeta ? norm.inputs[size_t(a.betaInput())] : nullptr;
        isByRows_ = product.attrsAs<ops::matrix_multiply::Attrs>().b == MatrixOperation::kTranspose;
        Extents const dims = ir::extentsOf(w_.shape);
        k_ = dims[dims.rank - (isByRows_ ? 1 : 2)];
        n_ = dims[dims.rank - (isByRows_ ? 2 : 1)];
    }
    ir::Value const* bias() const
    {
        return ops::hasInput(product_, Epilogue::kBias) ? product_.inputs[Epilogue::kBias] : nullptr;
    }
    bool changesMatrix() const { return gamma_; }
    bool changesBias() const { return beta_; }
    int64_t columns() const { return n_; }

    Result<BlobPtr> matrix() const
    {
        recipe::Computation c(recipes_);
        ir::Value* const gamma = c.take(*gamma_, isByRows_ ? Extents{1, k_} : Extents{k_, 1});
        TW_ASSIGN(ir::Value * y,
                  c.add(ops::elementwise::def(), ops::elementwise::Attrs(ops::elementwise::Operation::kProd),
                        {c.take(w_, matrixDims()), gamma}));
        return c.finish(y);
    }
    Result<BlobPtr> newBias() const
    {
        recipe::Computation c(recipes_);
        std::vector<ir::Value*> in{c.take(*beta_, {1, k_}), c.take(w_, matrixDims())};
        if (bias())
            in.push_back(c.take(*bias()));
        ops::matrix_multiply::Attrs const attrs(MatrixOperation::kNone,
                                                isByRows_ ? MatrixOperation::kTranspose : MatrixOperation::kNone);
        TW_ASSIGN(ir::Value * y, c.add(ops::matrix_multiply::def(), attrs, in));
        return c.finish(y);
    }
    // Whether FP16 holds each column as well as it did: all numbers, and few of them in the steps below 2^-14.
    bool isFine(Blob const& matrix) const
    {
        constexpr double kLeast = 0x1p-15; // of a column's usual size, where steps are 2^-24
        std::vector<double> const after = squares({kType, matrixDims(), bytes(matrix)});
        auto const isSmall = [&](double sum) { return sum < kLeast * kLeast * double(k_); };
        if (!std::ranges::all_of(after, [](double sum) { return std::isfinite(sum); }))
            return false;
        if (std::ranges::none_of(after, isSmall))
            return true;
        std::vector<double> const before = squares(elementsOf(&w_));
        for (size_t j = 0; j < after.size(); ++j)
            if (isSmall(after[j]) && before[j] > 0) // not what was zeros before
                return false;
        return true;
    }
    static bool isFinite(Blob const& vector, int64_t count)
    {
        TensorRef const t{kType, {count}, bytes(vector)};
        for (int64_t i = 0; i < count; ++i)
            if (!std::isfinite(t.get(i)))
                return false;
        return true;
    }

private:
    static void* bytes(Blob const& b) { return const_cast<void*>(b.data()); }
    Extents matrixDims() const { return isByRows_ ? Extents{n_, k_} : Extents{k_, n_}; }
    // Of each column of the product.
    std::vector<double> squares(TensorRef const& w) const
    {
        std::vector<double> sums(static_cast<size_t>(n_));
        int64_t const rows = isByRows_ ? n_ : k_, columns = isByRows_ ? k_ : n_;
        float buffer[ops::kBlock];
        for (int64_t row = 0; row < rows; ++row)
            for (int64_t first = 0; first < columns; first += ops::kBlock) {
                int64_t const count = std::min(ops::kBlock, columns - first);
                float const* const v = ops::loadFloats(kType, w.data, row * columns + first, 1, count, buffer);
                for (int64_t i = 0; i < count; ++i)
                    sums[size_t(isByRows_ ? row : first + i)] += double(v[i]) * double(v[i]);
            }
        return sums;
    }

    ir::Node const& product_;
    ir::Value const &w_, *gamma_ = nullptr, *beta_ = nullptr;
    recipe::Recipes* recipes_;
    bool isByRows_ = false; // as stored, a row is what a column of the product is made of
    int64_t k_ = 0, n_ = 0;
};

// One product that reads the norm, with constants that are ready.
struct Fusion
{
    ir::Node* product = nullptr;
    std::vector<ir::Value*> inputs;
};

// Null inputs: the weights cannot take gamma and beta.
Result<Fusion> prepare(ir::Graph& g, PassContext const& ctx, ir::Node const& norm, ir::Node& product)
{
    Weights const weights(norm, product, ctx.recipes);
    Fusion out{&product, {}};
    BlobPtr matrix, bias;
    if (weights.changesMatrix()) {
        TW_SET(matrix, weights.matrix());
        if (!weights.isFine(*matrix))
            return out;
    }
    if (weights.changesBias()) {
        TW_SET(bias, weights.newBias());
        if (!Weights::isFinite(*bias, weights.columns()))
            return out;
    }
    ir::Value const& w = *product.inputs[1];
    out.inputs = product.inputs;
    out.inputs[0] = norm.inputs[0];
    if (matrix)
        out.inputs[1] = constantWith(g, w, kType, ir::extentsOf(w.shape), std::move(matrix));
    if (bias) {
        ir::Value const* const old = weights.bias();
        out.inputs.resize(std::max<size_t>(out.inputs.size(), Epilogue::kBias + 1));
        ir::Value* const made = constantWith(g, old ? *old : w, kType, {weights.columns()}, std::move(bias));
        if (!old)
            made->name = w.name + ".bias";
        out.inputs[Epilogue::kBias] = made;
    }
    return out;
}

Result<void> fuse(ir::Graph& g, ir::Node& norm, Fusion const& f)
{
    auto const& of = norm.attrsAs<ops::layer_norm::Attrs>();
    auto attrs = std::make_unique<ops::matrix_multiply::Attrs>(f.product->attrsAs<ops::matrix_multiply::Attrs>());
    attrs->firstNorm = of.rms ? FirstNorm::kRms : FirstNorm::kLayer;
    attrs->firstEpsilon = of.epsilon;
    TW_ASSIGN(ir::Node * fused, g.addNode(ops::matrix_multiply::def(), std::move(attrs), f.inputs, norm.name, {},
                                          g.positionOf(f.product)));
    takeOver(g, *fused, {&norm, f.product});
    g.eraseNode(f.product);
    return {};
}

Result<bool> run(ir::Graph& g, PassContext const& ctx)
{
    if (!ctx.target.gpu() || ctx.target.gpu()->capability != kCapability)
        return false;
    return rewriteEach(g, norm_matmul::isNorm, [&](ir::Node& norm) -> Result<bool> {
        ir::Value const* const y = norm.outputs[0];
        std::vector<ir::Node*> const readers = readersOf(g, y);
        if (!isHalf(norm) || readers.empty() || g.useCount(y) != int(readers.size()) || !hasFewRows(g, y->shape, ctx) ||
            !y->shape.back().isConst() || y->shape.back().value() <= 0 || y->shape.back().value() % kUnit != 0)
            return false;
        for (ir::Node* n : readers)
            if (!takesNorm(g, *n, y) || !canJoin(norm, *n))
                return false;
        std::vector<Fusion> fusions;
        for (ir::Node* n : readers) {
            TW_ASSIGN(Fusion f, prepare(g, ctx, norm, *n));
            if (f.inputs.empty()) {
                ctx.log.verbose("'{}' stays in front of '{}': FP16 does not hold its scales in the weights", norm.name,
                                n->name);
                return false;
            }
            fusions.push_back(std::move(f));
        }
        for (Fusion const& f : fusions) {
            ctx.log.info("fused {} + {}", norm.name, f.product->name);
            TW_TRY(fuse(g, norm, f));
        }
        g.eraseNode(&norm);
        g.eraseUnusedValues(); // weights of all layers would be there twice
        return true;
    });
}

} // namespace
} // namespace norm_matmul

Result<bool> fuseNormMatmul(ir::Graph& g, PassContext const& ctx)
{
    return norm_matmul::run(g, ctx);
}

} // namespace tw::passes
