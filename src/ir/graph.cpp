// SPDX-License-Identifier: Apache-2.0
#include "ir/graph.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/check.h"
#include "ir/infer.h"
#include "ir/op_def.h"

namespace tw::ir {

Value* Graph::newValue(std::string valueName, DataType type, Shape shape)
{
    auto v = std::make_unique<Value>();
    v->id = nextValueId_++;
    v->name = std::move(valueName);
    v->type = type;
    v->shape = std::move(shape);
    values_.push_back(std::move(v));
    return values_.back().get();
}

Value* Graph::addInput(std::string valueName, DataType type, Shape shape)
{
    Value* v = newValue(std::move(valueName), type, std::move(shape));
    inputs.push_back(v);
    return v;
}

Value* Graph::addConstant(std::string valueName, DataType type, Extents const& dims, std::shared_ptr<Constant const> c)
{
    TW_CHECK(c && c->data && int64_t(c->data->sizeBytes()) >= dims.volume() * sizeOf(type));
    Value* v = newValue(std::move(valueName), type, shapeOf(dims));
    v->constant = std::move(c);
    return v;
}

Value* Graph::addConstant(std::string valueName, DataType type, Extents const& dims, void const* elements)
{
    auto c = std::make_shared<Constant>();
    c->data = Blob::copy(elements, size_t(dims.volume() * sizeOf(type)));
    return addConstant(std::move(valueName), type, dims, std::move(c));
}

namespace {

Result<InferContext> runInference(Node const& node, SymbolTable const& symbols)
{
    int const count = int(node.inputs.size());
    OpDef const& op = *node.op;
    if (count < op.inputs.least || (op.inputs.most >= 0 && count > op.inputs.most))
        return invalidArgument("{} '{}': {} inputs given, {} to {} allowed", op.name, node.name, count, op.inputs.least,
                               op.inputs.most < 0 ? std::string("any number") : std::to_string(op.inputs.most));
    std::vector<ValueInfo> infos;
    for (int i = 0; i < count; ++i) {
        if (!node.inputs[i] && i < op.inputs.least)
            return invalidArgument("{} '{}': required input {} is missing", op.name, node.name, i);
        infos.push_back(node.inputs[i] ? infoOf(*node.inputs[i]) : ValueInfo{});
    }
    InferContext ctx(node, std::move(infos), false);
    ctx.setSymbols(&symbols);
    TW_TRY(op.infer(ctx));
    for (size_t i = 0; i < ctx.outputs().size(); ++i) {
        ValueInfo& out = ctx.outputs()[i];
        for (Dim& d : out.shape)
            d = d.within(symbols);
        for (size_t e = 0; out.content && e < out.content->size(); ++e)
            (*out.content)[e] = (*out.content)[e].within(symbols);
        if (int(out.shape.size()) > kMaxRank)
            return ctx.error(
                fmt::format("output {} would have rank {}, the limit is {}", i, out.shape.size(), kMaxRank));
        int64_t elements = 1;
        for (Dim const& d : out.shape) {
            if (!d.isConst())
                continue;
            if (d.value() < 0)
                return ctx.error(
                    fmt::format("output {} would have the negative dimension {} in {}", i, d.value(), str(out.shape)));
            elements = mulSat(elements, d.value());
        }
        if (isStatic(out.shape) && elements > INT32_MAX)
            return ctx.error(fmt::format("output {} with shape {} has 2^31 elements or more; the limit is 2^31 - 1", i,
                                         str(out.shape)));
    }
    return ctx;
}

void applyOutput(Value& v, ValueInfo& info)
{
    v.type = info.type;
    v.shape = std::move(info.shape);
    v.content = std::move(info.content);
}

} // namespace

Result<Node*> Graph::addNode(OpDef const& op, std::unique_ptr<AttrsBase> attrs, std::vector<Value*> nodeInputs,
                             std::string nodeName, std::vector<std::unique_ptr<Graph>> regions, int position,
                             std::unique_ptr<Graph> body)
{
    auto node = std::make_unique<Node>();
    node->id = nextNodeId_++;
    node->op = &op;
    node->attrs = std::move(attrs);
    while (!nodeInputs.empty() && !nodeInputs.back() && int(nodeInputs.size()) > op.inputs.least)
        nodeInputs.pop_back();
    node->inputs = std::move(nodeInputs);
    node->name = std::move(nodeName);
    node->layers = {node->name};
    node->regions = std::move(regions);
    node->body = std::move(body);
    TW_ASSIGN(InferContext ctx, runInference(*node, symbols));
    for (auto& [name_, symbol] : ctx.freshSymbols())
        symbols[name_] = symbol;
    for (size_t i = 0; i < ctx.outputs().size(); ++i) {
        Value* v = newValue(node->name + (i ? fmt::format(":{}", i) : ""), DataType::kFloat, {});
        applyOutput(*v, ctx.outputs()[i]);
        v->producer = node.get();
        v->producerIndex = int(i);
        node->outputs.push_back(v);
    }
    node->outputTypes.resize(node->outputs.size());
    Node* raw = node.get();
    if (position < 0 || position >= int(nodes.size()))
        nodes.push_back(std::move(node));
    else
        nodes.insert(nodes.begin() + position, std::move(node));
    return raw;
}

Result<void> Graph::inferNode(Node& node)
{
    TW_ASSIGN(InferContext ctx, runInference(node, symbols));
    if (ctx.outputs().size() != node.outputs.size())
        return internalError("{} '{}': inference gives {} outputs, the node has {}", node.op->name, node.name,
                             ctx.outputs().size(), node.outputs.size());
    for (auto& [name_, symbol] : ctx.freshSymbols())
        symbols[name_] = symbol;
    for (size_t i = 0; i < node.outputs.size(); ++i)
        applyOutput(*node.outputs[i], ctx.outputs()[i]);
    return {};
}

Result<void> Graph::inferAll()
{
    for (auto& n : nodes)
        TW_TRY(inferNode(*n));
    return {};
}

void Graph::replaceAllUses(Value* from, Value* to)
{
    for (auto& n : nodes)
        std::ranges::replace(n->inputs, from, to);
    std::ranges::replace(outputs, from, to);
}

int Graph::useCount(Value const* v) const
{
    int count = int(std::ranges::count(outputs, v));
    for (auto const& n : nodes)
        count += int(std::ranges::count(n->inputs, v));
    return count;
}

bool Graph::isOutput(Value const* v) const
{
    return contains(outputs, v);
}

int Graph::positionOf(Node const* n) const
{
    for (size_t i = 0; i < nodes.size(); ++i)
        if (nodes[i].get() == n)
            return int(i);
    return -1;
}

void Graph::eraseNode(Node* n)
{
    for (Value* v : n->outputs)
        TW_CHECK(useCount(v) == 0);
    std::erase_if(values_, [&](auto const& v) { return v->producer == n; });
    std::erase_if(nodes, [&](auto const& p) { return p.get() == n; });
}

void Graph::eraseUnusedValues()
{
    std::set<Value const*> used(inputs.begin(), inputs.end());
    used.insert(outputs.begin(), outputs.end());
    for (auto const& n : nodes) {
        used.insert(n->inputs.begin(), n->inputs.end());
        used.insert(n->outputs.begin(), n->outputs.end());
    }
    std::erase_if(values_, [&](auto const& v) { return !used.contains(v.get()); });
}

void Graph::rollBack(Mark m)
{
    nodes.resize(m.nodes);
    std::set<Value const*> dropped;
    for (size_t i = m.values; i < values_.size(); ++i)
        dropped.insert(values_[i].get());
    std::erase_if(inputs, [&](Value const* v) { return dropped.contains(v); });
    values_.resize(m.values);
}

Node* Graph::cloneNode(Node const& node, std::vector<Value*> newInputs)
{
    auto copy = std::make_unique<Node>();
    copy->id = nextNodeId_++;
    copy->op = node.op;
    copy->attrs = node.attrs->clone();
    copy->inputs = std::move(newInputs);
    for (auto const& r : node.regions)
        copy->regions.push_back(r->clone());
    if (node.body)
        copy->body = node.body->clone();
    copy->name = node.name;
    copy->layers = node.layers;
    copy->precision = node.precision;
    copy->outputTypes = node.outputTypes;
    copy->device = node.device;
    for (Value const* v : node.outputs) {
        Value* w = newValue(v->name, v->type, v->shape);
        w->host = v->host;
        w->format = v->format;
        w->content = v->content;
        w->producer = copy.get();
        w->producerIndex = v->producerIndex;
        copy->outputs.push_back(w);
    }
    nodes.push_back(std::move(copy));
    return nodes.back().get();
}

Node* Graph::adoptNode(std::unique_ptr<Node> node)
{
    nextNodeId_ = std::max(nextNodeId_, node->id < INT32_MAX ? node->id + 1 : node->id);
    nodes.push_back(std::move(node));
    return nodes.back().get();
}

std::unique_ptr<Graph> Graph::clone() const
{
    auto g = std::make_unique<Graph>();
    g->name = name;
    g->form = form;
    g->symbols = symbols;
    std::map<Value const*, Value*> to;
    to[nullptr] = nullptr;
    for (auto const& v : values_) {
        if (v->producer)
            continue;
        Value* w = g->newValue(v->name, v->type, v->shape);
        w->host = v->host;
        w->format = v->format;
        w->constant = v->constant;
        w->content = v->content;
        to[v.get()] = w;
    }
    for (Value const* v : inputs)
        g->inputs.push_back(to.at(v));
    for (auto const& n : nodes) {
        auto in = mapped<Value*>(n->inputs, [&](Value const* v) { return to.at(v); });
        Node* m = g->cloneNode(*n, std::move(in));
        m->id = n->id; // symbols that a node binds are named after its id
        for (size_t i = 0; i < n->outputs.size(); ++i)
            to[n->outputs[i]] = m->outputs[i];
    }
    g->nextNodeId_ = nextNodeId_;
    for (Value const* v : outputs)
        g->outputs.push_back(to.at(v));
    return g;
}

} // namespace tw::ir
