// SPDX-License-Identifier: Apache-2.0
#include "passes/precision/precision.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/element.h"
#include "ops/dequantize/op.h"
#include "ops/elementwise/op.h"
#include "ops/identity/op.h"
#include "passes/node_kinds.h"
#include "passes/quantization/quantization.h"
#include "passes/rewrite.h"
#include "recipe/recipes.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

ir::Value* inFloat(ir::Graph& g, ir::Value const& v)
{
    TensorRef const from = elementsOf(&v);
    Tensor to(DataType::kFloat, from.dims);
    copyElements(from, to.ref());
    return constantWith(g, v, DataType::kFloat, from.dims, Blob::copy(to.data(), size_t(to.ref().sizeBytes())));
}

// Limited to what `type` holds, and rounded.
Result<BlobPtr> roundedTo(DataType type, recipe::Computation& c, ir::Value const& v)
{
    NumberType const& narrow = numberType(type);
    using enum ops::elementwise::Operation;
    Extents const ones = Extents::ones(v.rank());
    TW_ASSIGN(ir::Value * x, c.add(ops::elementwise::def(), ops::elementwise::Attrs(kMax),
                                   {c.take(v), c.literal(v.type, ones, narrow.lowest)}));
    TW_ASSIGN(
        x, c.add(ops::elementwise::def(), ops::elementwise::Attrs(kMin), {x, c.literal(v.type, ones, narrow.largest)}));
    TW_ASSIGN(x, c.add(ops::identity::def(), ops::identity::Attrs(type), {x}));
    return c.finish(x);
}

bool isWideningCast(ir::Node const& n)
{
    return isCast(&n) && isFullFloat(n.outputs[0]->type);
}

// Constants, results and conversions between them become f32, in nodes that are fused themselves too.
Result<void> computeInFloat(ir::Graph& body)
{
    for (size_t i = 0; i < body.values().size(); ++i) {
        ir::Value* v = body.values()[i].get();
        if (v->isConstant() && isNarrowFloat(v->type) && body.useCount(v) != 0)
            body.replaceAllUses(v, inFloat(body, *v));
    }
    for (size_t i = 0; i < body.nodes.size(); ++i) {
        ir::Node& n = *body.nodes[i];
        if (isCast(&n) && !isWideningCast(n))
            n.attrs = ops::identity::Attrs(DataType::kFloat).clone();
        if (isDequantize(&n))
            n.attrsAs<ops::dequantize::Attrs>().outputType = DataType::kFloat;
        TW_TRY(body.inferNode(n));
        if (n.body)
            TW_TRY(fitBody(n));
        bool const isNothing = isWideningCast(n) && isFullFloat(n.inputs[0]->type);
        if (isNothing && (n.inputs[0]->producer || !body.isOutput(n.outputs[0]))) {
            body.replaceAllUses(n.outputs[0], n.inputs[0]);
            body.eraseNode(&n);
            --i;
        }
    }
    return {};
}

bool isNarrow(ir::Value const* v)
{
    return v && isNarrowFloat(v->type);
}

} // namespace

std::optional<DataType> narrowType(Permissions permits, TargetInfo const& target)
{
    // Instructions since 8.0; a CPU computes with them as with FP32, and the clock says where that pays.
    bool const mayBf16 = !target.gpu() || target.gpu()->capability >= 80;
    if (permits.has(Permission::kBf16Tensors) && !permits.has(Permission::kInt8) && mayBf16)
        return DataType::kBf16;
    return permits.has(Permission::kHalf) && target.computesHalf() ? std::optional(DataType::kHalf) : std::nullopt;
}

bool fits(ir::Value const& constant, DataType type)
{
    TensorRef const t = elementsOf(&constant);
    double const leastNormal = numberType(type).leastNormal;
    bool anyGood = t.count() == 0, anyTiny = false;
    for (int64_t i = 0; i < t.count() && !anyGood; ++i) {
        double const size = std::fabs(t.get(i));
        anyTiny = anyTiny || (size > 0 && size < leastNormal);
        anyGood = size >= leastNormal;
    }
    return anyGood || !anyTiny;
}

Result<ir::Value*> NarrowWeights::convert(ir::Graph& g, ir::Value const& v, DataType type)
{
    type_ = type;
    TensorRef const from = elementsOf(&v);
    auto c = std::make_shared<ir::Constant>(*v.constant);
    bool const isReached = recipes && recipes->reaches(v);
    void const* const source = isReached ? static_cast<void const*>(v.constant->data.get()) : from.data;
    BlobPtr& known = converted_[{source, from.count()}];
    if (known) {
        c->data = known;
        return g.addConstant(v.name, type, from.dims, std::move(c));
    }
    sources_.push_back(v.constant->data);
    Tensor to(type, from.dims);
    int64_t far = 0, small = 0;
    auto const* x = from.as<float>();
    auto const largest = float(numberType(type).largest), leastNormal = float(numberType(type).leastNormal);
    withNarrow(type, [&](auto element) {
        auto* y = static_cast<decltype(element)*>(to.data());
        for (int64_t i = 0, n = from.count(); i < n; ++i) {
            float const size = std::fabs(x[i]);
            bool const isFar = size > largest && std::isfinite(size);
            far += isFar;
            small += size > 0 && size < leastNormal;
            storeElement(y[i], isFar ? std::copysign(largest, x[i]) : x[i]);
        }
    });
    if (far + small > 0)
        names.insert(v.constant->layer.empty() ? v.name : v.constant->layer);
    outOfRange += far;
    subnormal += small;
    known = Blob::copy(to.data(), size_t(from.count() * sizeOf(type)));
    if (isReached) {
        recipe::Computation computation(recipes);
        TW_ASSIGN(known, roundedTo(type, computation, v));
    }
    c->data = known;
    return g.addConstant(v.name, type, from.dims, std::move(c));
}

void NarrowWeights::report(Log& log) const
{
    if (outOfRange + subnormal == 0)
        return;
    constexpr size_t kShown = 5;
    std::string list;
    size_t shown = 0;
    for (std::string const& name : names) {
        if (shown++ == kShown)
            break;
        list += (list.empty() ? "'" : ", '") + name + "'";
    }
    if (names.size() > kShown)
        list += fmt::format(" and {} more", names.size() - kShown);
    auto const number = [](double v) {
        char text[32];
        std::snprintf(text, sizeof text, "%.*g", v > 1 ? 6 : 2, v);
        return std::string(text);
    };
    NumberType const& type = numberType(type_);
    log.warning("{} weights of {}: {} finite values are beyond +-{} and become the nearest of these, {} are smaller "
                "than {} and lose digits; where that matters, ask for FP32 with setPrecision() or --layerPrecisions",
                type.shown, list, outOfRange, number(type.largest), subnormal, number(type.leastNormal));
}

Result<ir::Value*> addCast(ir::Graph& g, ir::Value* x, DataType type, int position)
{
    TW_ASSIGN(ir::Node * n, g.addNode(ops::identity::def(), ops::identity::Attrs(type).clone(), {x},
                                      x->name + " [" + nameOf(type) + "]", {}, position));
    if (x->producer) {
        n->layers = x->producer->layers;
        n->device = x->producer->device;
    }
    return n->outputs[0];
}

Result<ir::Value*> addRounding(ir::Graph& g, ir::Value* x, int position)
{
    TW_ASSIGN(ir::Value * half, addCast(g, x, DataType::kHalf, position));
    return addCast(g, half, DataType::kFloat, position + 1);
}

Result<ir::Value*> roundForAll(ir::Graph& g, ir::Value* x)
{
    TW_ASSIGN(ir::Value * back, addRounding(g, x, g.positionOf(x->producer) + 1));
    ir::Node* const half = back->producer->inputs[0]->producer;
    g.replaceAllUses(x, back);
    half->inputs[0] = x;
    return back;
}

Result<void> fitBody(ir::Node& fused)
{
    ir::Graph& body = *fused.body;
    bool anyNarrow = false; // before or now
    for (auto const* values : {&fused.inputs, &fused.outputs, &body.inputs, &body.outputs})
        anyNarrow = anyNarrow || std::ranges::any_of(*values, isNarrow);
    if (!anyNarrow)
        return {};
    int position = 0;
    for (size_t i = 0; i < fused.inputs.size(); ++i) {
        ir::Value* inner = body.inputs[i];
        if (!fused.inputs[i] || !isFloating(fused.inputs[i]->type))
            continue;
        inner->type = fused.inputs[i]->type;
        bool const isRead = std::ranges::any_of(
            body.nodes, [&](auto const& n) { return !isWideningCast(*n) && contains(n->inputs, inner); });
        if (isFullFloat(inner->type) || !isRead)
            continue;
        TW_ASSIGN(ir::Value * x, addCast(body, inner, DataType::kFloat, position++));
        body.replaceAllUses(inner, x);
        x->producer->inputs[0] = inner;
    }
    TW_TRY(computeInFloat(body));
    for (size_t i = 0; i < fused.outputs.size(); ++i) {
        DataType const want = fused.outputs[i]->type;
        if (body.outputs[i]->type == want || !isFloating(want))
            continue;
        TW_ASSIGN(body.outputs[i], addCast(body, body.outputs[i], want, -1));
    }
    body.eraseUnusedValues();
    return {};
}

} // namespace tw::passes
