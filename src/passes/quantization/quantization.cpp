// SPDX-License-Identifier: Apache-2.0
#include "passes/quantization/quantization.h"

#include "ops/concatenation/op.h"
#include "ops/convolution/op.h"
#include "ops/dequantize/op.h"
#include "ops/gather/op.h"
#include "ops/matrix_multiply/op.h"
#include "ops/padding/op.h"
#include "ops/pooling/op.h"
#include "ops/quantize/op.h"
#include "ops/resize/op.h"
#include "ops/shuffle/op.h"
#include "ops/slice/op.h"
#include "passes/rewrite.h"
#include "recipe/recipes.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

// How many products each sum has; nothing where that is not known yet.
std::optional<int64_t> factorsOf(ir::Node const& n)
{
    ir::Shape const& w = n.inputs[1]->shape;
    if (!ir::isStatic(w))
        return std::nullopt;
    Extents const dims = ir::extentsOf(w);
    if (n.op == &ops::convolution::def()) {
        auto const& a = n.attrsAs<ops::convolution::Attrs>();
        return a.transposed ? dims[0] / a.groups * dims.volume(2, dims.rank) : dims.volume(1, dims.rank);
    }
    using enum ops::matrix_multiply::MatrixOperation;
    auto const& a = n.attrsAs<ops::matrix_multiply::Attrs>();
    if (a.connected)
        return dims.volume(1, dims.rank);
    return dims[a.b == kNone ? dims.rank - 2 : dims.rank - 1];
}

} // namespace

bool maySumIntegers(ir::Node const& n)
{
    bool const isProduct =
        n.op == &ops::matrix_multiply::def() && !ops::matrix_multiply::isGated(n) && !ops::matrix_multiply::hasNorm(n);
    return (isProduct || n.op == &ops::convolution::def()) && factorsOf(n).value_or(0) <= ops::kMostIntegerFactors;
}

bool sumsIntegers(ir::Node const& n)
{
    return (n.op == &ops::matrix_multiply::def() || n.op == &ops::convolution::def()) && ops::sumsIntegers(n);
}

int channelAxis(ir::Node const& n)
{
    using enum ops::matrix_multiply::MatrixOperation;
    if (n.op == &ops::convolution::def()) {
        auto const& a = n.attrsAs<ops::convolution::Attrs>();
        return !a.transposed ? 0 : a.groups == 1 ? 1 : -1;
    }
    auto const& a = n.attrsAs<ops::matrix_multiply::Attrs>();
    return a.connected ? 0 : a.b == kVector ? -1 : n.inputs[1]->rank() - (a.b == kTranspose ? 2 : 1);
}

ops::Epilogue& epilogueOf(ir::AttrsBase& attrs, ir::Node const& n)
{
    return n.op == &ops::convolution::def() ? static_cast<ops::convolution::Attrs&>(attrs).epilogue
                                            : static_cast<ops::matrix_multiply::Attrs&>(attrs).epilogue;
}

bool isQuantize(ir::Node const* n)
{
    return n && n->op == &ops::quantize::def();
}

bool isDequantize(ir::Node const* n)
{
    return n && n->op == &ops::dequantize::def();
}

std::optional<Dequantized> dequantizedOf(ir::Value const* v)
{
    if (!v || !isDequantize(v->producer))
        return std::nullopt;
    ir::Node* const n = v->producer;
    return Dequantized{n, n->inputs[0], n->inputs[1], n->attrsAs<ops::dequantize::Attrs>().axis};
}

bool isPerTensor(ir::Node const& quantize)
{
    return quantize.attrsAs<ops::quantize::Attrs>().axis < 0;
}

bool haveSameScale(ir::Value const& a, ir::Value const& b)
{
    if (&a == &b)
        return true;
    TensorRef const s = constantOf(&a), t = constantOf(&b);
    return s.data && t.data && s.count() == 1 && t.count() == 1 && s.get(0) == t.get(0);
}

Result<void> relyOnEqualScales(ir::Node const& a, ir::Node const& b, PassContext const& ctx)
{
    ir::Value const &s = *a.inputs[1], &t = *b.inputs[1];
    if (!ctx.recipes || &s == &t)
        return {};
    return ctx.recipes->keepEqual(s, t,
                                  std::string(a.op->name) + " '" + a.name + "' and " + b.op->name + " '" + b.name +
                                      "' have become one step of the engine, because their scales were equal");
}

Result<void> relyOnPositiveScale(ir::Node const& n, PassContext const& ctx)
{
    if (!ctx.recipes || !n.inputs[1]->isConstant())
        return {};
    return ctx.recipes->keepPositive(*n.inputs[1], std::string("the scale of ") + n.op->name + " '" + n.name +
                                                       "' must be positive and finite");
}

Result<void> relyOnPositiveScales(ir::Graph const& g, PassContext const& ctx)
{
    for (auto const& n : g.nodes)
        if (isQuantize(n.get()) || isDequantize(n.get()))
            TW_TRY(relyOnPositiveScale(*n, ctx));
    return {};
}

bool movesElements(ir::Node const& n)
{
    if (n.body || n.outputs.size() != 1 || n.outputs[0]->host)
        return false;
    if (n.op == &ops::slice::def()) // what it fills with is a number of x's type
        return n.inputs.size() < 5 || !n.inputs[4];
    if (n.op == &ops::pooling::def())
        return n.attrsAs<ops::pooling::Attrs>().kind == ops::pooling::Kind::kMax;
    if (n.op == &ops::resize::def())
        return n.attrsAs<ops::resize::Attrs>().mode == ops::resize::Mode::kNearest;
    return n.op == &ops::shuffle::def() || n.op == &ops::padding::def() || n.op == &ops::gather::def() ||
           n.op == &ops::concatenation::def();
}

size_t movedInputs(ir::Node const& n)
{
    return n.op == &ops::concatenation::def() ? n.inputs.size() : 1;
}

Result<ir::Node*> addAlike(ir::Graph& g, ir::Node const& n, std::vector<ir::Value*> inputs, int position)
{
    TW_ASSIGN(ir::Node * copy, g.addNode(*n.op, n.attrs->clone(), std::move(inputs), n.name, {}, position));
    takePlaceOf(*copy, n);
    copy->outputTypes.assign(copy->outputs.size(), {});
    copy->outputs[0]->name = n.outputs[0]->name;
    return copy;
}

} // namespace tw::passes
