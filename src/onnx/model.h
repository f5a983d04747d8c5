// SPDX-License-Identifier: Apache-2.0
// Imports one ModelProto into a network: order of nodes, names, weights, folding, errors.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "NvInfer.h"
#include "onnx/importer.h"
#include "onnx/node.h"
#include "onnx/weights.h"

namespace tw_onnx {
class FunctionProto;
class GraphProto;
class ModelProto;
class ValueInfoProto;
} // namespace tw_onnx

namespace tw::onnx {

// A name of a dimension that is a number: exporters write '16' for what they took for a symbol once.
std::optional<int> numberIn(std::string const& name);

inline bool isDefaultDomain(std::string const& domain)
{
    return domain.empty() || domain == "ai.onnx";
}

struct ParserError final : nvonnxparser::IParserError
{
    nvonnxparser::ErrorCode code_;
    std::string desc_, file_, func_;
    int line_, node_;

    ParserError(nvonnxparser::ErrorCode code, std::string desc, SourceLocation where, int node);
    nvonnxparser::ErrorCode code() const override { return code_; }
    char const* desc() const override { return desc_.c_str(); }
    char const* file() const override { return file_.c_str(); }
    int line() const override { return line_; }
    char const* func() const override { return func_.c_str(); }
    int node() const override { return node_; }
};

class ModelImporter : public ImportedNetwork
{
public:
    // kept: models that live as long as the network's build, since weights point into them.
    using Models = std::list<std::unique_ptr<tw_onnx::ModelProto>>;
    ModelImporter(nvinfer1::INetworkDefinition& network, nvinfer1::ILogger& logger, ImporterMap const& importers,
                  Memory& memory, Models& kept);

    // Throws ImportError for the model as a whole and NodeError for one node. `model` must outlive the network's build.
    struct NodeError
    {
        ImportError error;
        int node;
        std::string name, opType;
    };
    void import(tw_onnx::ModelProto const& model, std::string const& modelPath);

    // Order in which the nodes can run, those before a node that its subgraphs read included; throws ImportError for
    // cycles, duplicate and undefined names. `isAround` tells which names a subgraph may take from around it.
    static std::vector<int> topologicalOrder(tw_onnx::GraphProto const& graph,
                                             std::function<bool(std::string const&)> const& isAround = {});

    // Imports a subgraph of a node: its inputs are `inputs`, other names are those around, or there are none.
    enum class Names
    {
        kAround,
        kOwn
    };
    std::vector<Value> importSubgraph(tw_onnx::GraphProto const& graph, std::string const& title,
                                      std::vector<Value> const& inputs, std::function<ITensor&(ITensor&)> enter,
                                      Names names = Names::kAround);

    // How many nodes of topologicalOrder() were imported before the error.
    int nbImported() const { return nbImported_; }

    WeightReader& weights() { return weights_; }
    // The output of layers that do a folded node's work; null where there are none. made: what it gave before, outside of loops and
    // conditionals.
    ITensor* layersOf(tw_onnx::NodeProto const& node, std::vector<Value> const& inputs, int opset, ITensor*& made);

private:
    // The names of a graph; those of the graphs around it stand before it.
    struct Scope
    {
        std::unordered_map<std::string, Value> values;
        std::function<ITensor&(ITensor&)> enter;        // what a tensor from around goes through
        std::unordered_map<ITensor*, ITensor*> entered; // what it became
    };
    // Null when nothing has the name. asItIs: a constant whose values are made later stays that.
    Value find(std::string const& name, bool asItIs = false);
    static void withValues(Value& v);
    bool isDefined(std::string const& name) const;
    std::unordered_map<std::string, Value>& values() { return scopes_.back().values; }
    void readInitializers(tw_onnx::GraphProto const& graph);
    void checkModel(tw_onnx::ModelProto const& model);
    void importInputs(tw_onnx::GraphProto const& graph);
    // Inputs one of whose dimensions has a sum of others' names as its own become as long as the sum says.
    void readSums(tw_onnx::GraphProto const& graph);
    void importNode(tw_onnx::GraphProto const& graph, int index);
    void tryPlugin(OnnxNode& ctx);
    // Functions that the model defines; null: the node calls none.
    void findFunctions(tw_onnx::ModelProto const& model);
    tw_onnx::FunctionProto const* functionOf(tw_onnx::NodeProto const& node) const;
    void importFunction(OnnxNode& ctx, tw_onnx::FunctionProto const& function);
    // Integers that the API has no type for: inputs in the form that the operator takes, outputs as the model's type.
    void prepareIntegers(OnnxNode& ctx);
    void finishIntegers(OnnxNode& ctx);
    bool importOptionalSqueeze(OnnxNode& ctx);
    void markOutputs(tw_onnx::GraphProto const& graph);
    // onnxType: of its elements, as the model declares them.
    void markOutput(std::string const& name, Value const& value, int onnxType, std::unordered_set<ITensor*>& used);
    void renameInput(ITensor& input); // one that an output is named after
    void nameTensor(ITensor& tensor, std::string const& wanted);

    ImporterMap const& importers_;
    WeightReader weights_;
    Models& kept_;
    std::map<std::pair<std::string, std::string>, tw_onnx::FunctionProto const*> functions_; // by domain and name
    size_t bytesOfFunctions_ = 0;                                                            // of all calls
    int opset_ = 0;
    int nbImported_ = 0;
    int64_t nbOfSubgraphs_ = 0; // nodes that were imported of subgraphs, of some of which once for each trip
    std::unordered_map<ITensor*, ITensor*> asInt32_; // of UINT8, outside of loops and conditionals
    std::vector<Scope> scopes_{1};
    std::unordered_set<std::string> tensorNames_;
    std::unordered_set<ITensor*> named_; // inputs, outputs and tensors that carry an ONNX name
};

} // namespace tw::onnx
