// SPDX-License-Identifier: Apache-2.0
#include "onnx/node.h"

#include <algorithm>

#include "onnx/model.h"
#include "tw_onnx.pb.h"

namespace tw::onnx {

using tw_onnx::AttributeProto;

namespace {

std::string nameOf(tw_onnx::NodeProto const& node, int index)
{
    return !node.name().empty()     ? node.name()
           : node.output_size() > 0 ? "node_of_" + node.output(0)
                                    : fmt::format("{}_{}", node.op_type(), index);
}

// The type field is missing in files of the first IR versions; then the content decides.
AttributeProto::AttributeType kindOf(AttributeProto const& a)
{
    if (a.has_type() && a.type() != AttributeProto::UNDEFINED)
        return a.type();
    return a.has_f()              ? AttributeProto::FLOAT
           : a.has_i()            ? AttributeProto::INT
           : a.has_s()            ? AttributeProto::STRING
           : a.has_t()            ? AttributeProto::TENSOR
           : a.has_g()            ? AttributeProto::GRAPH
           : a.floats_size() > 0  ? AttributeProto::FLOATS
           : a.strings_size() > 0 ? AttributeProto::STRINGS
                                  : AttributeProto::INTS;
}

bool hasOp(tw_onnx::GraphProto const& graph, std::string const& prefix)
{
    return std::ranges::any_of(graph.node(), [&](auto const& node) {
        return node.op_type().rfind(prefix, 0) == 0 ||
               std::ranges::any_of(node.attribute(), [&](auto const& a) { return a.has_g() && hasOp(a.g(), prefix); });
    });
}

} // namespace

OnnxNode::OnnxNode(ModelImporter& model, tw_onnx::NodeProto const& node, std::vector<Value> inputs, int opset,
                   bool asLayers, int index)
    : ImportContext(model, nameOf(node, index), node.op_type(), opset, std::move(inputs),
                    {node.output().begin(), node.output().end()}),
      model_(model), node_(node)
{
    asLayers_ = asLayers;
}

AttributeProto const* OnnxNode::findAttr(char const* attr) const
{
    for (AttributeProto const& a : node_.attribute())
        if (a.name() == attr)
            return &a;
    return nullptr;
}

std::optional<Attribute> OnnxNode::attribute(char const* attr) const
{
    AttributeProto const* const a = findAttr(attr);
    if (!a)
        return {};
    switch (kindOf(*a)) {
    case AttributeProto::INT:
        return a->i();
    case AttributeProto::FLOAT:
        return a->f();
    case AttributeProto::STRING:
        return a->s();
    case AttributeProto::INTS:
        return std::vector<int64_t>(a->ints().begin(), a->ints().end());
    case AttributeProto::FLOATS:
        return std::vector<float>(a->floats().begin(), a->floats().end());
    case AttributeProto::STRINGS:
        return std::vector<std::string>(a->strings().begin(), a->strings().end());
    case AttributeProto::TENSOR:
        return a->has_t() ? Attribute(model_.weights().read(a->t(), "attribute '" + std::string(attr) + "'"))
                          : Attribute();
    default:
        return Attribute();
    }
}

tw_onnx::GraphProto const& OnnxNode::attrGraph(char const* attr, Where where) const
{
    auto const* a = findAttr(attr);
    if (!a || !a->has_g())
        noGraph(attr, where);
    return a->g();
}

int OnnxNode::nbGraphInputs(char const* attr, Where where) const
{
    return attrGraph(attr, where).input_size();
}

int OnnxNode::nbGraphOutputs(char const* attr, Where where) const
{
    return attrGraph(attr, where).output_size();
}

bool OnnxNode::graphHasOp(char const* attr, std::string const& prefix) const
{
    auto const* const a = findAttr(attr);
    return a && a->has_g() && hasOp(a->g(), prefix);
}

std::vector<Value> OnnxNode::importGraph(char const* attr, std::vector<Value> const& inputs,
                                         std::function<ITensor&(ITensor&)> enter, Where where)
{
    return model_.importSubgraph(attrGraph(attr, where), "graph '" + std::string(attr) + "'", inputs, std::move(enter));
}

std::function<Constant()> OnnxNode::later(Constant (*compute)(ImportContext& ctx)) const
{
    return [&model = model_, &node = node_, inputs = inputs_, opset = opset(), compute] {
        OnnxNode ctx(model, node, inputs, opset);
        return compute(ctx);
    };
}

std::function<ITensor*()> OnnxNode::again() const
{
    return [&model = model_, &node = node_, inputs = inputs_, opset = opset(),
            made = static_cast<ITensor*>(nullptr)]() mutable { return model.layersOf(node, inputs, opset, made); };
}

} // namespace tw::onnx
