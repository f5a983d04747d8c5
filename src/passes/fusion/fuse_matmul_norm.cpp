// SPDX-License-Identifier: Apache-2.0
// Makes one node of a matrix product and the LayerNorm of its rows, which nobody else reads.
//   before: x = f(a b + bias + r), y = layer_norm(x)    after: y = matrix_multiply(a, b, bias, r, gamma, beta)
// In FP16 on GPUs of capability 9.0, whose kernels keep the rows of x, where x takes more than 12 MiB: it then never
// goes to memory, while smaller ones stay in L2. Results of 24 MiB gained 4 to 11 % of both nodes, of 6 MiB 0 to 2 %
// (H200, 50 MiB of L2). The tuner still has two kernels, one after the other, to choose. Expects Form::kFused: products
// have their biases, residuals and activations. Stands after lower_precision, where types are known; where the clock
// chooses them, it runs once more. Leaves alone: products without bias or residual, which are not worth a pattern,
// sizes that are not known, FP32, and nodes whose wishes of the user differ.
#include <algorithm>

#include "ops/layer_norm/op.h"
#include "ops/matrix_multiply/op.h"
#include "passes/fuse_nodes.h"
#include "passes/list.h"
#include "passes/rewrite.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

using ops::Epilogue;
using ops::matrix_multiply::MatrixOperation;

constexpr int kCapability = 90;
constexpr int64_t kLeastBytes = 12 << 20; // of x

// Of an f16 node whose user asks for FP32, the norm's row sums must be too, and so must what it reads.
bool givesHalf(ir::Node const& n)
{
    bool const asksFloat =
        (n.precision.byUser && !isNarrowFloat(n.precision.value)) ||
        std::ranges::any_of(n.outputTypes, [](auto const& w) { return w.byUser && !isNarrowFloat(w.value); });
    return isNarrowFloat(n.outputs[0]->type) && !asksFloat;
}

bool isNorm(ir::Node const& n)
{
    if (n.op != &ops::layer_norm::def())
        return false;
    auto const& a = n.attrsAs<ops::layer_norm::Attrs>();
    return a.hasGamma && a.hasBeta && a.isOfRows() && !a.rms && !a.activation.any() &&
           a.axis == n.outputs[0]->rank() - 1 && n.inputs[size_t(a.gammaInput())]->isConstant() &&
           n.inputs[size_t(a.betaInput())]->isConstant();
}

bool takesNorm(ir::Node const* n)
{
    if (!n || n->op != &ops::matrix_multiply::def() || ops::matrix_multiply::hasNorm(*n) || ops::sumsIntegers(*n) ||
        !ops::hasInput(*n, Epilogue::kBias) || !ops::hasInput(*n, Epilogue::kResidual))
        return false;
    auto const& a = n->attrsAs<ops::matrix_multiply::Attrs>();
    return a.a == MatrixOperation::kNone && a.b != MatrixOperation::kVector && !a.connected &&
           n->inputs[1]->isConstant() && n->inputs[Epilogue::kBias]->isConstant();
}

} // namespace

Result<bool> fuseMatmulNorm(ir::Graph& g, PassContext const& ctx)
{
    if (!ctx.target.gpu() || ctx.target.gpu()->capability != kCapability)
        return false;
    return rewriteEach(g, isNorm, [&](ir::Node& norm) -> Result<bool> {
        ir::Node* const product = onlyProducer(g, norm.inputs[0]);
        ir::Shape const& shape = norm.outputs[0]->shape;
        if (!givesHalf(norm) || !takesNorm(product) || !givesHalf(*product) || !ir::isStatic(shape) ||
            !canFuse(g, {product, &norm}))
            return false;
        if (ir::extentsOf(shape).volume() * sizeOf(DataType::kHalf) <= kLeastBytes ||
            !ops::matrix_multiply::takesRows(shape.back().value()))
            return false;
        auto const& of = norm.attrsAs<ops::layer_norm::Attrs>();
        auto inputs = mapped(product->inputs, [&](ir::Value* v) { return FusedInput{v, v}; });
        for (int i : {of.gammaInput(), of.betaInput()})
            inputs.push_back({norm.inputs[size_t(i)], norm.inputs[size_t(i)]});
        auto attrs = std::make_unique<ops::matrix_multiply::Attrs>(product->attrsAs<ops::matrix_multiply::Attrs>());
        attrs->epilogue.epsilon = of.epsilon;
        std::string const name = product->name + " + " + norm.name;
        TW_ASSIGN(ir::Node * fused,
                  fuseNodes(g, {product, &norm}, ops::matrix_multiply::def(), std::move(attrs), inputs));
        if (fused)
            ctx.log.info("fused {}", name);
        return fused != nullptr;
    });
}

} // namespace tw::passes
