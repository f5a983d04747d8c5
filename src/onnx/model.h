// SPDX-License-Identifier: Apache-2.0
// Imports one ModelProto into a network: order of nodes, names, weights, folding, errors.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "NvInfer.h"
#include "onnx/importer.h"
#include "onnx/weights.h"

namespace tw_onnx {
class GraphProto;
class ModelProto;
class ValueInfoProto;
} // namespace tw_onnx

namespace tw::onnx {

// What the network says of a layer that it refuses, for IParser::getError(): it goes to loggers and error recorders only.

// Listens to the network's errors as long as it lives, and hands them on to the recorder that was there.
class Reasons final : public nvinfer1::IErrorRecorder
{
public:
    explicit Reasons(nvinfer1::INetworkDefinition& network) : network_(network), next_(network.getErrorRecorder())
    {
        if (next_)
            next_->incRefCount(); // the network's own reference goes meanwhile
        network_.setErrorRecorder(this);
    }
    Reasons(Reasons const&) = delete;
    Reasons& operator=(Reasons const&) = delete;
    ~Reasons() override
    {
        network_.setErrorRecorder(next_);
        if (next_)
            next_->decRefCount();
    }
    // Of the last error, as far as recorders are told; empty: there was none.
    std::string const& last() const { return last_; }

    int32_t getNbErrors() const noexcept override { return next_ ? next_->getNbErrors() : 0; }
    nvinfer1::ErrorCode getErrorCode(int32_t index) const noexcept override
    {
        return next_ ? next_->getErrorCode(index) : nvinfer1::ErrorCode::kSUCCESS;
    }
    ErrorDesc getErrorDesc(int32_t index) const noexcept override { return next_ ? next_->getErrorDesc(index) : ""; }
    bool hasOverflowed() const noexcept override { return next_ && next_->hasOverflowed(); }
    void clear() noexcept override
    {
        if (next_)
            next_->clear();
    }
    bool reportError(nvinfer1::ErrorCode code, ErrorDesc description) noexcept override
    {
        try {
            last_ = description ? description : "";
            if (last_.size() + kMostBytesOfACharacter > kMAX_DESC_LENGTH)
                last_ += "... (the logger has all of it)";
        } catch (...) { // no memory for it: the loggers have it
            last_.clear();
        }
        return next_ ? next_->reportError(code, description) : true;
    }
    RefCount incRefCount() noexcept override { return ++references_; }
    RefCount decRefCount() noexcept override { return --references_; }

private:
    static constexpr size_t kMostBytesOfACharacter = 4; // none is cut in two

    nvinfer1::INetworkDefinition& network_;
    nvinfer1::IErrorRecorder* const next_;
    std::atomic<RefCount> references_{0};
    std::string last_;
};

// Weights of a layer that are a part of an initializer have its name, this mark, where the part begins and how many elements
// there are in all: "W\x1f" "128/512". A refitter takes the parts together (api/engine/refitter.cpp).
inline constexpr char const kPartMark[] = "\x1f";

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

class ModelImporter
{
public:
    ModelImporter(nvinfer1::INetworkDefinition& network, nvinfer1::ILogger& logger, ImporterMap const& importers,
                  Memory& memory);

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

    // Imports a subgraph of a node: its inputs are `inputs`, other names are those around.
    std::vector<Value> importSubgraph(tw_onnx::GraphProto const& graph, std::string const& title,
                                      std::vector<Value> const& inputs, std::function<ITensor&(ITensor&)> enter);

    // How many nodes of topologicalOrder() were imported before the error.
    int nbImported() const { return nbImported_; }

    nvinfer1::INetworkDefinition& network() const { return network_; }
    WeightReader& weights() { return weights_; }
    Memory& memory() const { return memory_; }
    // What the network has said last of something that it refused; empty: nothing.
    std::string const& reason() const { return reasons_.last(); }
    void log(nvinfer1::ILogger::Severity severity, std::string const& message) const;
    std::string uniqueLayerName(std::string const& wanted);
    // False when the computed constants of this model would need more than `limit` bytes.
    bool takeComputed(int64_t sizeBytes, int64_t limit)
    {
        if (sizeBytes > limit - computedBytes_)
            return false;
        computedBytes_ += sizeBytes;
        return true;
    }
    // Weights of layers that are to have an initializer's name, with `suffix`; a name stands for the first weights that have it.
    void nameWeights(nvinfer1::Weights const& weights, std::string const& name, std::string const& suffix);
    // The import stands on elements of this initializer: no weights have its name.
    void decideBy(std::string const& name) { decided_.insert(name); }
    // The output of layers that compute a constant, in its place; null where there are none.
    ITensor* layersOf(Computed& c);

private:
    // The names of a graph; those of the graphs around it stand before it.
    struct Scope
    {
        std::unordered_map<std::string, Value> values;
        std::function<ITensor&(ITensor&)> enter;        // what a tensor from around goes through
        std::unordered_map<ITensor*, ITensor*> entered; // what it became
    };
    // Null when nothing has the name.
    Value find(std::string const& name);
    bool isDefined(std::string const& name) const;
    std::unordered_map<std::string, Value>& values() { return scopes_.back().values; }
    void readInitializers(tw_onnx::GraphProto const& graph);
    void checkModel(tw_onnx::ModelProto const& model);
    void importInputs(tw_onnx::GraphProto const& graph);
    void importNode(tw_onnx::GraphProto const& graph, int index);
    void tryPlugin(ImportContext& ctx);
    bool importOptionalSqueeze(ImportContext& ctx);
    void markOutputs(tw_onnx::GraphProto const& graph);
    void setWeightsNames();
    void renameInput(ITensor& input); // one that an output is named after
    void nameTensor(ITensor& tensor, std::string const& wanted);

    nvinfer1::INetworkDefinition& network_;
    Reasons reasons_{network_};
    nvinfer1::ILogger& logger_;
    ImporterMap const& importers_;
    Memory& memory_;
    WeightReader weights_;
    int opset_ = 0;
    int nbImported_ = 0;
    int64_t computedBytes_ = 0;
    std::vector<Scope> scopes_{1};
    std::unordered_set<std::string> layerNames_, tensorNames_, decided_;
    struct NamedWeights
    {
        nvinfer1::Weights weights;
        std::string name, suffix;
    };
    std::vector<NamedWeights> weightsNames_;
    std::unordered_map<std::string, int> nextSuffix_;
    std::unordered_set<ITensor*> named_; // inputs, outputs and tensors that carry an ONNX name
};

} // namespace tw::onnx
