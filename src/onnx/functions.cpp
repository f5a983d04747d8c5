// SPDX-License-Identifier: Apache-2.0
// Functions that a model defines itself: each call is imported as a graph of its own, which sees no names from around.
#include <google/protobuf/io/coded_stream.h>

#include "onnx/model.h"
#include "tw_onnx.pb.h"

namespace tw::onnx {

using nvonnxparser::ErrorCode;
using tw_onnx::AttributeProto;

namespace {

using Attributes = std::vector<AttributeProto>;

// Attributes with defaults: field 11, which the messages here do not know.
Attributes defaultsOf(tw_onnx::FunctionProto const& function)
{
    constexpr uint32_t kTag = 11 << 3 | 2; // a message
    std::string const& bytes = function.unknown_fields();
    google::protobuf::io::CodedInputStream stream(reinterpret_cast<uint8_t const*>(bytes.data()), int(bytes.size()));
    Attributes defaults;
    while (uint32_t const tag = stream.ReadTag()) {
        uint32_t length = 0;
        uint64_t number = 0;
        std::string content;
        switch (tag & 7) {
        case 0:
            if (!stream.ReadVarint64(&number))
                return defaults;
            break;
        case 2:
            if (!stream.ReadVarint32(&length) || length > bytes.size() || !stream.ReadString(&content, int(length)))
                return defaults;
            if (AttributeProto a; tag == kTag && a.ParseFromString(content))
                defaults.push_back(a);
            break;
        default:
            return defaults;
        }
    }
    return defaults;
}

template <class List>
AttributeProto const* named(List const& attributes, std::string const& name)
{
    for (AttributeProto const& a : attributes)
        if (a.name() == name)
            return &a;
    return nullptr;
}

// Attributes of nodes that are those of the call: put in their place, or left out where nobody gives one.
template <class Nodes>
void bindAttributes(Nodes& nodes, tw_onnx::NodeProto const& call, Attributes const& defaults)
{
    for (tw_onnx::NodeProto& node : nodes) {
        auto& list = *node.mutable_attribute();
        for (int i = list.size(); i-- > 0;) {
            AttributeProto& a = list[i];
            if (a.has_g())
                bindAttributes(*a.mutable_g()->mutable_node(), call, defaults);
            if (a.ref_attr_name().empty())
                continue;
            AttributeProto const* given = named(call.attribute(), a.ref_attr_name());
            given = given ? given : named(defaults, a.ref_attr_name());
            if (!given) {
                list.DeleteSubrange(i, 1);
                continue;
            }
            std::string const name = a.name();
            a = *given;
            a.set_name(name);
        }
    }
}

} // namespace

void ModelImporter::findFunctions(tw_onnx::ModelProto const& model)
{
    for (tw_onnx::FunctionProto const& f : model.functions())
        if (!functions_.emplace(std::pair(f.domain(), f.name()), &f).second)
            fail(ErrorCode::kUNSUPPORTED_GRAPH,
                 "function '" + f.name() + "' of domain '" + f.domain() + "' is defined twice");
}

void ModelImporter::importFunction(OnnxNode& ctx, tw_onnx::FunctionProto const& function)
{
    // Few bytes can ask for any number of copies.
    constexpr size_t kMostBytes = size_t(1) << 30;
    bytesOfFunctions_ += function.ByteSizeLong();
    ctx.check(bytesOfFunctions_ <= kMostBytes,
              fmt::format("the functions of the model, one copy for each call, have more than {} bytes", kMostBytes));
    if (ctx.nbInputs() > function.input_size() || ctx.nbOutputs() > function.output_size())
        ctx.invalid(fmt::format("function '{}' has {} inputs and {} outputs, the node {} and {}", function.name(),
                                function.input_size(), function.output_size(), ctx.nbInputs(), ctx.nbOutputs()));
    kept_.push_back(std::make_unique<tw_onnx::ModelProto>()); // weights point into it
    tw_onnx::GraphProto& graph = *kept_.back()->mutable_graph();
    *graph.mutable_node() = function.node();
    bindAttributes(*graph.mutable_node(), ctx.node(), defaultsOf(function));
    for (std::string const& name : function.input())
        graph.add_input()->set_name(name);
    for (std::string const& name : function.output())
        graph.add_output()->set_name(name);
    std::vector<Value> inputs;
    for (int i = 0; i < function.input_size(); ++i)
        inputs.push_back(ctx.optionalInput(i));
    struct Restore
    {
        int& opset;
        int before;
        ~Restore() { opset = before; }
    };
    Restore const restore{opset_, opset_};
    for (auto const& set : function.opset_import())
        if (isDefaultDomain(set.domain()))
            opset_ = int(std::clamp<int64_t>(set.version(), 1, INT32_MAX));
    std::vector<Value> const outputs =
        importSubgraph(graph, "function '" + function.name() + "'", inputs, {}, Names::kOwn);
    for (int i = 0; i < ctx.nbOutputs(); ++i)
        if (ctx.wantsOutput(i) && !outputs[size_t(i)].isNull())
            ctx.setOutput(i, outputs[size_t(i)]);
}

} // namespace tw::onnx
