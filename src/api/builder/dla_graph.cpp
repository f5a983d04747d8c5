// SPDX-License-Identifier: Apache-2.0
// What a DLA's part of a network is in the graph that the present device computes.
#include <algorithm>

#include "api/builder/dla.h"
#include "dla/sparsity.h"
#include "ops/padding/op.h"
#include "ops/shuffle/op.h"
#include "ops/slice/op.h"
#include "tactic/registry.h"

namespace tw::api {

namespace {

using nvinfer1::BuilderFlag;
using nvinfer1::LayerType;

// Tensors whose ranges a layer on DLA needs equal in INT8.
std::vector<TensorObject const*> alike(LayerState const& l)
{
    switch (l.type) {
    case LayerType::kPOOLING:
        return {l.inputs[0], l.outputs[0].get()};
    case LayerType::kELEMENTWISE:
        return {l.inputs[0], l.inputs[1]};
    case LayerType::kCONCATENATION: {
        std::vector<TensorObject const*> list(l.inputs.begin(), l.inputs.end());
        list.push_back(l.outputs[0].get());
        return list;
    }
    default:
        return {};
    }
}

// Sigmoid, tanh and LRN have no INT8 on DLA: they are promoted.
bool isPromoted(LayerState& l)
{
    if (l.type == LayerType::kLRN)
        return true;
    if (l.type != LayerType::kACTIVATION)
        return false;
    auto const kind = static_cast<nvinfer1::IActivationLayer*>(l.asLayer())->getActivationType();
    return kind == nvinfer1::ActivationType::kSIGMOID || kind == nvinfer1::ActivationType::kTANH;
}

// What a layer on DLA computes in. INT8 takes a range for every tensor that is data.
DataType precisionOf(LayerState& l, dla::Verdict const& verdict, BuilderConfigObject const& c,
                     passes::Ranges const& ranges)
{
    auto hasRange = [&](TensorObject const* t) {
        return !t || t->rangeMin || ranges.contains(t->name) ||
               (t->producer && t->producer->type == LayerType::kCONSTANT);
    };
    bool isInt8 = verdict.mayInt8 && !isPromoted(l);
    for (TensorObject const* t : l.inputs)
        isInt8 = isInt8 && hasRange(t);
    for (auto const& t : l.outputs)
        isInt8 = isInt8 && hasRange(t.get());
    return isInt8 ? DataType::kInt8 : c.has(BuilderFlag::kFP16) ? DataType::kHalf : DataType::kFloat;
}

} // namespace

std::vector<std::string> sparsityLines(DlaPlacement const& placement, std::vector<std::string> const& sparse,
                                       std::map<std::string, dla::Layout> const& layouts, passes::Ranges const& ranges,
                                       BuilderConfigObject const& c)
{
    std::vector<std::string> lines;
    for (DlaLoadable const& loadable : placement.loadables)
        for (LayerState const* l : loadable.layers) {
            if (l->type != LayerType::kCONVOLUTION || !contains(sparse, l->name))
                continue;
            auto& layer = const_cast<LayerState&>(*l);
            auto const& convolution = static_cast<nvinfer1::IConvolutionLayer const&>(*layer.asLayer());
            nvinfer1::Dims const x = l->inputs[0]->getDimensions();
            auto const layout = layouts.find(l->inputs[0]->name);
            dla::SparseConvolution s;
            s.isInt8 = isQuantized(precisionOf(layer, placement.verdicts.at(l), c, ranges));
            s.readsImage = layout != layouts.end() && layout->second == dla::Layout::kHwc4;
            s.channels = x.d[x.nbDims - 3];
            s.maps = convolution.getNbOutputMaps();
            s.weights = convolution.getKernelWeights().count;
            std::string const why = dla::whyDense(placement.model, s);
            lines.push_back(fmt::format("(Sparsity) DLA layer '{}' {} ({})", l->name,
                                        why.empty() ? "is computed as a sparse one" : "stays dense: " + why,
                                        dla::kNotTheDevice));
        }
    return lines;
}

void unifyRanges(DlaPlacement const& placement, passes::Ranges& ranges)
{
    std::vector<std::vector<TensorObject const*>> groups;
    for (auto const& [layer, verdict] : placement.verdicts)
        if (verdict.mayInt8)
            groups.push_back(alike(*layer));
    // A range that a client set stands; calibration's follow it, or the largest of them. Ranges only grow, so it ends.
    for (bool again = true; again;) {
        again = false;
        for (auto const& group : groups) {
            double largest = 0;
            for (TensorObject const* t : group)
                if (auto const it = ranges.find(t->name); it != ranges.end())
                    largest = std::max(largest, it->second);
            for (TensorObject const* t : group)
                if (auto const it = ranges.find(t->name); it != ranges.end() && !t->rangeMin && it->second < largest) {
                    it->second = largest;
                    again = true;
                }
        }
    }
}

void markDla(ir::Graph& g, NetworkObject const& n, BuilderConfigObject const& c, DlaPlacement const& placement,
             passes::Ranges const& ranges)
{
    std::map<std::string, DataType> precisions; // of layers on DLA
    for (auto const& [layer, verdict] : placement.verdicts)
        precisions[layer->name] = precisionOf(const_cast<LayerState&>(*layer), verdict, c, ranges);
    for (auto const& l : n.layers) // names need not differ
        if (!placement.has(l.get()))
            precisions.erase(l->name);
    bool const isHeard = constraintsOf(c) != passes::PrecisionConstraints::kIgnore;
    for (auto const& node : g.nodes) {
        auto const at = node->layers.empty() ? precisions.end() : precisions.find(node->layers[0]);
        bool const isOnDla = at != precisions.end();
        node->device.byUser = true; // nothing of both becomes one
        node->device.value = isOnDla ? ir::DevicePlace{ir::DeviceKind::kDla, placement.core} : ir::DevicePlace();
        if (!isHeard) {
            node->precision.byUser = false;
            for (auto& type : node->outputTypes)
                type.byUser = false;
        }
        if (isOnDla)
            node->precision = {at->second, true};
    }
    // What INT8 layers give to others than INT8 layers of DLA is clipped and rounded as integers are.
    auto isInt8 = [](ir::Node const& node) {
        return node.device.value.kind == ir::DeviceKind::kDla && isQuantized(node.precision.value);
    };
    std::set<ir::Value const*> leaving(g.outputs.begin(), g.outputs.end());
    for (auto const& node : g.nodes)
        if (!isInt8(*node))
            leaving.insert(node->inputs.begin(), node->inputs.end());
    for (auto const& node : g.nodes) {
        if (!isInt8(*node) || node->outputs.size() != 1 || !leaving.contains(node->outputs[0]))
            continue;
        node->outputTypes.resize(1);
        if (!node->outputTypes[0].byUser)
            node->outputTypes[0] = {DataType::kInt8, true};
    }
}

namespace {

template <class A>
Result<ir::Value*> addOp(ir::Graph& g, ir::OpDef const& op, A attrs, ir::Value* x, std::string const& name,
                         int position, int32_t core)
{
    TW_ASSIGN(ir::Node * node, g.addNode(op, std::make_unique<A>(std::move(attrs)), {x}, name, {}, position));
    node->device = {{ir::DeviceKind::kDla, core}, true};
    return node->outputs[0];
}

// The tensor that lies in `memory`.
Result<ir::Value*> takeOut(ir::Graph& g, ir::Value* memory, dla::Layout layout, Extents const& dims,
                           std::string const& name, int32_t core)
{
    int const rank = dims.rank;
    bool const isImage = layout == dla::Layout::kHwc4;
    ops::slice::Attrs slice;
    slice.start.assign(size_t(rank), 0);
    slice.stride.assign(size_t(rank), 1);
    slice.size.assign(dims.begin(), dims.end());
    if (isImage)
        std::rotate(slice.size.end() - 3, slice.size.end() - 2, slice.size.end()); // h, w, c
    TW_ASSIGN(ir::Value * x,
              addOp(g, ops::slice::def(), std::move(slice), memory, "Input " + name + " from DLA format", 0, core));
    if (!isImage)
        return x;
    ops::shuffle::Attrs turn;
    for (int i = 0; i < rank; ++i)
        turn.firstTranspose.push_back(i);
    std::rotate(turn.firstTranspose.end() - 3, turn.firstTranspose.end() - 1, turn.firstTranspose.end()); // c, h, w
    return addOp(g, ops::shuffle::def(), std::move(turn), x, "Input " + name + " to planes", 1, core);
}

} // namespace

Result<void> applyLayouts(plan::Contents& contents, std::map<std::string, dla::Layout> const& layouts,
                          passes::Ranges& ranges)
{
    if (layouts.empty())
        return {};
    ir::Graph& g = *contents.graph;
    // Profiles give every input one shape: DLA's limits are that.
    for (ir::Value* v : g.inputs) {
        auto const it = contents.profiles[0].inputs.find(v->name);
        for (int d = 0; it != contents.profiles[0].inputs.end() && it->second.hasShape && d < v->rank(); ++d)
            if (it->second.min[d] == it->second.max[d])
                v->shape[size_t(d)] = it->second.opt[d];
    }
    TW_TRY(g.inferAll());
    for (plan::IoTensor& io : contents.io) {
        auto const at = layouts.find(io.name);
        if (at == layouts.end())
            continue;
        auto& list = io.isInput ? g.inputs : g.outputs;
        auto const place = std::ranges::find_if(list, [&](ir::Value const* v) { return v->name == io.name; });
        ir::Value* const v = *place;
        Extents dims, memory;
        if (isStatic(v->shape)) {
            dims = ir::extentsOf(v->shape);
            memory = dla::memoryDims(at->second, contents.dlaModel, v->type, dims);
        }
        if (memory.rank == 0)
            return unsupported("network {} '{}' ({}{}) cannot be in the DLA format that it was allowed",
                               io.isInput ? "input" : "output", io.name, nameOf(v->type), str(v->shape));
        io.dlaLayout = at->second;
        io.dlaDims = dims;
        std::string const inner = io.name + " [in the network]";
        if (auto const range = ranges.find(io.name); range != ranges.end())
            ranges[inner] = range->second;
        if (io.isInput) {
            ir::Value* const bytes = g.newValue(io.name, v->type, ir::shapeOf(memory));
            *place = bytes;
            TW_ASSIGN(ir::Value * x, takeOut(g, bytes, at->second, dims, io.name, contents.dlaCore));
            g.replaceAllUses(v, x);
            x->name = inner;
            for (plan::Profile& p : contents.profiles)
                p.inputs.erase(io.name);
        } else {
            ops::padding::Attrs pad;
            pad.post = {0, memory[memory.rank - 1] - dims[dims.rank - 1]};
            TW_ASSIGN(ir::Value * y, addOp(g, ops::padding::def(), std::move(pad), v,
                                           "Output " + io.name + " to DLA format", -1, contents.dlaCore));
            v->name = inner;
            y->name = io.name;
            *place = y;
        }
    }
    g.eraseUnusedValues();
    return g.inferAll();
}

} // namespace tw::api
