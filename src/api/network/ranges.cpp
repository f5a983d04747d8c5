// SPDX-License-Identifier: Apache-2.0
#include "api/network/ranges.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "api/plugin/graph.h"
#include "ops/dequantize/op.h"
#include "ops/quantize/op.h"

namespace tw::api {

float scaleOf(TensorObject const& t)
{
    return std::max(std::fabs(*t.rangeMin), std::fabs(*t.rangeMax)) / 127;
}

namespace {

float scaleOrOpen(TensorObject const& t)
{
    if (t.rangeMin)
        return scaleOf(t);
    t.network->openScales.insert(t.name);
    return 1;
}

// For nodes that quantize or dequantize by an open scale: f(node, tensor).
template <class F>
void forEachOpen(ir::Graph& g, std::set<std::string> const& open, F const& f)
{
    std::vector<ir::Node*> found; // f may erase them
    for (auto const& n : g.nodes) {
        for (auto const& r : n->regions)
            forEachOpen(*r, open, f);
        bool const isScaled = n->op == &ops::quantize::def() || n->op == &ops::dequantize::def();
        if (isScaled && n->inputs[1]->isConstant() && open.contains(n->inputs[1]->constant->layer))
            found.push_back(n.get());
    }
    for (ir::Node* n : found)
        f(g, *n, n->inputs[1]->constant->layer);
}

std::string kindOf(NetworkObject const& n, std::string const& tensor)
{
    auto isNamed = [&](auto const& t) { return t->name == tensor; };
    return std::ranges::any_of(n.inputs, isNamed)    ? "network input '"
           : std::ranges::any_of(n.outputs, isNamed) ? "network output '"
                                                     : "tensor '";
}

} // namespace

// Named so that a refit may reach the range (recipe/recipes.h).
ir::Value* scaleConstant(ir::Graph& g, std::string const& tensor, float scale)
{
    auto c = std::make_shared<ir::Constant>();
    c->data = Blob::copy(&scale, sizeof scale);
    c->layer = tensor;
    c->role = ir::WeightsRole::kAny;
    return g.addConstant(tensor + ".range", DataType::kFloat, Extents{}, std::move(c));
}

std::string inFloatsName(std::string const& input)
{
    return input + " [input]";
}

Result<ir::Value*> inFloats(ir::Graph& g, ir::Value& integers, TensorObject const& t)
{
    ir::Value* const s = scaleConstant(g, integers.name, scaleOrOpen(t));
    std::string const name = inFloatsName(integers.name);
    TW_ASSIGN(ir::Node * n,
              g.addNode(ops::dequantize::def(), std::make_unique<ops::dequantize::Attrs>(), {&integers, s}, name));
    n->outputs[0]->name = name;
    return n->outputs[0];
}

Result<ir::Value*> inIntegers(ir::Graph& g, ir::Value& v, TensorObject const& t)
{
    ir::Value* const s = scaleConstant(g, t.name, scaleOrOpen(t));
    TW_ASSIGN(ir::Node * n,
              g.addNode(ops::quantize::def(), std::make_unique<ops::quantize::Attrs>(), {&v, s}, t.name + " [output]"));
    return n->outputs[0];
}

Result<void> settleScales(ir::Graph& g, NetworkObject const& n, passes::Ranges& ranges)
{
    std::set<std::string> open = n.openScales;
    open.insert(n.openScalesOfPlugins.begin(), n.openScalesOfPlugins.end());
    for (auto const& t : n.inputs)
        if (auto const at = ranges.find(t->name); t->type == nvinfer1::DataType::kINT8 && at != ranges.end())
            ranges.try_emplace(inFloatsName(t->name), double(at->second));
    for (std::string const& name : open)
        if (!ranges.contains(name))
            return invalidArgument(
                "{}{}' is INT8 and has no scale, which says what its numbers stand for: ITensor::setDynamicRange() "
                "gives it one, or, with BuilderFlag::kINT8 and without Q/DQ layers, a calibrator or its cache",
                kindOf(n, name), name);
    forEachOpen(g, open, [&](ir::Graph& in, ir::Node& node, std::string const& name) {
        auto const scale = static_cast<float>(ranges.at(name));
        auto c = std::make_shared<ir::Constant>(*node.inputs[1]->constant);
        c->data = Blob::copy(&scale, sizeof scale);
        node.inputs[1]->constant = std::move(c);
        tellPlugins(in, node.op == &ops::dequantize::def() ? *node.inputs[0] : *node.outputs[0], scale);
    });
    return {};
}

void openInputsInFloats(ir::Graph& g, std::set<std::string> const& open)
{
    forEachOpen(g, open, [](ir::Graph& in, ir::Node& n, std::string const&) {
        ir::Value* const v = n.inputs[0];
        if (n.op != &ops::dequantize::def() || v->producer)
            return;
        v->type = DataType::kFloat;
        in.replaceAllUses(n.outputs[0], v);
        in.eraseNode(&n);
    });
    g.eraseUnusedValues();
}

} // namespace tw::api
