// SPDX-License-Identifier: Apache-2.0
#include "api/ranges.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "ops/dequantize/op.h"
#include "ops/quantize/op.h"

namespace tw::api {

float scaleOf(TensorObject const& t)
{
    return std::max(std::fabs(*t.rangeMin), std::fabs(*t.rangeMax)) / 127;
}

namespace {

void takeRangesInto(ir::Graph& g, passes::Ranges& ranges)
{
    std::set<ir::Value const*> ofPlugins;
    for (auto const& n : g.nodes) {
        for (auto const& r : n->regions)
            takeRangesInto(*r, ranges);
        if (n->op == &ops::plugin::def()) {
            ofPlugins.insert(n->inputs.begin(), n->inputs.end());
            ofPlugins.insert(n->outputs.begin(), n->outputs.end());
        }
    }
    for (auto const& v : g.values()) {
        if (!v->quantization || !isFloating(v->type))
            continue;
        ranges[v->name] = v->quantization->scales[0];
        if (!ofPlugins.contains(v.get()))
            v->quantization.reset();
    }
}

// Named so that a refit may reach the range (recipe/recipes.h).
ir::Value* scaleConstant(ir::Graph& g, std::string const& name, TensorObject const& t)
{
    float const scale = scaleOf(t);
    auto c = std::make_shared<ir::Constant>();
    c->data = Blob::copy(&scale, sizeof scale);
    c->layer = t.name;
    c->role = ir::WeightsRole::kAny;
    return g.addConstant(name + ".range", DataType::kFloat, Extents{}, std::move(c));
}

} // namespace

std::string inFloatsName(std::string const& input)
{
    return input + " [input]";
}

Result<ir::Value*> inFloats(ir::Graph& g, ir::Value& integers, TensorObject const& t)
{
    ir::Value* const s = scaleConstant(g, integers.name, t);
    std::string const name = inFloatsName(integers.name);
    TW_ASSIGN(ir::Node * n,
              g.addNode(ops::dequantize::def(), std::make_unique<ops::dequantize::Attrs>(), {&integers, s}, name));
    n->outputs[0]->name = name;
    return n->outputs[0];
}

Result<ir::Value*> inIntegers(ir::Graph& g, ir::Value& v, TensorObject const& t)
{
    if (!t.rangeMin)
        return invalidArgument("network output '" + t.name +
                               "' is INT8 and has no dynamic range: ITensor::setDynamicRange() says what its numbers "
                               "stand for");
    ir::Value* const s = scaleConstant(g, t.name, t);
    TW_ASSIGN(ir::Node * n,
              g.addNode(ops::quantize::def(), std::make_unique<ops::quantize::Attrs>(), {&v, s}, t.name + " [output]"));
    return n->outputs[0];
}

passes::Ranges takeRanges(ir::Graph& g)
{
    passes::Ranges ranges;
    takeRangesInto(g, ranges);
    return ranges;
}

} // namespace tw::api
