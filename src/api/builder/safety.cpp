// SPDX-License-Identifier: Apache-2.0
// EngineCapability::kSAFETY and BuilderFlag::kSAFETY_SCOPE: what such a network may hold, as far as that is published, and the
// counts of values that are no numbers. Nothing of it is certified.
#include "base/safety.h"

#include <algorithm>
#include <limits>

#include "api/builder/parts.h"
#include "ops/concatenation/op.h"
#include "ops/convolution/op.h"
#include "ops/elementwise/op.h"
#include "ops/identity/op.h"
#include "ops/plugin/op.h"
#include "ops/reduce/op.h"
#include "ops/shuffle/op.h"
#include "ops/unary/op.h"

namespace tw::api {

namespace {

using nvinfer1::BuilderFlag;
using nvinfer1::LayerType;

constexpr int64_t kMostBatch = 16, kMostChannels = 4096, kMostPixels = 4096;
constexpr int64_t kMostElements = std::numeric_limits<int32_t>::max();

// Layers that compute nothing: FP32 values may pass.
bool isMovement(LayerType type)
{
    switch (type) {
    case LayerType::kCONSTANT:
    case LayerType::kSHUFFLE:
    case LayerType::kCONCATENATION:
    case LayerType::kSLICE:
    case LayerType::kIDENTITY:
    case LayerType::kGATHER:
    case LayerType::kPADDING:
    case LayerType::kQUANTIZE:
    case LayerType::kDEQUANTIZE:
    case LayerType::kSELECT:
    case LayerType::kSHAPE:
        return true;
    default:
        return false;
    }
}

class Findings
{
public:
    Findings(NetworkObject& network, ir::Graph const& graph, BuilderConfigObject const& config)
        : network_(network), graph_(graph), config_(config)
    {}

    std::vector<std::string> all()
    {
        ofNetwork();
        for (auto const& layer : network_.layers)
            ofLayer(*layer);
        return std::move(found_);
    }

private:
    void add(std::string text) { found_.push_back(std::move(text)); }
    void add(LayerState const& layer, std::string const& text)
    {
        add(fmt::format("layer '{}' ({}) is not supported in safety restricted mode: {}", layer.name, layer.typeName,
                        text));
    }

    void ofNetwork()
    {
        if (network_.implicitBatch)
            add("the network has an implicit batch dimension, and safety restricted mode takes explicit batches alone: "
                "create it with NetworkDefinitionCreationFlag::kEXPLICIT_BATCH");
        for (auto const& t : network_.inputs)
            ofIo(*t, "input");
        for (TensorObject const* t : network_.allOutputs())
            ofIo(*t, "output");
        bool const isSafety = config_.engineCapability == nvinfer1::EngineCapability::kSAFETY;
        if (isSafety && config_.has(BuilderFlag::kREFIT))
            add("BuilderFlag::kREFIT: safety engines cannot be refitted; clear it");
        if (isSafety && config_.profiles.size() > 1)
            add(fmt::format(
                "{} optimization profiles: the shapes of safety engines are those of the network; add one at most",
                config_.profiles.size()));
    }

    void ofIo(TensorObject const& t, char const* what)
    {
        ir::Value const* const v = valueOf(t);
        if (!v)
            return;
        if (!(safety::kTypes >> int(v->type) & 1))
            add(fmt::format("network {} '{}' is {}: inputs and outputs in safety restricted mode are kFLOAT, kHALF or "
                            "kINT8",
                            what, t.name, nameOf(v->type)));
        if (!(t.formats & safety::kFormats))
            add(fmt::format("network {} '{}' is allowed none of the formats of safety restricted mode: kLINEAR, kCHW2, "
                            "kHWC8, kCHW4, kCHW16, kCHW32",
                            what, t.name));
        if (std::string const why = sizeTrouble(*v); !why.empty())
            add(fmt::format("network {} '{}': {}", what, t.name, why));
    }

    // The value of a tensor in the graph, which has lost those of layers that nobody reads.
    ir::Value const* valueOf(TensorObject const& t)
    {
        for (auto const* list : {&graph_.inputs, &graph_.outputs})
            for (ir::Value const* v : *list)
                if (v->name == t.name)
                    return v;
        auto const v = network_.lowered(const_cast<TensorObject&>(t));
        return v.ok() ? *v : nullptr;
    }

    static std::string sizeTrouble(ir::Value const& v)
    {
        if (!isStatic(v.shape))
            return fmt::format("shape {} is dynamic; give all dimensions", str(v.shape));
        Extents const e = ir::extentsOf(v.shape);
        if (e.volume() > kMostElements)
            return fmt::format("shape {} has {} elements, more than {}", str(v.shape), e.volume(), kMostElements);
        if (e.rank != 4)
            return {};
        char const* const names[] = {"batch", "channels", "height", "width"};
        int64_t const most[] = {kMostBatch, kMostChannels, kMostPixels, kMostPixels};
        for (int i = 0; i < 4; ++i)
            if (e[i] > most[i])
                return fmt::format("{} of {} in shape {}, at most {}", names[i], e[i], str(v.shape), most[i]);
        return {};
    }

    void ofLayer(LayerState& layer)
    {
        if (layer.construct) {
            add(layer, fmt::format("it is a part of {}; loops and conditionals have no place in a static network",
                                   layer.construct->describe()));
            return;
        }
        if (layer.type == LayerType::kNON_ZERO) {
            add(layer, "the size of its output depends on data");
            return;
        }
        for (auto const& t : layer.outputs) {
            ir::Value const* const v = valueOf(*t);
            if (std::string const why = v ? sizeTrouble(*v) : std::string(); !why.empty()) {
                add(layer, fmt::format("output '{}': {}", t->name, why));
                return;
            }
        }
        ofPlugin(layer);
        if (isFloatAlone(layer) && !isMovement(layer.type) && computesFloats(layer))
            ofFloat(layer);
    }

    void ofPlugin(LayerState const& layer)
    {
        if (layer.pluginName())
            return; // of the standard ones, which are layers here
        for (auto const& n : graph_.nodes)
            if (n->op == &ops::plugin::def() && !n->layers.empty() && n->layers[0] == layer.name &&
                n->attrsAs<ops::plugin::Attrs>().interface != ops::plugin::Interface::kIOExt)
                add(layer, "its plugin must be an IPluginV2IOExt");
    }

    // Whether the builder may compute it in FP32 alone.
    bool isFloatAlone(LayerState const& layer) const
    {
        if (layer.precision &&
            (config_.has(BuilderFlag::kOBEY_PRECISION_CONSTRAINTS) || config_.has(BuilderFlag::kSTRICT_TYPES)))
            return *layer.precision == nvinfer1::DataType::kFLOAT;
        return !config_.has(BuilderFlag::kFP16) && !config_.has(BuilderFlag::kINT8);
    }

    bool computesFloats(LayerState const& layer)
    {
        for (auto const& t : layer.outputs)
            if (ir::Value const* const v = valueOf(*t); v && isFullFloat(v->type))
                return true;
        return false;
    }

    void ofFloat(LayerState const& layer)
    {
        constexpr char const* kCure = "allow FP16 or INT8 (BuilderFlag::kFP16, kINT8)";
        if (layer.type != LayerType::kCONVOLUTION) {
            add(layer, fmt::format("it would compute in FP32; {}", kCure));
            return;
        }
        for (auto const& n : graph_.nodes) {
            if (n->op != &ops::convolution::def() || n->layers.empty() || n->layers[0] != layer.name)
                continue;
            auto const& a = n->attrsAs<ops::convolution::Attrs>();
            auto all = [](std::vector<int64_t> const& list, int64_t x) {
                return std::ranges::all_of(list, [&](int64_t v) { return v == x; });
            };
            bool isPoint = a.groups == 1 && all(a.strides, 1) && all(a.dilations, 1) && all(a.prePadding, 0) &&
                           all(a.postPadding, 0);
            ir::Shape const& w = n->inputs[1]->shape;
            for (size_t i = 2; i < w.size(); ++i)
                isPoint = isPoint && w[i].is(1);
            if (!isPoint)
                add(layer,
                    fmt::format(
                        "a convolution in FP32 has kernel 1x1, padding 0, stride 1, dilation 1 and one group; {}",
                        kCure));
        }
    }

    NetworkObject& network_;
    ir::Graph const& graph_;
    BuilderConfigObject const& config_;
    std::vector<std::string> found_;
};

// Adds nodes that count the values of network outputs that are no numbers.
class ErrorCounts
{
public:
    explicit ErrorCounts(ir::Graph& graph) : graph_(graph) {}

    Result<void> add()
    {
        ir::Value* const before = graph_.addInput(safety::kErrorsBefore, DataType::kInt32, {ir::Dim(2)});
        ir::Value* total = before;
        std::vector<ir::Value*> const outputs = graph_.outputs;
        for (ir::Value* const v : outputs) {
            if (v->host || !isFloating(v->type))
                continue;
            of_ = v->name;
            TW_ASSIGN(ir::Value * equal, compare(v, v));
            TW_ASSIGN(ir::Value * nan,
                      node(ops::unary::def(), ops::unary::Attrs(ops::unary::Operation::kNot), {equal}));
            TW_ASSIGN(ir::Value * magnitude,
                      node(ops::unary::def(), ops::unary::Attrs(ops::unary::Operation::kAbs), {v}));
            TW_ASSIGN(ir::Value * infinite, compare(magnitude, infinity(*v)));
            TW_ASSIGN(ir::Value * nans, count(nan));
            TW_ASSIGN(ir::Value * infs, count(infinite));
            TW_ASSIGN(ir::Value * both, node(ops::concatenation::def(), ops::concatenation::Attrs(0), {nans, infs}));
            TW_SET(total, node(ops::elementwise::def(), ops::elementwise::Attrs(ops::elementwise::Operation::kSum),
                               {total, both}));
        }
        if (total == before) // no output is a float
            TW_SET(total, node(ops::identity::def(), ops::identity::Attrs(DataType::kInt32), {before}));
        total->name = safety::kErrorsAfter;
        graph_.outputs.push_back(total);
        return {};
    }

private:
    template <class A>
    Result<ir::Value*> node(ir::OpDef const& op, A attrs, std::vector<ir::Value*> inputs)
    {
        TW_ASSIGN(ir::Node * n, graph_.addNode(op, std::make_unique<A>(std::move(attrs)), std::move(inputs),
                                               fmt::format("errors of {} [{}]", of_, op.name)));
        n->layers = {fmt::format("errors of {}", of_)};
        return n->outputs[0];
    }
    Result<ir::Value*> compare(ir::Value* a, ir::Value* b)
    {
        return node(ops::elementwise::def(), ops::elementwise::Attrs(ops::elementwise::Operation::kEqual), {a, b});
    }
    ir::Value* infinity(ir::Value const& like)
    {
        Extents ones;
        for (int i = 0; i < like.rank(); ++i)
            ones.push(1);
        float const value = std::numeric_limits<float>::infinity();
        Tensor t(like.type, ones);
        copyElements(TensorRef{DataType::kFloat, ones, const_cast<float*>(&value)}, t.ref());
        return graph_.addConstant("infinity", like.type, ones, t.data());
    }
    // Of booleans, as [1].
    Result<ir::Value*> count(ir::Value* flags)
    {
        TW_ASSIGN(ir::Value * sum, node(ops::identity::def(), ops::identity::Attrs(DataType::kInt32), {flags}));
        if (flags->rank() > 0) {
            ops::reduce::Attrs all;
            all.axes = (int64_t(1) << flags->rank()) - 1;
            TW_SET(sum, node(ops::reduce::def(), all, {sum}));
        }
        ops::shuffle::Attrs flat;
        flat.hasReshape = true;
        flat.reshape = {1};
        return node(ops::shuffle::def(), flat, {sum});
    }

    ir::Graph& graph_;
    std::string of_;
};

} // namespace

Result<void> checkSafety(NetworkObject& network, ir::Graph const& graph, BuilderConfigObject const& config,
                         Reporter& log)
{
    bool const isSafety = config.engineCapability == nvinfer1::EngineCapability::kSAFETY;
    if (!isSafety && !config.has(BuilderFlag::kSAFETY_SCOPE))
        return {};
    log.warning("safety restricted mode: the limits that are published are checked; neither this library nor the "
                "engine is certified for "
                "any use");
    std::vector<std::string> const found = Findings(network, graph, config).all();
    for (std::string const& line : found)
        log.error(unsupported("{}", line));
    if (!found.empty())
        return unsupported("the network is outside of safety restricted mode in {} {}, listed above", found.size(),
                           found.size() == 1 ? "place" : "places");
    return {};
}

Result<void> countErrors(ir::Graph& graph)
{
    return ErrorCounts(graph).add();
}

} // namespace tw::api
