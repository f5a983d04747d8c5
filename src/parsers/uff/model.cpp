// SPDX-License-Identifier: Apache-2.0
#include "parsers/uff/model.h"

#include <algorithm>
#include <charconv>

#include "parsers/uff/node.h"
#include "parsers/uff/operations.h"
#include "tw_uff.pb.h"

namespace tw::uff {

using nvonnxparser::ErrorCode;

namespace {

// Operators that take all outputs of a plugin that is named once.
bool takesAll(std::string const& operation)
{
    return operation == "Concat" || operation == "Stack" || operation == "MarkOutput" || operation.starts_with('_');
}

} // namespace

Model::Model(tw_uff::MetaGraph const& file, Wishes const& wishes, nvinfer1::INetworkDefinition& network,
             nvinfer1::ILogger& logger, Memory& memory, DataType weightsType)
    : ImportedNetwork(network, logger, memory, "UffParser"), file_(file), wishes_(wishes), weightsType_(weightsType)
{}

tw_uff::Node const& Model::node(int i) const
{
    return file_.graphs(0).nodes(i);
}

tw_uff::Data const& Model::resolved(tw_uff::Data const& data) const
{
    if (!data.has_ref())
        return data;
    auto const found = data_.find(data.ref());
    if (found == data_.end())
        fail(ErrorCode::kINVALID_GRAPH, fmt::format("the referenced data have no '{}'", shown(data.ref())));
    if (found->second->has_ref())
        fail(ErrorCode::kINVALID_GRAPH,
             fmt::format("the referenced data '{}' are a reference again", shown(data.ref())));
    return *found->second;
}

Request const* Model::requestFor(std::string const& id) const
{
    auto const found = wishes_.inputs.find(id);
    return found == wishes_.inputs.end() ? nullptr : &found->second;
}

std::string Model::operationOf(std::string const& name) const
{
    Source const s = sourceOf(name);
    return s.node < 0 ? "" : node(s.node).operation();
}

// ---- the graph as a whole

void Model::indexNodes()
{
    if (file_.graphs_size() != 1)
        fail(ErrorCode::kUNSUPPORTED_GRAPH, fmt::format("Unsupported number of graph {}", file_.graphs_size()));
    if (!network().hasImplicitBatchDimension())
        fail(ErrorCode::kINVALID_VALUE,
             "UFF models need a network with an implicit batch; create it by createNetworkV2() "
             "without NetworkDefinitionCreationFlag::kEXPLICIT_BATCH");
    for (auto const& entry : file_.referenced_data())
        data_[entry.key()] = &entry.value();
    int const count = file_.graphs(0).nodes_size();
    for (int i = 0; i < count; ++i) {
        std::string const& id = node(i).id();
        if (id.empty() || id.size() > 4000 || id.find('\0') != std::string::npos)
            fail(ErrorCode::kINVALID_GRAPH,
                 fmt::format("node {} has the id '{}'; ids have 1 to 4000 bytes, none of which is 0", i, shown(id)));
        constexpr int kMostFields = 4096; // far more than any operation or plugin has
        if (node(i).fields_size() > kMostFields)
            fail(ErrorCode::kINVALID_GRAPH, fmt::format("node '{}' has {} fields (allowed: 0..{})", shown(id),
                                                        node(i).fields_size(), kMostFields));
        if (!index_.emplace(id, i).second)
            fail(ErrorCode::kINVALID_GRAPH, fmt::format("two nodes have the id '{}'", shown(id)));
    }
    values_.resize(size_t(count));
    said_.resize(size_t(count));
    constexpr int64_t kMostTimes = 4; // that weights of the file are written down in another order or type
    allowComputed(kMostTimes * int64_t(file_.ByteSizeLong()));
    for (auto const& [name, request] : wishes_.inputs)
        if (auto const found = index_.find(name); found == index_.end() || node(found->second).operation() != "Input")
            log(nvinfer1::ILogger::Severity::kWARNING,
                fmt::format("the graph has no Input node '{}', which was registered as one", shown(name)));
    if (constexpr int64_t kKnown = 1; file_.has_version() && file_.version() != kKnown)
        log(nvinfer1::ILogger::Severity::kWARNING,
            fmt::format("the file is of version {}; it is read as one of version {}", file_.version(), kKnown));
}

Model::Source Model::sourceOf(std::string const& name) const
{
    if (auto const found = index_.find(name); found != index_.end())
        return {found->second, 0, true};
    size_t const cut = name.find_last_of("_:");
    int output = 0;
    if (cut == std::string::npos)
        return {};
    char const *from = name.data() + cut + 1, *end = name.data() + name.size();
    auto const [stop, error] = std::from_chars(from, end, output);
    auto const found = index_.find(std::string_view(name).substr(0, cut));
    if (error != std::errc() || stop != end || output < 0 || found == index_.end())
        return {};
    return {found->second, output, false};
}

std::vector<int> Model::wanted() const
{
    std::vector<int> nodes;
    for (std::string const& name : wishes_.outputs) {
        nodes.push_back(sourceOf(name).node);
        if (nodes.back() < 0)
            fail(ErrorCode::kINVALID_GRAPH,
                 fmt::format("the graph has no node '{}', which was registered as an output", shown(name)));
    }
    for (int i = 0; wishes_.outputs.empty() && i < file_.graphs(0).nodes_size(); ++i)
        if (node(i).operation() == "MarkOutput")
            nodes.push_back(i);
    if (nodes.empty())
        fail(ErrorCode::kINVALID_GRAPH, "no output was registered, and the graph has no MarkOutput node");
    return nodes;
}

// Those that the outputs need, each behind its inputs.
std::vector<int> Model::order() const
{
    enum class State : char
    {
        kNew,
        kOpen, // on the way from an output
        kDone
    };
    struct Step
    {
        int node;
        int next = 0; // of its inputs
    };
    std::vector<State> states(values_.size(), State::kNew);
    std::vector<int> order;
    std::vector<Step> way;
    for (int const output : wanted()) {
        if (states[size_t(output)] != State::kNew)
            continue;
        way.push_back({output});
        states[size_t(output)] = State::kOpen;
        while (!way.empty()) {
            Step& step = way.back();
            tw_uff::Node const& n = node(step.node);
            if (step.next == n.inputs_size()) {
                states[size_t(step.node)] = State::kDone;
                order.push_back(step.node);
                way.pop_back();
                continue;
            }
            std::string const& name = n.inputs(step.next++);
            int const source = sourceOf(name).node;
            if (source < 0)
                throw NodeError{
                    {ErrorCode::kINVALID_GRAPH,
                     fmt::format("input {} is '{}', which no node of the graph is", step.next - 1, shown(name)),
                     SourceLocation::current()},
                    "Parser",
                    shown(n.id())};
            if (states[size_t(source)] == State::kNew) {
                states[size_t(source)] = State::kOpen;
                way.push_back({source});
            } else if (states[size_t(source)] == State::kOpen) {
                constexpr int kMostNamed = 8;
                std::string names;
                int count = 0;
                for (size_t i = way.size(); i-- > 0; ++count) {
                    if (count < kMostNamed)
                        names += fmt::format("'{}' reads ", shown(node(way[i].node).id()));
                    if (way[i].node == source)
                        break;
                }
                names += count < kMostNamed ? "" : "... reads ";
                fail(ErrorCode::kINVALID_GRAPH,
                     fmt::format("the nodes form a cycle: {}'{}'", names, shown(node(way.back().node).id())));
            }
        }
    }
    return order;
}

void Model::validate(std::vector<int> const& order) const
{
    for (int const i : order)
        if (std::string const& operation = node(i).operation(); !findOperation(operation, *this))
            throw NodeError{{ErrorCode::kUNSUPPORTED_NODE, "Unsupported operation " + shown(operation), {}},
                            "Validator",
                            shown(node(i).id())};
}

tw_uff::Data const* Model::fieldOf(tw_uff::Node const& n, std::string_view name) const
{
    tw_uff::Data const* found = nullptr;
    for (auto const& entry : n.fields())
        if (entry.key() == name)
            found = &entry.value();
    return found ? &resolved(*found) : nullptr;
}

void Model::passedOn(Said& said, std::vector<int64_t> const& permutation)
{
    std::vector<int64_t> sorted = permutation;
    std::ranges::sort(sorted);
    bool isPermutation = true;
    for (size_t i = 0; i < sorted.size(); ++i)
        isPermutation = isPermutation && sorted[i] == int64_t(i);
    if (!isPermutation) {
        said = {};
        return;
    }
    if (said.axes.empty())
        said.axes = allAxes(int(permutation.size()));
    for (int& axis : said.axes)
        axis = size_t(axis) < permutation.size() ? int(permutation[size_t(axis)]) : 0;
}

// What a node without orders passes on to its inputs.
Model::Said Model::saidBehind(int index) const
{
    // Nodes behind which the graph's axes are other ones.
    static constexpr std::string_view kRearranging[] = {"Reshape", "Flatten", "Squeeze",        "ExpandDims",
                                                        "Stack",   "Shape",   "FullyConnected", "ArgMax",
                                                        "ArgMin",  "GatherV2"};
    tw_uff::Node const& n = node(index);
    tw_uff::Data const* const shrink = fieldOf(n, "shrink_axis_mask");
    if (contains(kRearranging, n.operation()) || (shrink && shrink->i() != 0))
        return {};
    Said said = said_[size_t(index)];
    if (said.orders && n.operation() == "Transpose") {
        tw_uff::Data const* const p = fieldOf(n, "permutation");
        if (!p || p->i_list().val_size() > Dims::MAX_DIMS + 1)
            return {};
        passedOn(said, {p->i_list().val().begin(), p->i_list().val().end()});
    }
    return said;
}

// From the outputs on, so that each node is looked at once.
void Model::findReaders(std::vector<int> const& order)
{
    for (auto at = order.rbegin(); at != order.rend(); ++at) {
        tw_uff::Node const& n = node(*at);
        tw_uff::Data const* orders = nullptr;
        Said behind;
        try {
            orders = fieldOf(n, "inputs_orders");
            behind = orders ? Said() : saidBehind(*at);
        } catch (ImportError const&) { // a reference to nothing, which the node's own import says
        }
        for (int k = 0; k < n.inputs_size(); ++k) {
            Said& said = said_[size_t(sourceOf(n.inputs(k)).node)];
            if (said.orders)
                continue;
            said = behind;
            if (orders && k < orders->dim_orders_list().val_size())
                said.orders = &orders->dim_orders_list().val(k);
        }
    }
}

std::vector<int> Model::orderFromReaders(std::string const& input, int rank) const
{
    Said const& said = said_[size_t(index_.at(input))];
    std::vector<int> const places = said.orders ? placesOf(*said.orders, rank + 1) : std::vector<int>();
    if (places.empty() || (!said.axes.empty() && said.axes.size() != places.size()))
        return {};
    std::vector<int> order = inverse(places);
    for (int& axis : order)
        axis = (said.axes.empty() ? axis : said.axes[size_t(axis)]) - 1;
    if (order[0] != -1)
        return {};
    order.erase(order.begin());
    return order;
}

void Model::import()
{
    indexNodes();
    std::vector<int> const nodes = order();
    validate(nodes);
    findReaders(nodes);
    for (int const i : nodes)
        importNode(i);
    markOutputs();
    setWeightsNames();
}

// ---- nodes

std::vector<Tensor> Model::inputsOf(tw_uff::Node const& n) const
{
    std::unordered_map<int, int> listed; // how often a node with several outputs is named
    for (std::string const& name : n.inputs())
        if (Source const s = sourceOf(name); s.isWhole && values_[size_t(s.node)].size() > 1)
            ++listed[s.node];
    std::unordered_map<int, int> next;
    std::vector<Tensor> inputs;
    for (std::string const& name : n.inputs()) {
        Source const s = sourceOf(name);
        std::vector<Tensor> const& outputs = values_[size_t(s.node)];
        if (listed.contains(s.node) && s.isWhole && takesAll(n.operation())) {
            if (listed[s.node] == 1) {
                inputs.insert(inputs.end(), outputs.begin(), outputs.end());
                continue;
            }
            inputs.push_back(outputs[size_t(next[s.node]++) % outputs.size()]);
            continue;
        }
        if (size_t(s.output) >= outputs.size())
            fail(ErrorCode::kINVALID_GRAPH, fmt::format("input '{}': node '{}' has {} outputs", shown(name),
                                                        shown(node(s.node).id()), outputs.size()));
        inputs.push_back(outputs[size_t(s.output)]);
    }
    return inputs;
}

void Model::importNode(int index)
{
    tw_uff::Node const& n = node(index);
    try {
        std::vector<Tensor> const inputs = inputsOf(n);
        UffNode ctx(*this, n, inputs);
        findOperation(n.operation(), *this)(ctx);
        values_[size_t(index)] = std::move(ctx.given());
        nameOutputs(index, inputs);
    } catch (ImportError const& e) {
        throw NodeError{e, "Parser", shown(n.id())};
    }
}

// Tensors that the node made are called as it is, those behind the first id_1, id_2, ...
void Model::nameOutputs(int index, std::vector<Tensor> const& inputs)
{
    for (Tensor const& t : inputs)
        if (t.value.isTensor())
            named_.insert(&t.value.tensor());
    std::string const& id = node(index).id();
    int k = 0;
    for (Tensor const& t : values_[size_t(index)]) {
        std::string const name = k == 0 ? id : fmt::format("{}_{}", id, k);
        bool const isFree = k++ == 0 || !index_.contains(name);
        if (t.value.isTensor() && named_.insert(&t.value.tensor()).second && isFree)
            t.value.tensor().setName(name.c_str());
    }
}

// ---- outputs

void Model::markOutputs()
{
    auto const mark = [&](std::string const& name, Source const& s) {
        tw_uff::Node const& n = node(s.node);
        try {
            UffNode by(*this, n, {});
            std::vector<Tensor> const& values = values_[size_t(s.node)];
            if (!s.isWhole && size_t(s.output) >= values.size())
                by.invalid(fmt::format("output '{}' does not exist: the node has {}", shown(name), values.size()));
            for (size_t k = 0; k < values.size(); ++k)
                if (s.isWhole || int(k) == s.output)
                    markOutput(values[k], k == 0 ? n.id() : fmt::format("{}_{}", n.id(), k), by);
        } catch (ImportError const& e) {
            throw NodeError{e, "Parser", shown(n.id())};
        }
    };
    for (std::string const& name : wishes_.outputs)
        mark(name, sourceOf(name));
    for (int const i : wishes_.outputs.empty() ? wanted() : std::vector<int>())
        mark(node(i).id(), {i, 0, true});
}

// Behind a MarkOutput an output keeps the name of what gives it.
void Model::markOutput(Tensor const& t, std::string const& name, UffNode& by)
{
    if (t.value.isNull())
        by.invalid(t.missing);
    ITensor* y = t.value.isTensor() ? &by.asItIs(t).value.tensor() : &by.asTensor(t.value);
    if (marked_.contains(y) && (by.opType() == "MarkOutput" || name == y->getName()))
        return;
    bool const isOwn = by.opType() == "MarkOutput" ? y == &t.value.tensor() : name == y->getName();
    bool const isInput = y->isNetworkInput();
    if (isInput || marked_.contains(y))
        y = &by.identity(*y);
    if (!isOwn || y != &t.value.tensor())
        y->setName((isInput && by.opType() == "Input" ? name + "_output" : name).c_str());
    marked_.insert(y);
    network().markOutput(*y);
    if (!y->isNetworkOutput())
        by.refused("the network does not take the tensor as an output");
}

} // namespace tw::uff
