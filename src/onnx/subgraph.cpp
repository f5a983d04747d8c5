// SPDX-License-Identifier: Apache-2.0
// Graphs in graphs: the order of nodes, names from around, subgraphs of If, Loop and Scan.
#include <algorithm>

#include "onnx/importer.h"
#include "onnx/model.h"
#include "tw_onnx.pb.h"

namespace tw::onnx {

using nvonnxparser::ErrorCode;

namespace {

std::string nodeTitle(tw_onnx::NodeProto const& node, int index)
{
    return fmt::format("node {}{} ({})", index, node.name().empty() ? "" : " '" + node.name() + "'", node.op_type());
}

using NameSet = std::set<std::string>;
void addReads(tw_onnx::NodeProto const& node, NameSet& names);

// What a graph reads and does not define.
void addFreeNames(tw_onnx::GraphProto const& graph, NameSet& names)
{
    NameSet read, defined;
    for (auto const& node : graph.node()) {
        addReads(node, read);
        defined.insert(node.output().begin(), node.output().end());
    }
    for (auto const& output : graph.output())
        read.insert(output.name());
    for (auto const& input : graph.input())
        defined.insert(input.name());
    for (auto const& tensor : graph.initializer())
        defined.insert(tensor.name());
    std::set_difference(read.begin(), read.end(), defined.begin(), defined.end(), std::inserter(names, names.end()));
}

// The node's inputs, and what its subgraphs take from around.
void addReads(tw_onnx::NodeProto const& node, NameSet& names)
{
    for (std::string const& name : node.input())
        if (!name.empty())
            names.insert(name);
    for (auto const& a : node.attribute()) {
        if (a.has_g())
            addFreeNames(a.g(), names);
        for (auto const& g : a.graphs())
            addFreeNames(g, names);
    }
}

} // namespace

std::optional<ImportContext::Growth> OnnxNode::growthOf(char const* attr, int input, int output) const
{
    auto const& graph = attrGraph(attr, Where::current());
    std::string const &name = graph.input(input).name(), &grown = graph.output(output).name();
    Growth growth;
    bool isGrown = false;
    for (auto const& node : graph.node()) {
        NameSet names;
        addReads(node, names);
        bool const joins = node.op_type() == "Concat" && node.input_size() > 1 && node.input(0) == name &&
                           node.output_size() == 1 && node.output(0) == grown &&
                           std::count(node.input().begin(), node.input().end(), name) == 1;
        isGrown = isGrown || joins;
        growth.isRead = growth.isRead || (!joins && (names.count(name) || names.count(grown)));
        for (auto const& a : node.attribute())
            growth.axis = joins && a.name() == "axis" ? a.i() : growth.axis;
    }
    for (int i = 0; i < graph.output_size(); ++i)
        growth.isRead =
            growth.isRead || graph.output(i).name() == name || (i != output && graph.output(i).name() == grown);
    return isGrown ? std::optional(growth) : std::nullopt;
}

std::vector<int> ModelImporter::topologicalOrder(tw_onnx::GraphProto const& graph,
                                                 std::function<bool(std::string const&)> const& isAround)
{
    std::unordered_map<std::string, int> producer; // value -> node; -1: input or initializer
    for (auto const& t : graph.initializer())
        producer.emplace(t.name(), -1);
    for (auto const& v : graph.input())
        producer.emplace(v.name(), -1);
    for (int i = 0; i < graph.node_size(); ++i)
        for (std::string const& name : graph.node(i).output())
            if (!name.empty() && !producer.emplace(name, i).second)
                fail(ErrorCode::kINVALID_GRAPH,
                     "value '" + name + "' is defined twice, the second time by " + nodeTitle(graph.node(i), i));
    std::vector<std::vector<int>> users(size_t(graph.node_size()));
    std::vector<int> waiting(size_t(graph.node_size()), 0);
    for (int i = 0; i < graph.node_size(); ++i) {
        NameSet names;
        addReads(graph.node(i), names);
        for (std::string const& name : names) {
            auto it = producer.find(name);
            if (it == producer.end()) {
                if (isAround && isAround(name))
                    continue;
                fail(ErrorCode::kINVALID_GRAPH, nodeTitle(graph.node(i), i) + " reads '" + name +
                                                    "', which no node, input or initializer defines");
            }
            if (it->second >= 0) {
                users[size_t(it->second)].push_back(i);
                ++waiting[size_t(i)];
            }
        }
    }
    // Among the nodes that are ready the one that stands first in the file goes first: files in order keep it.
    std::set<int> ready;
    for (int i = 0; i < graph.node_size(); ++i)
        if (waiting[size_t(i)] == 0)
            ready.insert(i);
    std::vector<int> order;
    while (!ready.empty()) {
        int const i = *ready.begin();
        ready.erase(ready.begin());
        order.push_back(i);
        for (int user : users[size_t(i)])
            if (--waiting[size_t(user)] == 0)
                ready.insert(user);
    }
    if (int(order.size()) != graph.node_size())
        for (int i = 0; i < graph.node_size(); ++i)
            if (waiting[size_t(i)] != 0)
                fail(ErrorCode::kINVALID_GRAPH,
                     nodeTitle(graph.node(i), i) + " depends on its own output: the graph has a cycle");
    return order;
}

// ---- names

bool ModelImporter::isDefined(std::string const& name) const
{
    return std::ranges::any_of(scopes_, [&](Scope const& s) { return s.values.count(name) != 0; });
}

void ModelImporter::withValues(Value& v)
{
    if (v.isConstant() && v.constant().later)
        v = Value(Constant(v.constant().later->values()));
}

Value ModelImporter::find(std::string const& name, bool asItIs)
{
    size_t at = scopes_.size();
    while (at > 0 && !scopes_[at - 1].values.count(name))
        --at;
    if (at == 0)
        fail(ErrorCode::kINVALID_GRAPH, "no node, input or initializer defines '" + name + "'");
    Value& found = scopes_[at - 1].values.at(name);
    if (!asItIs)
        withValues(found);
    Value v = found;
    for (; at < scopes_.size() && v.isTensor(); ++at) {
        Scope& inner = scopes_[at];
        if (!inner.enter)
            continue;
        ITensor*& entered = inner.entered[&v.tensor()];
        if (!entered)
            entered = &inner.enter(v.tensor());
        v = Value(*entered, v.integers());
    }
    return v;
}

void ModelImporter::readInitializers(tw_onnx::GraphProto const& graph)
{
    for (auto const& tensor : graph.initializer()) {
        if (values().count(tensor.name()))
            fail(ErrorCode::kINVALID_GRAPH, "initializer '" + tensor.name() + "' is listed twice");
        Constant c = weights_.readLater(tensor, "initializer '" + tensor.name() + "'");
        // Products take such integers in an order of their own.
        if (int64_t const bytes = c.later                     ? c.count * c.later->integers.bits / 8
                                  : c.type == DataType::kINT8 ? c.count
                                                              : 0;
            scopes_.size() == 1)
            allowComputed(2 * bytes);
        values()[tensor.name()] = Value(std::move(c));
    }
}

// ---- subgraphs

std::vector<Value> ModelImporter::importSubgraph(tw_onnx::GraphProto const& graph, std::string const& title,
                                                 std::vector<Value> const& inputs,
                                                 std::function<ITensor&(ITensor&)> enter, Names names)
{
    // Each level takes some of the stack of importers.
    constexpr size_t kMostLevels = 32;
    if (scopes_.size() > kMostLevels)
        fail(ErrorCode::kUNSUPPORTED_GRAPH,
             fmt::format("{}: subgraphs deeper than {} levels cannot be imported", title, kMostLevels));
    // Few bytes can ask for any number of trips and elements of sequences.
    constexpr int64_t kMostNodes = 1 << 18;
    nbOfSubgraphs_ += graph.node_size() + 1;
    if (nbOfSubgraphs_ > kMostNodes)
        fail(ErrorCode::kUNSUPPORTED_GRAPH, fmt::format("{}: the subgraphs of the model, repeated for each trip and "
                                                        "each element of sequences, have more than {} nodes",
                                                        title, kMostNodes));
    if (graph.sparse_initializer_size() > 0)
        fail(ErrorCode::kUNSUPPORTED_GRAPH, title + ": sparse initializers cannot be imported");
    std::function<bool(std::string const&)> isAround;
    if (names == Names::kAround)
        isAround = [this](std::string const& name) { return isDefined(name); };
    auto const order = topologicalOrder(graph, isAround);
    struct Leave
    {
        std::vector<Scope>& scopes;
        ~Leave() { scopes.pop_back(); }
    };
    scopes_.push_back(Scope{{}, std::move(enter), {}});
    Leave const leave{scopes_};
    readInitializers(graph);
    for (int i = 0; i < graph.input_size() && i < int(inputs.size()); ++i)
        values()[graph.input(i).name()] = inputs[size_t(i)];
    for (int index : order) {
        try {
            importNode(graph, index);
        } catch (ImportError& e) {
            e.message = title + ", " + nodeTitle(graph.node(index), index) + ": " + e.message;
            throw;
        }
    }
    auto outputs = mapped<Value>(graph.output(), [&](auto const& output) { return find(output.name()); });
    return outputs;
}

namespace {

// The graph's one node that is no constant, if it gives the graph's one output.
tw_onnx::NodeProto const* onlyNode(tw_onnx::GraphProto const& graph)
{
    tw_onnx::NodeProto const* found = nullptr;
    for (auto const& node : graph.node()) {
        if (node.op_type() == "Constant")
            continue;
        if (found)
            return nullptr;
        found = &node;
    }
    bool const gives = found && graph.output_size() == 1 && found->output_size() == 1 && found->input_size() > 0 &&
                       found->output(0) == graph.output(0).name();
    return gives ? found : nullptr;
}

} // namespace

// PyTorch writes a squeeze of a dimension that it does not know as If(it is 1, Squeeze(x), Identity(x)): a result of two
// ranks. Networks have one; what follows is written for the smaller.
bool ModelImporter::importOptionalSqueeze(OnnxNode& ctx)
{
    if (ctx.opType() != "If" || ctx.nbOutputs() != 1 || ctx.isConstant(0) || !ctx.findAttr("then_branch") ||
        !ctx.findAttr("else_branch"))
        return false;
    auto const *then = onlyNode(ctx.findAttr("then_branch")->g()),
               *otherwise = onlyNode(ctx.findAttr("else_branch")->g());
    if (!then || !otherwise || then->op_type() != "Squeeze" || otherwise->op_type() != "Identity" ||
        then->input(0) != otherwise->input(0))
        return false;
    ctx.warn("the dimension that this node removes if it is 1 is taken to be 1");
    ctx.setOutput(0, ctx.importGraph("then_branch", {})[0]);
    return true;
}

} // namespace tw::onnx
