// SPDX-License-Identifier: Apache-2.0
// Imports one UFF file into a network: which nodes are needed, their order, inputs, outputs, names.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "NvUffParser.h"
#include "importers/common/network.h"
#include "parsers/uff/layout.h"

namespace tw_uff {
class Data;
class Graph;
class MetaGraph;
class Node;
} // namespace tw_uff

namespace tw::uff {

class UffNode;

struct Request
{
    Dims dims; // without the batch
    nvuffparser::UffInputOrder order;
};

// What the client said before parse().
struct Wishes
{
    std::unordered_map<std::string, Request> inputs;
    std::vector<std::string> outputs;
    std::string pluginNamespace;
};

// Of one node; `kind`: "Parser" or "Validator".
struct NodeError
{
    ImportError error;
    char const* kind;
    std::string node;
};

class Model : public ImportedNetwork
{
public:
    // `file` must outlive the network's build: weights stand in it.
    Model(tw_uff::MetaGraph const& file, Wishes const& wishes, nvinfer1::INetworkDefinition& network,
          nvinfer1::ILogger& logger, Memory& memory, DataType weightsType);

    void import(); // throws NodeError, or ImportError for the file as a whole

    DataType weightsType() const { return weightsType_; }
    std::string const& pluginNamespace() const { return wishes_.pluginNamespace; }
    // What a reference stands for; an error where there is none.
    tw_uff::Data const& resolved(tw_uff::Data const& data) const;
    std::string operationOf(std::string const& name) const; // of the node that an input names
    // What the client registered for an input; null: nothing.
    Request const* requestFor(std::string const& id) const;
    // Order of an input's axes in the graph, by the first nodes that say so and that nothing rearranging stands before: the
    // canonical axes one after another, without the batch. Empty: none does.
    std::vector<int> orderFromReaders(UffNode const& input, int rank) const;

private:
    // An output of a node; ids of nodes go before `id_1`, `id_2`, which are further outputs of a plugin.
    struct Source
    {
        int node = -1;
        int output = 0;
        bool isWhole = false; // named by the node: it may stand for all outputs
    };
    tw_uff::Node const& node(int i) const;
    Source sourceOf(std::string const& name) const;
    void indexNodes();
    std::vector<int> wanted() const;
    std::vector<int> order() const;
    void validate(std::vector<int> const& order) const;
    std::vector<Tensor> inputsOf(tw_uff::Node const& n) const;
    void importNode(int index);
    void nameOutputs(int index, std::vector<Tensor> const& inputs);
    void markOutputs();
    void markOutput(Tensor const& t, std::string const& name, UffNode& by);

    tw_uff::MetaGraph const& file_;
    Wishes const& wishes_;
    DataType weightsType_;
    std::unordered_map<std::string_view, tw_uff::Data const*> data_;
    std::unordered_map<std::string_view, int> index_;
    std::vector<std::vector<Tensor>> values_; // by node
    std::vector<std::vector<int>> readers_;   // by node
    std::unordered_set<ITensor const*> named_, marked_;
};

} // namespace tw::uff
