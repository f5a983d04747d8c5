// SPDX-License-Identifier: Apache-2.0
// The network under construction. Layers keep what the user set; dimensions and types are answered by lowering layers
// to an ir::Graph on demand, in dependency order. A change to a layer takes the graph back to the point before it was
// lowered, so that a network built front to back is lowered once.
//
// How a layer's folder uses this (src/ops/<name>/api.cpp):
//   struct ConvolutionLayer final : LayerObject<nvinfer1::IConvolutionLayer>
//   { ...fields...; Result<void> lower(LowerContext&) override; };
//   TW_OBJECT(nvinfer1::IConvolutionLayer, ConvolutionLayer)
//   IConvolutionLayer's methods:           TW_PROPERTY, a line each (api/network/setter.h); else change(objectOf(*this), ..)
//   INetworkDefinition::addConvolutionNd:  return addLayer<ConvolutionLayer>(*this, {&input},
//                                              [&](ConvolutionLayer& l) { ... return Result<void>(); });
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "NvInfer.h"
#include "api/property.h"
#include "ir/graph.h"
#include "ir/op_def.h"
#include "tactic/registry.h"

namespace tw::api {

struct NetworkObject;
struct LayerState;
using InputNames = std::set<std::string, std::less<>>;

// ---- conversions between public and internal types

// Whether nvinfer1::DataType has the number. (Types of our own would follow these, and no client may name them.)
constexpr bool isPublished(int type)
{
    return type >= int(nvinfer1::DataType::kFLOAT) && type <= int(nvinfer1::DataType::kUINT8);
}
inline DataType toCore(nvinfer1::DataType t)
{
    return static_cast<DataType>(t);
}
inline nvinfer1::DataType toPublic(DataType t)
{
    return static_cast<nvinfer1::DataType>(t);
}
nvinfer1::Dims toPublic(ir::Shape const& s, int skipFront = 0); // -1 for an expression
nvinfer1::Dims toPublic(Extents const& e, int skipFront = 0);
std::vector<int64_t> toVector(nvinfer1::Dims const& d); // d.d[0 .. nbDims)
std::string str(nvinfer1::Dims const& d);               // "[1,3,-1]"
// Dims of n equal entries.
nvinfer1::Dims filledDims(int n, int32_t value);
// Where a getter has none to tell: nbDims = -1.
inline nvinfer1::Dims noDims()
{
    nvinfer1::Dims d{};
    d.nbDims = -1;
    return d;
}
// For getters of 2-D windows; 0 x 0 of other dimensions.
inline nvinfer1::DimsHW toHW(nvinfer1::Dims const& d)
{
    return d.nbDims == 2 ? nvinfer1::DimsHW(d.d[0], d.d[1]) : nvinfer1::DimsHW();
}
// Whether nbDims is in [0, MAX_DIMS] and every entry at least `least`; the error names `what`.
Result<void> checkDims(nvinfer1::Dims const& d, int32_t least, std::string const& what);
// Whether values and count agree (mirror error texts of 8.5) and the type is one that weights may have.
Result<void> checkWeights(nvinfer1::Weights const& w, std::string const& what);
// Copies a name; an error when it is null or longer than 4096 bytes with its terminator.
Result<std::string> checkName(char const* name, std::string const& what);

// ---- tensors

struct TensorObject final : nvinfer1::ITensor
{
    NetworkObject* network = nullptr;
    LayerState* producer = nullptr; // null: network input
    std::string name;
    // Of network inputs (and requested types of outputs):
    nvinfer1::DataType type = nvinfer1::DataType::kFLOAT;
    bool typeIsSet = false;
    nvinfer1::Dims dims{}; // of a network input
    // What layers read where the network input was defined as another floating type than the one set since, or is INT8
    // since; the network converts.
    std::optional<nvinfer1::DataType> layerType;
    std::map<int, std::string> dimensionNames;
    bool isInput = false, isOutput = false, isShapeOutput = false;
    bool broadcastAcrossBatch = false;
    nvinfer1::TensorFormats formats = (1u << nvinfer1::EnumMax<nvinfer1::TensorFormat>()) - 1;
    std::optional<float> rangeMin, rangeMax; // dynamic range
    nvinfer1::TensorLocation location = nvinfer1::TensorLocation::kDEVICE;

    // That of a value which the layer has made for it.
    DataType typeOf(ir::Value const& v) const;
};

TW_OBJECT(nvinfer1::ITensor, TensorObject)

// ---- layers

// What a layer sees while it is turned into nodes.
class LowerContext
{
public:
    LowerContext(NetworkObject& network, LayerState& layer, ir::Graph& graph, std::vector<ir::Value*> inputs)
        : network_(network), layer_(layer), graph_(graph), inputs_(std::move(inputs))
    {}
    ir::Graph& graph() { return graph_; }
    int inputCount() const { return int(inputs_.size()); }
    // Null for an optional input that is not set.
    ir::Value* in(int i) const { return i < int(inputs_.size()) ? inputs_[i] : nullptr; }
    bool implicitBatch() const;
    // Public axes count without the batch dimension in implicit batch mode.
    int axisShift() const { return implicitBatch() ? 1 : 0; }

    // Implicit batch: values that are the same for the whole batch (constants, inputs with broadcastAcrossBatch) are
    // repeated over it, if any of the others has it. For layers whose inputs must agree in the batch.
    Result<void> shareBatch(std::vector<ir::Value*>& values);

    // Appends a node named after the layer; `part` tells several nodes of one layer apart ("" for the main one).
    Result<ir::Node*> add(ir::OpDef const& op, std::unique_ptr<ir::AttrsBase> attrs, std::vector<ir::Value*> inputs,
                          std::string const& part = "");
    template <class A>
    Result<ir::Node*> add(ir::OpDef const& op, A attrs, std::vector<ir::Value*> inputs, std::string const& part = "")
    {
        return add(op, std::unique_ptr<ir::AttrsBase>(std::make_unique<A>(std::move(attrs))), std::move(inputs), part);
    }
    // Its first output.
    template <class A>
    Result<ir::Value*> value(ir::OpDef const& op, A attrs, std::vector<ir::Value*> inputs, std::string const& part)
    {
        TW_ASSIGN(ir::Node * node, add(op, std::move(attrs), std::move(inputs), part));
        return node->outputs[0];
    }
    // Appends the node that the layer is: their outputs are the same.
    template <class A>
    Result<void> lowerTo(ir::OpDef const& op, A attrs, std::vector<ir::Value*> inputs)
    {
        TW_ASSIGN(ir::Node * node, add(op, std::move(attrs), std::move(inputs)));
        outputs_ = node->outputs;
        return {};
    }
    // Weights as a constant of the given shape and type (converted between float and half if needed, else not copied).
    // The count must be the volume of `dims`.
    Result<ir::Value*> weights(nvinfer1::Weights const& w, Extents const& dims, DataType type, ir::WeightsRole role);
    // The name that the client gave them; empty: none.
    std::string weightsNameOf(nvinfer1::Weights const& w) const;
    void output(int i, ir::Value* v)
    {
        if (int(outputs_.size()) <= i)
            outputs_.resize(i + 1);
        outputs_[i] = v;
    }
    // "layer 'conv1' (Convolution): <what>"
    Error error(std::string const& what) const;
    template <class... Args>
    Error error(fmt::format_string<Args...> what, Args&&... args) const
    {
        return error(fmt::format(what, std::forward<Args>(args)...));
    }
    std::vector<ir::Value*> const& outputs() const { return outputs_; }

private:
    NetworkObject& network_;
    LayerState& layer_;
    ir::Graph& graph_;
    std::vector<ir::Value*> inputs_;
    std::vector<ir::Value*> outputs_;
};

// A loop or a conditional: what its boundary layers have in common (src/api/control_flow).
struct Construct
{
    NetworkObject* network = nullptr;
    bool isLoop = false;
    int index = 0; // in NetworkObject::constructs
    std::string name;
    std::vector<LayerState*> layers; // boundary layers in the order they were made

    virtual ~Construct() = default;
    std::string describe() const { return (isLoop ? "loop '" : "conditional '") + name + "'"; }
};

// What all layers share. ILayer's methods reach it by a cross cast.
struct LayerState
{
    NetworkObject* network = nullptr;
    Construct* construct = nullptr; // of boundary layers of loops and conditionals
    nvinfer1::LayerType type{};
    char const* typeName = ""; // "Convolution", as in default names
    std::string name;
    int id = 0; // number at creation: default names
    std::vector<TensorObject*> inputs;
    std::vector<std::unique_ptr<TensorObject>> outputs;
    std::optional<nvinfer1::DataType> precision;
    std::vector<std::optional<nvinfer1::DataType>> outputTypes;

    virtual ~LayerState() = default;
    virtual nvinfer1::ILayer* asLayer() = 0;
    virtual Result<void> lower(LowerContext& ctx) = 0;
    virtual int outputCount() const { return 1; }
    // How many inputs setInput may reach; the layers with optional inputs answer more than they were made with.
    virtual int maxInputs() const { return int(inputs.size()); }
    // What setWeights methods and creators were given, empty ones included.
    virtual std::vector<nvinfer1::Weights> heldWeights() const { return {}; }
    // Of a plugin that became ops, its name; else null.
    virtual char const* pluginName() const { return nullptr; }
    // Whether dimensions and types of the layer do not need input `index`: the next value of a recurrence, the only
    // edge that may go back.
    virtual bool isBackEdge(int /*index*/) const { return false; }
    // Called before input `index` is replaced or added; an error refuses it. Setters that an input overrides are
    // cleared here.
    virtual Result<void> onSetInput(int /*index*/, TensorObject& /*tensor*/) { return {}; }
    // Default of getOutputType when nothing was set.
    virtual nvinfer1::DataType naturalOutputType(int /*index*/) const;
    // What an output is told to be, and is as an output of the network, where the graph's value may be of another width:
    // inside the network the builder chooses it.
    virtual std::optional<nvinfer1::DataType> declaredOutputType(int /*index*/) const { return {}; }

    // After every setter: the layer and what depends on it are lowered again when next asked for.
    void changed();
    Error error(std::string const& text) const { return invalidArgument("layer '{}' ({}): {}", name, typeName, text); }
    template <class... Args>
    Error error(fmt::format_string<Args...> text, Args&&... args) const
    {
        return error(fmt::format(text, std::forward<Args>(args)...));
    }
    std::string where(char const* what) const { return "layer '" + name + "': " + what; }
    bool hasInput(size_t i) const { return i < inputs.size() && inputs[i]; }
};

template <class PublicLayer>
struct LayerObject : PublicLayer, LayerState
{
    nvinfer1::ILayer* asLayer() final { return this; }
};

LayerState& objectOf(nvinfer1::ILayer& layer);
LayerState const& objectOf(nvinfer1::ILayer const& layer);

// ---- the network

struct NetworkObject final : nvinfer1::INetworkDefinition
{
    explicit NetworkObject(Reporter const& r) : reporter(r) {}

    mutable Reporter reporter;
    bool implicitBatch = false;
    bool explicitPrecision = false;
    std::string name = "Unnamed Network 0"; // until the client sets one; parsers leave it
    std::vector<std::unique_ptr<Construct>> constructs;
    std::vector<std::unique_ptr<LayerState>> layers;
    std::vector<std::unique_ptr<TensorObject>> inputs;
    std::vector<TensorObject*> outputs;      // marked outputs
    std::vector<TensorObject*> shapeOutputs; // markOutputForShapes
    std::vector<std::pair<nvinfer1::Weights, std::string>> weightsNames;
    int nextLayerId = 0;

    // The value of a tensor, lowering whatever it depends on. Errors are the layer's own.
    Result<ir::Value*> lowered(TensorObject& t);
    // Drops everything lowered at or after `layer`; null: everything (an input changed).
    void rollBack(LayerState* layer);
    // The whole network as a graph of its own for the builder: outputs named and of the types asked for, precision
    // wishes set. Values of tensors are found by name. `given`: inputs whose elements profiles bound. `hasCalibrator`:
    // INT8 network inputs stand for numbers whose scale is found by calibration.
    Result<std::unique_ptr<ir::Graph>> toGraph(InputNames const& given = {}, bool hasCalibrator = false);
    // What is lowered already; null for the rest.
    ir::Value* valueOf(TensorObject const& t) const
    {
        auto const it = values_.find(&t);
        return it == values_.end() ? nullptr : it->second;
    }
    // Tensors that are (transitively) needed as shape tensors.
    bool isShapeTensor(TensorObject const& t);
    // Of toGraph(): what one step of a value's integers is worth, by the dynamic range of its tensor.
    std::map<std::string, double> ranges;
    // INT8 tensors of toGraph() that stand for numbers of a scale to come (settleScales()); 1 until then.
    std::set<std::string> openScales, openScalesOfPlugins;
    Result<void> checkDimensionNames() const;
    std::string weightsNameOf(nvinfer1::Weights const& w) const;
    // Those of markOutput() and of markOutputForShapes(), each once: the engine's outputs, in its order.
    std::vector<TensorObject*> allOutputs() const;

private:
    struct Step
    {
        LayerState* layer;
        ir::Graph::Mark mark;
    };
    // `readByRun`: inputs whose elements shape arithmetic shall not know.
    Result<void> lowerInputs(bool hasCalibrator = false, std::set<TensorObject const*> const& readByRun = {});
    Result<void> lowerLayer(LayerState& layer);
    Result<void> lowerWithInputs(LayerState& layer);
    bool isLowered(LayerState const& layer) const;
    Result<void> nest(InputNames const& given, bool hasCalibrator);
    std::set<ir::Value const*> shapeTensors(InputNames const& given);
    std::set<TensorObject const*> countsReadByRun(InputNames const& given);
    Result<void> addOutput(TensorObject& t);
    Result<std::string> symbolFor(TensorObject const& t, int axis);
    ir::Graph graph_;
    bool inputsLowered_ = false;
    std::vector<Step> steps_;
    std::map<TensorObject const*, ir::Value*> values_;
};

// Turns one layer into nodes of `graph` on these inputs; gives the values of its outputs. On error the graph is as it
// was.
Result<std::vector<ir::Value*>> lowerInto(NetworkObject& network, LayerState& layer, ir::Graph& graph,
                                          std::vector<ir::Value*> inputs);
// A scalar network input that is start or step of a fill: shape tensor and data.
bool isScalarOfFill(ir::Graph const& g, ir::Value const* v);
// Gives values the names of their tensors; several tensors may share one.
void nameValues(std::map<TensorObject const*, ir::Value*> const& values);
// Dynamic ranges of tensors by the names of their values (NetworkObject::ranges).
void addRanges(std::map<TensorObject const*, ir::Value*> const& values, std::map<std::string, double>& ranges);

TW_OBJECT(nvinfer1::INetworkDefinition, NetworkObject)

// Makes a layer, lets `init` set and check its fields, adds it to the network and makes its outputs. Null after an
// error report. An input of another network, or a null one, is an error.
Result<void> attachLayer(NetworkObject& network, LayerState& layer, char const* typeName,
                         std::vector<nvinfer1::ITensor*> const& inputs);

template <class Layer, class Init>
Layer* addLayer(nvinfer1::INetworkDefinition& net, nvinfer1::LayerType type, char const* typeName,
                std::vector<nvinfer1::ITensor*> const& inputs, Init&& init) noexcept
{
    NetworkObject& network = objectOf(net);
    return guarded<Layer*>(network, nullptr, [&](NetworkObject&) -> Result<Layer*> {
        auto layer = std::make_unique<Layer>();
        Layer* raw = layer.get();
        layer->network = &network;
        layer->type = type;
        layer->typeName = typeName;
        TW_TRY(init(*raw));
        TW_TRY(attachLayer(network, *raw, typeName, inputs));
        network.layers.push_back(std::move(layer));
        return raw;
    });
}
template <class Layer>
Layer* addLayer(nvinfer1::INetworkDefinition& net, nvinfer1::LayerType type, char const* typeName,
                std::vector<nvinfer1::ITensor*> const& inputs) noexcept
{
    return addLayer<Layer>(net, type, typeName, inputs, [](Layer&) { return Result<void>(); });
}

// Networks without a dimension for the batch: the graph has one before those that the client sees.

constexpr char const* kBatch = "batch"; // the symbol of the dimension

bool hasBatch(ir::Value const* value);
// v of shape [1, ...] repeated over the batch, by a slice that does not step along it; v itself when no input has a
// batch. `name` is for the nodes, `layer` where they come from.
Result<ir::Value*> overBatch(ir::Graph& graph, ir::Value* v, std::string const& name, std::string const& layer);

} // namespace tw::api
