// SPDX-License-Identifier: Apache-2.0
// Has LayerNorm and attention make the integers that are quantized of their results.
//   y = layer_norm(x, ..), q = quantize(y, s)                     ->  q = layer_norm(x, .., s), as integers
//   the same where others read y (the residual of a later sum)    ->  y, q = layer_norm(x, .., s), both
//   y = attention(..), q = quantize(y, s), no other reader        ->  q = attention(.., s), as integers
// In FP16 on GPUs: a pass over the tensor less. Expects Form::kFused. Stands after lower_precision, where types are known,
// and fuse_matmul_norm, which takes norms away; where the clock chooses types, it runs once more. Leaves alone: FP32, rows
// that the kernel of rows does not hold, heads that kernels on tensor cores do not take, several scales, scales along an
// axis, nodes that the user has wishes for.
#include <algorithm>

#include "ops/attention/op.h"
#include "ops/layer_norm/op.h"
#include "ops/quantize/op.h"
#include "passes/list.h"
#include "passes/quantization/quantization.h"
#include "passes/rewrite.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

constexpr int64_t kMostElements = 16384; // of a row of halves
constexpr int64_t kMostHead = 256;

bool isRowNorm(ir::Node const& n)
{
    if (n.op != &ops::layer_norm::def() || !isNarrowFloat(n.inputs[0]->type) || hasWish(n))
        return false;
    auto const& a = n.attrsAs<ops::layer_norm::Attrs>();
    int64_t count = 1;
    for (int d = int(a.axis); d < n.inputs[0]->rank(); ++d) {
        ir::Dim const& size = n.inputs[0]->shape[size_t(d)];
        if (!size.isConst() || size.value() > kMostElements)
            return false;
        count *= size.value();
        if (count > kMostElements)
            return false;
    }
    return a.isOfRows() && !a.integers;
}

bool isAttention(ir::Node const& n)
{
    if (n.op != &ops::attention::def() || !isNarrowFloat(n.inputs[0]->type) || hasWish(n))
        return false;
    auto const& a = n.attrsAs<ops::attention::Attrs>();
    return a.size <= kMostHead && a.valueSize <= kMostHead && a.scale > 0 && !a.integers;
}

// The attributes of the node that makes integers; none: it makes them in place of floats alone.
std::unique_ptr<ir::AttrsBase> attrsWithIntegers(ir::Node const& n, bool keepsFloats)
{
    if (n.op == &ops::attention::def()) {
        if (keepsFloats)
            return nullptr;
        auto a = n.attrsAs<ops::attention::Attrs>();
        a.integers = true;
        return a.clone();
    }
    auto a = n.attrsAs<ops::layer_norm::Attrs>();
    a.integers = keepsFloats ? 2 : 1;
    return a.clone();
}

// Those of the readers that quantize by one scale, of which there is no other.
std::vector<ir::Node*> quantizersAmong(std::vector<ir::Node*> const& readers)
{
    std::vector<ir::Node*> list;
    for (ir::Node* r : readers)
        if (isQuantize(r)) {
            if (!isPerTensor(*r) || !r->inputs[1]->isConstant() || hasWish(*r) ||
                (!list.empty() && !haveSameScale(*r->inputs[1], *list[0]->inputs[1])))
                return {};
            list.push_back(r);
        }
    return list;
}

Result<bool> fuse(ir::Graph& g, ir::Node& floats, PassContext const& ctx)
{
    ir::Value* const y = floats.outputs[0];
    std::vector<ir::Node*> const readers = readersOf(g, y), quantizers = quantizersAmong(readers);
    if (quantizers.empty())
        return false;
    for (ir::Node const* q : quantizers)
        if (g.isOutput(q->outputs[0]) || !canJoin(floats, *q))
            return false;
    bool const keepsFloats = readers.size() > quantizers.size() || g.isOutput(y);
    std::unique_ptr<ir::AttrsBase> attrs = attrsWithIntegers(floats, keepsFloats);
    if (!attrs)
        return false;
    for (ir::Node const* q : quantizers)
        TW_TRY(relyOnEqualScales(*quantizers[0], *q, ctx));
    ir::Value* const scale = quantizers[0]->inputs[1];
    std::vector<ir::Value*> inputs = floats.inputs;
    inputs.push_back(scale);
    TW_ASSIGN(ir::Node * made,
              g.addNode(*floats.op, std::move(attrs), std::move(inputs), floats.name, {}, g.positionOf(&floats)));
    takePlaceOf(*made, floats);
    for (ir::Node const* q : quantizers)
        joinOrigins(*made, *made, *q);
    made->outputTypes.assign(made->outputs.size(), {});
    if (floats.body) {
        made->body = std::move(floats.body);
        ir::Graph& body = *made->body;
        ir::Value* const step = body.addInput(scale->name, scale->type, scale->shape);
        TW_ASSIGN(ir::Node * last, body.addNode(ops::quantize::def(), quantizers[0]->attrs->clone(),
                                                {body.outputs[0], step}, quantizers[0]->name));
        body.outputs.resize(keepsFloats ? 1 : 0);
        body.outputs.push_back(last->outputs[0]);
    }
    ir::Value* const integers = made->outputs.back();
    integers->name = quantizers[0]->outputs[0]->name;
    for (ir::Node* q : quantizers) {
        g.replaceAllUses(q->outputs[0], integers);
        g.eraseNode(q);
    }
    if (keepsFloats && !replaceValue(g, y, made->outputs[0]))
        return internalError("'{}' makes an output that cannot be renamed", floats.name);
    if (keepsFloats)
        made->outputs[0]->name = y->name;
    g.eraseNode(&floats);
    ctx.log.verbose("INT8: '{}{}", made->name, keepsFloats ? "', beside FP16" : "'");
    return true;
}

} // namespace

Result<bool> fuseResultQuantization(ir::Graph& g, PassContext const& ctx)
{
    auto const mayMakeIntegers = [](ir::Node const& n) { return isRowNorm(n) || isAttention(n); };
    return ctx.target.gpu() ? rewriteEach(g, mayMakeIntegers, [&](ir::Node& n) { return fuse(g, n, ctx); })
                            : Result<bool>(false);
}

} // namespace tw::passes
