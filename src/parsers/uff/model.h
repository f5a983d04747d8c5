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
class DimensionOrders;
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
    // A field of a node, which may stand in the referenced data. Null: there is none.
    tw_uff::Data const* fieldOf(tw_uff::Node const& n, std::string_view name) const;
    // Order of an input's axes in the graph, by a node that says so and that nothing rearranging stands before: the canonical
    // axes one after another, without the batch. Empty: none does.
    std::vector<int> orderFromReaders(std::string const& input, int rank) const;

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
    void findReaders(std::vector<int> const& order);
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
    // What readers of a node's tensor say of the order of its axes.
    struct Said
    {
        tw_uff::DimensionOrders const* orders = nullptr; // null: nothing
        std::vector<int>
            axes; // [i]: the tensor's axis that axis i is behind Transposes, with the batch; empty: the same
    };
    static void passedOn(Said& said, std::vector<int64_t> const& permutation);
    Said saidBehind(int index) const;
    std::vector<Said> said_; // by node
    std::unordered_set<ITensor const*> named_, marked_;
};

} // namespace tw::uff
