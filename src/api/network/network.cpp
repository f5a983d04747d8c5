// SPDX-License-Identifier: Apache-2.0
#include "api/network/network.h"

#include <algorithm>
#include <set>

#include "api/control_flow/emit.h"
#include "api/control_flow/nesting.h"
#include "api/network/ranges.h"
#include "base/hash.h"
#include "ir/shape_values.h"
#include "ops/identity/op.h"
#include "tactic/registry.h"

namespace tw::api {

using nvinfer1::Dims;

// ---- conversions

Dims toPublic(ir::Shape const& s, int skipFront)
{
    Dims d{};
    for (size_t i = size_t(skipFront); i < s.size() && d.nbDims < Dims::MAX_DIMS; ++i) {
        int64_t const v = s[i].value();
        d.d[d.nbDims++] = v > INT32_MAX ? INT32_MAX : int32_t(v);
    }
    return d;
}

Dims toPublic(Extents const& e, int skipFront)
{
    Dims d{};
    for (int i = skipFront; i < e.rank; ++i)
        d.d[d.nbDims++] = int32_t(std::min<int64_t>(e[i], INT32_MAX));
    return d;
}
std::vector<int64_t> toVector(Dims const& d)
{
    int const n = std::clamp(d.nbDims, 0, int(Dims::MAX_DIMS));
    return std::vector<int64_t>(d.d, d.d + n);
}

std::string str(Dims const& d)
{
    if (d.nbDims < 0)
        return "[?]";
    std::string s = "[";
    for (int i = 0; i < std::min(d.nbDims, int(Dims::MAX_DIMS)); ++i)
        s += fmt::format("{}{}", i ? "," : "", d.d[i]);
    return s + "]";
}

Dims filledDims(int n, int32_t value)
{
    Dims d{};
    d.nbDims = n;
    std::fill_n(d.d, n, value);
    return d;
}

Result<void> checkDims(Dims const& d, int32_t least, std::string const& what)
{
    if (d.nbDims < 0 || d.nbDims > Dims::MAX_DIMS)
        return invalidArgument("{}: nbDims {} must be in 0..{}", what, d.nbDims, int(Dims::MAX_DIMS));
    for (int i = 0; i < d.nbDims; ++i)
        if (d.d[i] < least)
            return invalidArgument("{} {}: entry {} must be at least {}", what, str(d), i, least);
    return {};
}

Result<void> checkWeights(nvinfer1::Weights const& w, std::string const& what)
{
    if (w.count < 0)
        return invalidArgument("{} weights have the negative count {}", what, w.count);
    if (w.count != 0 && !w.values)
        return invalidArgument("{} weights has non-zero count but null values", what);
    if (w.count == 0 && w.values)
        return invalidArgument("{} weights has zero count but non-null values", what);
    int const type = static_cast<int>(w.type);
    if (type < 0 || type > static_cast<int>(nvinfer1::DataType::kINT32))
        return invalidArgument("{} weights have type {}; kFLOAT, kHALF, kINT8 and kINT32 are possible", what, type);
    return {};
}

Result<std::string> checkName(char const* name, std::string const& what)
{
    if (!name)
        return invalidArgument("{}: the name is a null pointer", what);
    size_t const length = strnlen(name, 4096);
    if (length >= 4096)
        return invalidArgument("{}: a name has at most 4096 bytes with its terminator", what);
    return std::string(name, length);
}

// ---- LayerState

LayerState& objectOf(nvinfer1::ILayer& layer)
{
    return dynamic_cast<LayerState&>(layer);
}
LayerState const& objectOf(nvinfer1::ILayer const& layer)
{
    return dynamic_cast<LayerState const&>(layer);
}

DataType TensorObject::typeOf(ir::Value const& v) const
{
    if (!producer || !isFloating(v.type))
        return v.type;
    auto const at = std::ranges::find(producer->outputs, this, [](auto const& t) { return t.get(); });
    auto const declared = producer->declaredOutputType(int(at - producer->outputs.begin()));
    return declared && isFloating(toCore(*declared)) ? toCore(*declared) : v.type;
}

nvinfer1::DataType LayerState::naturalOutputType(int) const
{
    return nvinfer1::DataType::kFLOAT;
}

void LayerState::changed()
{
    network->rollBack(this);
}
Result<void> attachLayer(NetworkObject& network, LayerState& layer, char const* typeName,
                         std::vector<nvinfer1::ITensor*> const& inputs)
{
    layer.id = network.nextLayerId;
    layer.name = fmt::format("(Unnamed Layer* {}) [{}]", layer.id, typeName);
    for (size_t i = 0; i < inputs.size(); ++i) {
        if (!inputs[i])
            return layer.error("input {} is a null pointer", i);
        TensorObject& t = objectOf(*inputs[i]);
        if (t.network != &network)
            return layer.error("input {} ('{}') belongs to another network", i, t.name);
        layer.inputs.push_back(&t);
    }
    for (int i = 0; i < layer.outputCount(); ++i) {
        auto t = std::make_unique<TensorObject>();
        t->network = &network;
        t->producer = &layer;
        t->name = layer.name + "_output" + (i ? fmt::format("_{}", i) : "");
        layer.outputs.push_back(std::move(t));
    }
    layer.outputTypes.resize(layer.outputs.size());
    ++network.nextLayerId;
    return {};
}

// ---- lowering

Result<std::string> NetworkObject::symbolFor(TensorObject const& t, int axis)
{
    auto clean = [](std::string const& s) {
        std::string out;
        for (char c : s)
            out += std::isalnum(static_cast<unsigned char>(c)) || c == '_' ? c : '_';
        // Expressions are made of these names, and their text is limited: long ones keep their beginning and a hash.
        constexpr size_t kMaxNameBytes = 128;
        if (out.size() > kMaxNameBytes)
            out = fmt::format("{}.{}", out.substr(0, kMaxNameBytes), hashText(s));
        return out.empty() || std::isdigit(static_cast<unsigned char>(out[0])) ? "_" + out : out;
    };
    auto it = t.dimensionNames.find(axis);
    if (it != t.dimensionNames.end() && !it->second.empty()) {
        // Equal names are one symbol; names that only look equal after cleaning are told apart by their hash.
        std::string const c = clean(it->second);
        return c == it->second ? c : fmt::format("{}.{}", c, hashText(it->second) % 100000);
    }
    std::string base = fmt::format("{}.{}", clean(t.name), axis);
    while (graph_.symbols.contains(base))
        base += "_";
    return base;
}

Result<void> NetworkObject::lowerInputs(bool hasCalibrator, std::set<TensorObject const*> const& readByRun)
{
    if (inputsLowered_)
        return {};
    graph_ = ir::Graph();
    graph_.name = name.empty() ? "network" : name;
    std::map<std::string, int32_t> known; // sizes of names that are static in some input
    for (auto const& t : inputs)
        for (auto const& [axis, dimensionName] : t->dimensionNames)
            if (axis < t->dims.nbDims && t->dims.d[axis] >= 0)
                known.emplace(dimensionName, t->dims.d[axis]);
    for (auto const& t : inputs) {
        ir::Shape shape;
        if (implicitBatch) {
            graph_.symbols[kBatch] = ir::Symbol{ir::Range{0, INT32_MAX}, false};
            shape.push_back(t->broadcastAcrossBatch ? ir::Dim(1) : ir::Dim::symbol(kBatch));
        }
        for (int i = 0; i < t->dims.nbDims; ++i) {
            if (t->dims.d[i] >= 0) {
                shape.emplace_back(t->dims.d[i]);
                continue;
            }
            auto const named = t->dimensionNames.find(i);
            auto const size = named == t->dimensionNames.end() ? known.end() : known.find(named->second);
            if (size != known.end()) {
                shape.emplace_back(size->second);
                continue;
            }
            TW_ASSIGN(std::string const symbol, symbolFor(*t, i));
            graph_.symbols.try_emplace(symbol, ir::Symbol{ir::Range{0, INT32_MAX}, false});
            shape.push_back(ir::Dim::symbol(symbol));
        }
        ir::Value* v = graph_.addInput(t->name, toCore(t->type), shape);
        bool const small =
            v->rank() == 0 || (v->rank() == 1 && shape[0].isConst() && shape[0].value() <= ir::kMaxContent);
        if (!implicitBatch && small && !readByRun.contains(t.get()) &&
            (v->type == DataType::kInt32 || v->type == DataType::kBool)) {
            std::vector<ir::Dim> content;
            int64_t const count = v->rank() == 0 ? 1 : shape[0].value();
            for (int64_t k = 0; k < count; ++k) {
                TW_ASSIGN(std::string const symbol, symbolFor(*t, 1000 + int(k)));
                graph_.symbols[symbol] = ir::Symbol{ir::Range{INT32_MIN, INT32_MAX}, false};
                content.push_back(ir::Dim::symbol(symbol));
            }
            v->content = std::move(content);
        }
        values_[t.get()] = v;
        if (isQuantized(v->type) && (t->rangeMin || t->layerType || hasCalibrator)) {
            TW_ASSIGN(v, inFloats(graph_, *v, *t));
            values_[t.get()] = v;
        }
        if (t->layerType && toCore(*t->layerType) != v->type) {
            TW_ASSIGN(ir::Node * cast,
                      graph_.addNode(ops::identity::def(), ops::identity::Attrs(toCore(*t->layerType)).clone(), {v},
                                     t->name + " [input]"));
            values_[t.get()] = cast->outputs[0];
        }
    }
    inputsLowered_ = true;
    return {};
}

Result<void> NetworkObject::lowerLayer(LayerState& layer)
{
    std::vector<ir::Value*> in;
    for (size_t i = 0; i < layer.inputs.size(); ++i) {
        TensorObject* t = layer.inputs[i];
        in.push_back(t && !layer.isBackEdge(int(i)) ? values_.at(t) : nullptr);
    }
    ir::Graph::Mark const mark = graph_.mark();
    TW_ASSIGN(auto const out, lowerInto(*this, layer, graph_, std::move(in)));
    steps_.push_back(Step{&layer, mark});
    for (size_t i = 0; i < layer.outputs.size(); ++i)
        values_[layer.outputs[i].get()] = out[i];
    return {};
}

// A layer without outputs, an assertion, is looked for among the steps.
bool NetworkObject::isLowered(LayerState const& layer) const
{
    if (!layer.outputs.empty())
        return values_.contains(layer.outputs[0].get());
    return std::ranges::any_of(steps_, [&](Step const& s) { return s.layer == &layer; });
}

Result<void> NetworkObject::lowerWithInputs(LayerState& last)
{
    TW_TRY(lowerInputs());
    // Depth first without recursion: networks may be thousands of layers deep.
    std::vector<LayerState*> stack{&last};
    std::set<LayerState*> open;
    while (!stack.empty()) {
        LayerState* layer = stack.back();
        if (isLowered(*layer)) {
            stack.pop_back();
            continue;
        }
        LayerState* missing = nullptr;
        for (size_t i = 0; i < layer->inputs.size() && !missing; ++i) {
            TensorObject* in = layer->inputs[i];
            if (in && !layer->isBackEdge(int(i)) && !values_.contains(in))
                missing = in->producer;
        }
        if (TensorObject* count = control_flow::alsoNeeds(*layer); count && !missing && !values_.contains(count))
            missing = count->producer;
        if (missing) {
            if (!open.insert(layer).second && open.contains(missing) && layer == missing)
                return layer->error("the layer depends on itself: the network has a cycle");
            if (open.contains(missing))
                return missing->error("the layer depends on its own output: the network has a cycle");
            stack.push_back(missing);
            continue;
        }
        TW_TRY(lowerLayer(*layer));
        stack.pop_back();
    }
    return {};
}

Result<ir::Value*> NetworkObject::lowered(TensorObject& t)
{
    TW_TRY(lowerInputs());
    if (auto it = values_.find(&t); it != values_.end())
        return it->second;
    TW_TRY(lowerWithInputs(*t.producer));
    return values_.at(&t);
}

void NetworkObject::rollBack(LayerState* layer)
{
    if (!layer) {
        steps_.clear();
        values_.clear();
        inputsLowered_ = false;
        return;
    }
    auto it = std::ranges::find_if(steps_, [&](Step const& s) { return s.layer == layer; });
    if (it == steps_.end())
        return;
    graph_.rollBack(it->mark);
    for (auto s = it; s != steps_.end(); ++s)
        for (auto const& out : s->layer->outputs)
            values_.erase(out.get());
    steps_.erase(it, steps_.end());
}

std::string NetworkObject::weightsNameOf(nvinfer1::Weights const& w) const
{
    for (auto const& [known, weightsName] : weightsNames)
        if (known.values == w.values && known.count == w.count && known.type == w.type)
            return weightsName;
    return {};
}

// Equal names are equal sizes.
Result<void> NetworkObject::checkDimensionNames() const
{
    std::map<std::string, std::pair<int32_t, TensorObject const*>> sizes;
    for (auto const& t : inputs)
        for (auto const& [axis, dimensionName] : t->dimensionNames) {
            int32_t const size = axis < t->dims.nbDims ? t->dims.d[axis] : -1;
            auto const [known, isNew] = sizes.try_emplace(dimensionName, size, t.get());
            if (isNew || size < 0 || known->second.first == size)
                continue;
            if (known->second.first >= 0)
                return invalidArgument("dimension '{}' is {} in network input '{}' and {} in '{}'; equal names "
                                       "(ITensor::setDimensionName) mean equal sizes",
                                       dimensionName, size, t->name, known->second.first, known->second.second->name);
            known->second = {size, t.get()};
        }
    return {};
}

// Makes the graph with regions anew where the flat one was, in which layers of loops and conditionals stand among the
// others.
Result<void> NetworkObject::nest(InputNames const& given, bool hasCalibrator)
{
    auto order = mapped<LayerState*>(steps_, [&](Step const& s) { return s.layer; });
    TW_ASSIGN(auto const nesting, control_flow::findNesting(*this, order));
    auto const readByRun = countsReadByRun(given);
    rollBack(nullptr);
    TW_TRY(lowerInputs(hasCalibrator, readByRun));
    auto done = control_flow::emit(*this, nesting, graph_, values_);
    if (!done.ok())
        rollBack(nullptr);
    return done;
}

std::vector<TensorObject*> NetworkObject::allOutputs() const
{
    std::vector<TensorObject*> all = outputs;
    for (TensorObject* t : shapeOutputs)
        if (!t->isOutput)
            all.push_back(t);
    return all;
}

Result<void> NetworkObject::addOutput(TensorObject& t)
{
    ir::Value* v = values_.at(&t);
    if (implicitBatch && v->rank() > 0 && v->shape[0].is(1)) { // outputs have the batch like any other
        TW_ASSIGN(v, overBatch(graph_, v, t.name, t.producer ? t.producer->name : t.name));
    }
    DataType const want = t.typeIsSet ? toCore(t.type) : t.typeOf(*v);
    if (isQuantized(want) && isFloating(v->type))
        TW_SET(v, inIntegers(graph_, *v, t));
    bool const taken = v->isConstant() || !v->producer || graph_.isOutput(v);
    if (taken || want != v->type) {
        auto copy = std::make_unique<ops::identity::Attrs>(want);
        auto made = graph_.addNode(ops::identity::def(), std::move(copy), {v}, t.name + " [output]");
        if (!made.ok())
            return std::move(made).error().in("network output '" + t.name + "'");
        v = (*made)->outputs[0];
    }
    graph_.outputs.push_back(v);
    return {};
}

namespace {

Error twoOfAName(TensorObject const& t)
{
    return invalidArgument(t.isInput ? "network input '" + t.name + "' cannot be an output; an identity layer's can"
                                     : "two network inputs or outputs are named '" + t.name + "'");
}

} // namespace

Result<std::unique_ptr<ir::Graph>> NetworkObject::toGraph(InputNames const& given, bool hasCalibrator)
{
    TW_TRY(checkDimensionNames());
    std::vector<TensorObject*> const marked = allOutputs();
    if (marked.empty())
        return invalidState("the network has no output: mark one with INetworkDefinition::markOutput()");
    rollBack(nullptr); // tensor names may have changed since
    ranges.clear();
    openScales.clear();
    openScalesOfPlugins.clear();
    TW_TRY(lowerInputs(hasCalibrator));
    for (auto const& l : layers)
        TW_TRY(lowerWithInputs(*l));
    std::set<std::string> names;
    for (auto const& t : inputs)
        if (!names.insert(t->name).second)
            return invalidArgument("two network inputs are named '{}'; inputs and outputs need different names",
                                   t->name);
    bool const isFlat = constructs.empty();
    if (!isFlat)
        TW_TRY(nest(given, hasCalibrator));
    ir::Graph::Mark const mark = graph_.mark();
    graph_.outputs.clear();
    Result<void> status;
    for (TensorObject* t : marked)
        if (status.ok())
            status = names.insert(t->name).second ? addOutput(*t) : twoOfAName(*t);
    std::unique_ptr<ir::Graph> copy;
    if (status.ok()) {
        // Names go on values last: several tensors may share a value.
        nameValues(values_);
        for (size_t i = 0; i < marked.size(); ++i)
            graph_.outputs[i]->name = marked[i]->name;
        addRanges(values_, ranges);
        copy = graph_.clone();
        for (ir::Value* v : copy->outputs)
            v->host = std::ranges::any_of(shapeOutputs, [&](TensorObject const* t) { return t->name == v->name; });
        auto const needed = ir::shapeValues(*copy);
        for (ir::Value* v : copy->inputs)
            v->host = needed.contains(v) || isScalarOfFill(*copy, v);
    }
    graph_.outputs.clear();
    if (isFlat)
        graph_.rollBack(mark);
    else
        rollBack(nullptr);
    TW_TRY(std::move(status));
    TW_TRY(ir::forgetContentsOfData(*copy));
    return copy;
}

} // namespace tw::api
