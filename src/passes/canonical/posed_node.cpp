// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "ir/op_def.h"
#include "ir/shape_values.h"
#include "ops/dequantize/op.h"
#include "ops/identity/op.h"
#include "ops/pointwise/op.h"
#include "passes/precision/precision.h"
#include "passes/quantization/quantization.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

// Scales, and biases beside integers: FP32, whatever is computed.
bool staysFloat(ir::Node const& n, size_t i)
{
    if (isQuantize(&n) || isDequantize(&n))
        return i == 1;
    return (sumsIntegers(n) && i != ops::Epilogue::kResidual) ||
           (n.op == &ops::pointwise::def() && ops::pointwise::isQuantized(n) && n.inputs[i]->isConstant());
}

} // namespace

bool Precisions::turns(ir::Node const& n, size_t i) const
{
    ir::Value const* x = n.inputs[i];
    if (!isOpen(x) || ir::isShapeInput(n, i) || readsCoordinates(n, x) || staysFloat(n, i))
        return false;
    return !readsAnyFloat(n) || (x->isConstant() && n.op != &ops::identity::def() && fits(*x, type));
}

Result<void> makeNarrow(ir::Node& n, DataType type, std::function<bool(size_t)> const& turns)
{
    if (n.op == &ops::identity::def())
        n.attrs = ops::identity::Attrs(type).clone();
    if (n.op == &ops::pointwise::def())
        n.attrsAs<ops::pointwise::Attrs>().outputType = type;
    if (isDequantize(&n))
        n.attrsAs<ops::dequantize::Attrs>().outputType = type;
    if (sumsIntegers(n))
        epilogueOf(*n.attrs, n).outputType = int32_t(type);
    for (size_t i = 0; i < n.outputs.size(); ++i)
        if (turns(i))
            n.outputs[i]->type = type;
    return n.body ? fitBody(n) : Result<void>();
}

Result<PosedNode> poseNode(ir::Graph const& g, ir::Node const& n, DataType type, Precisions const& p,
                           NarrowWeights& weights)
{
    bool const isNarrow = isNarrowFloat(type);
    PosedNode posed{std::make_unique<ir::Graph>()};
    ir::Graph& alone = *posed.graph;
    alone.form = g.form;
    alone.symbols = g.symbols;
    std::map<std::pair<ir::Value const*, bool>, ir::Value*> known; // by value and whether it turns
    std::vector<ir::Value*> inputs;
    for (size_t i = 0; i < n.inputs.size(); ++i) {
        ir::Value const* v = n.inputs[i];
        if (!v) {
            inputs.push_back(nullptr);
            continue;
        }
        bool const turns = isNarrow && p.turns(n, i);
        bool const isMadeSo = readsAnyFloat(n) && p.isOpen(v) && p.isNarrow(v->producer);
        ir::Value*& x = known[{v, turns}];
        if (!x && v->isConstant() && turns) {
            TW_ASSIGN(x, weights.convert(alone, *v, p.type));
        } else if (!x && v->isConstant()) {
            x = alone.addConstant(v->name, v->type, ir::extentsOf(v->shape), v->constant);
        } else if (!x) {
            x = alone.addInput(v->name, turns || isMadeSo ? p.type : v->type, v->shape);
            x->host = v->host;
            x->format = v->format;
            x->content = v->content;
        }
        inputs.push_back(x);
    }
    ir::Node& node = *alone.cloneNode(n, std::move(inputs));
    alone.outputs = node.outputs;
    node.id = n.id; // symbols that it binds are named after it
    posed.node = &node;
    if (isNarrow)
        TW_TRY(makeNarrow(node, type, [&](size_t i) { return p.isOpen(n.outputs[i]); }));
    else if (node.body)
        TW_TRY(fitBody(node));
    return posed;
}

} // namespace tw::passes
