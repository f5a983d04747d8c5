// SPDX-License-Identifier: Apache-2.0
// A node of an ONNX model.
#pragma once

#include "onnx/importer.h"

namespace tw_onnx {
class AttributeProto;
class GraphProto;
class NodeProto;
} // namespace tw_onnx

namespace tw::onnx {

class ModelImporter;

class OnnxNode final : public ImportContext
{
public:
    // asLayers: the output is known, but layers are to compute it. index: of the node, for its name where the model gives none.
    OnnxNode(ModelImporter& model, tw_onnx::NodeProto const& node, std::vector<Value> inputs, int opset,
             bool asLayers = false, int index = -1);

    tw_onnx::NodeProto const& node() const { return node_; }
    void replaceInput(int i, Value value) { inputs_[size_t(i)] = std::move(value); }
    void replaceOutput(int i, Value value) { outputs_[size_t(i)] = std::move(value); }
    tw_onnx::AttributeProto const* findAttr(char const* attr) const;
    bool hasAttr(char const* attr) const override { return findAttr(attr) != nullptr; }
    std::optional<Attribute> attribute(char const* attr) const override;
    std::function<Constant()> later(Constant (*compute)(ImportContext& ctx)) const override;
    int nbGraphInputs(char const* attr, Where where) const override;
    int nbGraphOutputs(char const* attr, Where where) const override;
    bool graphHasOp(char const* attr, std::string const& prefix) const override;
    std::optional<Growth> growthOf(char const* attr, int input, int output) const override;
    std::vector<Value> importGraph(char const* attr, std::vector<Value> const& inputs,
                                   std::function<ITensor&(ITensor&)> enter = {},
                                   Where where = Where::current()) override;

private:
    std::function<ITensor*()> again() const override;
    tw_onnx::GraphProto const& attrGraph(char const* attr, Where where) const;

    ModelImporter& model_;
    tw_onnx::NodeProto const& node_;
};

} // namespace tw::onnx
