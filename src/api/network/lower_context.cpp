// SPDX-License-Identifier: Apache-2.0
// What a layer sees while it is turned into nodes.
#include <algorithm>

#include "api/network/network.h"
#include "api/network/ranges.h"

namespace tw::api {

Result<void> LowerContext::shareBatch(std::vector<ir::Value*>& values)
{
    auto batched = [](ir::Value const* v) { return v && hasBatch(v); };
    if (!implicitBatch() || std::ranges::none_of(values, batched))
        return {};
    for (size_t i = 0; i < values.size(); ++i)
        if (values[i] && values[i]->rank() > 0 && values[i]->shape[0].is(1))
            TW_SET(values[i], overBatch(graph_, values[i], fmt::format("{} input {}", layer_.name, i), layer_.name));
    return {};
}

bool LowerContext::implicitBatch() const
{
    return network_.implicitBatch;
}

Error LowerContext::error(std::string const& what) const
{
    return layer_.error(what);
}

Result<ir::Node*> LowerContext::add(ir::OpDef const& op, std::unique_ptr<ir::AttrsBase> attrs,
                                    std::vector<ir::Value*> inputs, std::string const& part)
{
    auto made = graph_.addNode(op, std::move(attrs), std::move(inputs),
                               part.empty() ? layer_.name : layer_.name + " [" + part + "]");
    if (!made.ok())
        return std::move(made).error().in("layer '" + layer_.name + "' (" + layer_.typeName + ")");
    ir::Node* node = *made;
    node->layers = {layer_.name};
    if (layer_.precision)
        node->precision = {toCore(*layer_.precision), true};
    return node;
}

std::string LowerContext::weightsNameOf(nvinfer1::Weights const& w) const
{
    return network_.weightsNameOf(w);
}

Result<ir::Value*> LowerContext::weights(nvinfer1::Weights const& w, Extents const& dims, DataType type,
                                         ir::WeightsRole role)
{
    char const* roleName[] = {"kernel", "bias", "shift", "scale", "constant", "weights"};
    std::string const what = roleName[static_cast<int>(role)];
    int64_t expected = 1;
    for (int64_t d : dims)
        expected = ir::mulSat(expected, d);
    if (w.count != expected)
        return error("{} weights has count {} but {} was expected (shape {})", what, w.count, expected, dims.str());
    auto c = std::make_shared<ir::Constant>();
    c->layer = layer_.name;
    c->role = role;
    c->weightsName = network_.weightsNameOf(w);
    DataType const from = toCore(w.type);
    if (from == type) {
        c->data = std::make_shared<Blob const>(w.values, size_t(w.count * sizeOf(type)));
    } else if (isFloating(from) && isFloating(type)) {
        Extents flat{w.count};
        Tensor converted(type, flat);
        TensorRef const source{from, flat, const_cast<void*>(w.values)};
        copyElements(source, converted.ref());
        c->data = Blob::copy(converted.data(), size_t(w.count * sizeOf(type)));
    } else {
        return error(what + " weights of type " + nameOf(from) + " cannot be used as " + nameOf(type));
    }
    return graph_.addConstant(layer_.name + "." + what, type, dims, std::move(c));
}

Result<std::vector<ir::Value*>> lowerInto(NetworkObject& network, LayerState& layer, ir::Graph& graph,
                                          std::vector<ir::Value*> inputs)
{
    ir::Graph::Mark const mark = graph.mark();
    LowerContext ctx(network, layer, graph, std::move(inputs));
    auto done = layer.lower(ctx);
    if (done.ok() && ctx.outputs().size() != layer.outputs.size())
        done = internalError("layer '{}' was lowered to another number of outputs", layer.name);
    if (!done.ok()) {
        graph.rollBack(mark);
        Error error = std::move(done).error();
        for (TensorObject const* t : layer.inputs)
            if (t && t->isInput && t->type == nvinfer1::DataType::kINT8 && !t->rangeMin)
                error.message += "; ITensor::setDynamicRange() of '" + t->name + "' says what its integers stand for";
        return error;
    }
    for (size_t i = 0; i < layer.outputs.size() && !layer.construct; ++i) {
        ir::Value* v = ctx.outputs()[i];
        if (v->producer && v->producerIndex < int(v->producer->outputTypes.size()) && layer.outputTypes[i])
            v->producer->outputTypes[v->producerIndex] = {toCore(*layer.outputTypes[i]), true};
    }
    return ctx.outputs();
}

void nameValues(std::map<TensorObject const*, ir::Value*> const& values)
{
    for (auto const& [t, v] : values)
        if (t->producer && v->producer)
            v->name = t->name;
}

void addRanges(std::map<TensorObject const*, ir::Value*> const& values, std::map<std::string, double>& ranges)
{
    for (auto const& [t, v] : values)
        if (t->rangeMin && t->rangeMax && isReal(v->type))
            ranges[v->name] = scaleOf(*t);
}

} // namespace tw::api
