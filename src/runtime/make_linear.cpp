// SPDX-License-Identifier: Apache-2.0
#include "runtime/make_linear.h"

#include "base/check.h"
#include "ir/op_def.h"
#include "tactic/registry.h"

namespace tw::runtime {

namespace {

bool isReformat(ir::Node const& n)
{
    return n.op->convertsFormat;
}

void makeAllLinear(ir::Graph& g)
{
    for (auto const& v : g.values())
        v->format = Format::kLinear;
    for (auto const& n : g.nodes)
        for (auto const& r : n->regions)
            makeAllLinear(*r);
}

// Readers other than reformats read a linear copy.
void bringIn(ir::Graph& g, ir::Value& input)
{
    ir::Value* copy = nullptr;
    for (size_t n = 0; n < g.nodes.size(); ++n)
        for (size_t i = 0; i < g.nodes[n]->inputs.size(); ++i) {
            if (g.nodes[n]->inputs[i] != &input || isReformat(*g.nodes[n]))
                continue;
            if (!copy) {
                copy =
                    addReformat(g, input, Format::kLinear, 0, "Reformatting CopyNode for Network Input " + input.name);
                ++n; // stands one place further now
            }
            g.nodes[n]->inputs[i] = copy;
        }
}

// Whoever makes the output makes a linear value, which is what other readers read.
void bringOut(ir::Graph& g, ir::Value& output)
{
    ir::Node* const producer = output.producer;
    if (!producer || isReformat(*producer))
        return;
    ir::Value* const inner = g.newValue(output.name + " (linear)", output.type, output.shape);
    inner->producer = producer;
    inner->producerIndex = output.producerIndex;
    producer->outputs[size_t(output.producerIndex)] = inner;
    for (auto const& n : g.nodes)
        for (ir::Value*& v : n->inputs)
            v = v == &output ? inner : v;
    ir::Node& node = *addReformat(g, *inner, Format::kLinear, g.positionOf(producer) + 1,
                                  "Reformatting CopyNode for Network Output " + output.name)
                          ->producer;
    node.outputs[0]->producer = nullptr;
    node.outputs[0] = &output;
    output.producer = &node;
    output.producerIndex = 0;
}

} // namespace

ir::Value* addReformat(ir::Graph& g, ir::Value& v, Format to, int position, std::string name)
{
    ir::OpDef const& op = ops::reformat::def();
    auto node = g.addNode(op, op.makeAttrs(), {&v}, std::move(name), {}, position);
    TW_CHECK(node.ok()); // the op takes everything
    ir::Value* copy = (*node)->outputs[0];
    copy->name = v.name + " (" + nameOf(to) + ")";
    copy->format = to;
    (*node)->layers.clear();
    return copy;
}

void makeLinear(ir::Graph& graph)
{
    std::vector<std::pair<ir::Value*, Format>> packed;
    for (auto const* list : {&graph.inputs, &graph.outputs})
        for (ir::Value* v : *list)
            if (v->format != Format::kLinear)
                packed.emplace_back(v, v->format);
    makeAllLinear(graph);
    for (auto const& [v, format] : packed) {
        v->format = format;
        if (v->producer)
            bringOut(graph, *v);
        else
            bringIn(graph, *v);
    }
    graph.eraseUnusedValues();
}

} // namespace tw::runtime
