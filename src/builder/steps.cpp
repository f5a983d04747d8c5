// SPDX-License-Identifier: Apache-2.0
#include "builder/steps.h"

#include <cmath>

#include "ops/dequantize/op.h"
#include "ops/quantize/op.h"
#include "ops/reformat/op.h"
#include "passes/quantization.h"
#include "tactic/registry.h"

namespace tw::builder {

namespace {

// NaN: not one number that is known.
double scaleOf(ir::Value const& scale)
{
    if (!scale.isConstant() || ir::extentsOf(scale.shape).volume() != 1)
        return std::nan("");
    return TensorRef{scale.type, {1}, const_cast<void*>(scale.constant->data->data())}.get(0);
}

bool moves(ir::Node const& n)
{
    return passes::movesElements(n) || n.op == &ops::reformat::def();
}

} // namespace

passes::Ranges stepsOf(ir::Graph const& imported, passes::Ranges const& ranges)
{
    passes::Ranges steps;
    for (auto const& [name, step] : ranges)
        steps[name + ".int8"] = step;
    for (auto const& n : imported.nodes) {
        if (!passes::isQuantize(n.get()))
            continue;
        double const step = passes::isPerTensor(*n) ? scaleOf(*n->inputs[1]) : std::nan("");
        auto const [at, isNew] = steps.emplace(n->outputs[0]->name, step);
        if (!isNew && at->second != step)
            at->second = std::nan("");
    }
    return steps;
}

std::map<ir::Value const*, double> scalesOf(ir::Graph const& graph, passes::Ranges const& steps)
{
    std::map<ir::Value const*, double> scales;
    auto label = [&](ir::Value const* v, double step) {
        if (isQuantized(v->type) && !v->isConstant() && !std::isnan(step))
            scales.try_emplace(v, step);
    };
    auto stepOf = [&](ir::Value const* v) {
        auto const at = scales.find(v);
        return at == scales.end() ? std::nan("") : at->second;
    };
    for (auto const& n : graph.nodes) {
        if (passes::isDequantize(n.get()))
            label(n->inputs[0], scaleOf(*n->inputs[1]));
        if (passes::isQuantize(n.get()))
            label(n->outputs[0], scaleOf(*n->inputs[1]));
        for (ir::Value const* v : n->outputs)
            if (auto const at = steps.find(v->name); at != steps.end())
                label(v, at->second);
        if (moves(*n))
            label(n->outputs[0], stepOf(n->inputs[0]));
    }
    for (size_t i = graph.nodes.size(); i-- > 0;)
        if (ir::Node const& n = *graph.nodes[i]; moves(n))
            for (size_t k = 0; k < (n.op == &ops::reformat::def() ? 1 : passes::movedInputs(n)); ++k)
                label(n.inputs[k], stepOf(n.outputs[0]));
    return scales;
}

} // namespace tw::builder
