// SPDX-License-Identifier: Apache-2.0
#include "dla/limits.h"

#include <algorithm>

#include <fmt/format.h>

#include "dla/check.h"

namespace tw::dla {

using namespace nvinfer1;
using nvinfer1::DataType; // of the two that are in sight here

namespace {

bool isReal(DataType t)
{
    return t == DataType::kFLOAT || t == DataType::kHALF || t == DataType::kINT8;
}

// What clients see, with a 1 in front for an implicit batch.
std::vector<int64_t> dimsOf(ITensor const& t, bool isImplicit)
{
    Dims const d = t.getDimensions();
    std::vector<int64_t> out(isImplicit ? 1 : 0, -1);
    for (int i = 0; i < d.nbDims; ++i)
        out.push_back(d.d[i]);
    return out;
}

// A layer's name is only for readers: what it is called in the API.
constexpr char const* kNames[] = {"Convolution",
                                  "FullyConnected",
                                  "Activation",
                                  "Pooling",
                                  "LRN",
                                  "Scale",
                                  "SoftMax",
                                  "Deconvolution",
                                  "Concatenation",
                                  "ElementWise",
                                  "Plugin",
                                  "Unary",
                                  "Padding",
                                  "Shuffle",
                                  "Reduce",
                                  "TopK",
                                  "Gather",
                                  "MatrixMultiply",
                                  "RaggedSoftMax",
                                  "Constant",
                                  "RNN",
                                  "Identity",
                                  "PluginV2",
                                  "Slice",
                                  "Shape",
                                  "ParametricReLU",
                                  "Resize",
                                  "TripLimit",
                                  "Recurrence",
                                  "Iterator",
                                  "LoopOutput",
                                  "Select",
                                  "Fill",
                                  "Quantize",
                                  "Dequantize",
                                  "Condition",
                                  "ConditionalInput",
                                  "ConditionalOutput",
                                  "Scatter",
                                  "Einsum",
                                  "Assertion",
                                  "OneHot",
                                  "NonZero",
                                  "GridSample",
                                  "NMS"};
static_assert(std::size(kNames) == size_t(EnumMax<LayerType>()));

} // namespace

void Check::checkTensors()
{
    bool const isImplicit = limits_.network().hasImplicitBatchDimension();
    auto check = [&](ITensor const* t, bool isInput) {
        if (!t || (isInput && limits_.isConstant(*t)))
            return;
        bool const isEqual = layer_.getType() == LayerType::kELEMENTWISE || layer_.getType() == LayerType::kIDENTITY;
        if (!isReal(t->getType()) && !(isEqual && t->getType() == DataType::kBOOL))
            unsupported(fmt::format("{} is of a type that is neither FP32, FP16 nor INT8", name(*t)));
        auto const dims = dimsOf(*t, isImplicit);
        if (dims.size() < 3 || t->getDimensions().nbDims < 0)
            return parameter(fmt::format("{} has {} dimensions, at least 3 are needed (channels, height, width)",
                                         name(*t), t->getDimensions().nbDims));
        for (size_t i = 1; i < dims.size(); ++i)
            if (dims[i] < 0)
                return parameter(fmt::format("{}: dimension {} is a wildcard, allowed is one in front alone", name(*t),
                                             i - (isImplicit ? 1 : 0)));
        Sizes const s = sizes(*t);
        if (s.batch > kMostBatch)
            find(Reason::kBatch, fmt::format("{}: batch {} (all dimensions before channels, height and width "
                                             "together), allowed are 1 to {}",
                                             name(*t), s.batch, kMostBatch));
        for (auto const& [what, size] : {std::pair("channels", s.c), {"height", s.h}, {"width", s.w}})
            if (size < 1 || size > kMostExtent)
                parameter(fmt::format("{}: {} {}, allowed are 1 to {}", name(*t), what, size, kMostExtent));
    };
    for (int i = 0; i < layer_.getNbInputs() && v_.findings.empty(); ++i)
        check(layer_.getInput(i), true);
    for (int i = 0; i < layer_.getNbOutputs() && v_.findings.empty(); ++i)
        check(layer_.getOutput(i), false);
}

void Check::checkPrecision()
{
    if (layer_.precisionIsSet() && s_.hearsPrecisions) {
        if (layer_.getPrecision() != DataType::kHALF)
            noHalf("the layer's precision is set to another type than FP16");
        if (layer_.getPrecision() != DataType::kINT8)
            noInt8("the layer's precision is set to another type than INT8");
    }
    auto need = [&](ITensor const* t, bool isInput) {
        if (t && !(isInput && limits_.isConstant(*t)) && t->getType() != DataType::kBOOL && !hasRange(*t))
            noInt8(
                fmt::format("{} has no dynamic range for INT8 (ITensor::setDynamicRange() or a calibrator)", name(*t)));
    };
    for (int i = 0; i < layer_.getNbInputs(); ++i)
        need(layer_.getInput(i), true);
    for (int i = 0; i < layer_.getNbOutputs(); ++i)
        need(layer_.getOutput(i), false);
    if (v_.mayHalf || v_.mayInt8)
        return;
    if (!s_.half && !s_.int8)
        return parameter("FP32: DLA computes in FP16 and INT8 alone; set BuilderFlag::kFP16 or kINT8");
    std::string text = s_.int8 ? whyNoInt8_ : whyNoHalf_;
    if (s_.half && s_.int8 && !whyNoHalf_.empty() && whyNoHalf_ != text)
        text += "; " + whyNoHalf_;
    else if (!s_.half && s_.int8)
        text += "; BuilderFlag::kFP16 is not set";
    parameter(std::move(text));
}

char const* nameOf(LayerType type)
{
    int const i = static_cast<int>(type);
    return i >= 0 && i < EnumMax<LayerType>() ? kNames[i] : "unknown";
}

Limits::Limits(INetworkDefinition const& network, Settings settings) : network_(network), settings_(std::move(settings))
{
    for (int i = 0; i < network.getNbOutputs(); ++i)
        outputs_.insert(network.getOutput(i));
    int const count = network.getNbLayers();
    for (int i = 0; i < count; ++i) {
        ILayer const* const layer = network.getLayer(i);
        for (int k = 0; k < layer->getNbOutputs(); ++k)
            makers_[layer->getOutput(k)] = layer;
        for (int k = 0; k < layer->getNbInputs(); ++k)
            if (ITensor const* t = layer->getInput(k))
                readers_[t].push_back(layer);
        LayerType const type = layer->getType();
        isNested_ = isNested_ || (type >= LayerType::kTRIP_LIMIT && type <= LayerType::kLOOP_OUTPUT) ||
                    (type >= LayerType::kCONDITION && type <= LayerType::kCONDITIONAL_OUTPUT);
        isQuantized_ = isQuantized_ || type == LayerType::kQUANTIZE || type == LayerType::kDEQUANTIZE;
    }
    // Layers stand in any order.
    for (bool again = true; again;) {
        again = false;
        for (int i = 0; i < count; ++i) {
            ILayer const* const layer = network.getLayer(i);
            bool isConst = layer->getType() == LayerType::kCONSTANT || layer->getType() == LayerType::kSHAPE ||
                           (layer->getNbInputs() > 0 && layer->getType() != LayerType::kPLUGIN_V2 && !isNested_);
            for (int k = 0; isConst && layer->getType() != LayerType::kSHAPE && k < layer->getNbInputs(); ++k)
                if (ITensor const* t = layer->getInput(k))
                    isConst = isConstant(*t);
            for (int k = 0; isConst && k < layer->getNbOutputs(); ++k)
                isConst = !outputs_.contains(layer->getOutput(k));
            again = (isConst && constants_.insert(layer).second) || again;
        }
    }
}

std::vector<ILayer const*> const& Limits::readersOf(ITensor const& t) const
{
    static std::vector<ILayer const*> const kNone;
    auto const it = readers_.find(&t);
    return it == readers_.end() ? kNone : it->second;
}

ILayer const* Limits::makerOf(ITensor const& t) const
{
    auto const it = makers_.find(&t);
    return it == makers_.end() ? nullptr : it->second;
}

bool Limits::isConstant(ITensor const& t) const
{
    ILayer const* const maker = makerOf(t);
    return maker && isConstant(*maker);
}

Sizes sizesOf(ITensor const& t, Limits const& limits)
{
    bool const isImplicit = limits.network().hasImplicitBatchDimension();
    auto dims = dimsOf(t, isImplicit);
    if (!dims.empty() && dims[0] < 0)
        dims[0] = limits.settings().batch;
    Sizes s;
    s.rank = int(dims.size());
    int64_t* const last[] = {&s.w, &s.h, &s.c};
    for (int i = 0; i < s.rank; ++i) {
        int64_t const d = dims[size_t(s.rank - 1 - i)];
        if (i < 3 && i < s.rank - (isImplicit ? 1 : 0))
            *last[i] = d;
        else
            s.batch = s.batch > kMostBatch ? s.batch : s.batch * d; // cannot wrap: dimensions have 31 bits
    }
    return s;
}

Verdict Limits::of(ILayer const& layer) const
{
    Verdict v;
    if (settings_.model == Model::kNone) {
        v.findings.push_back({Reason::kNoDla, "this machine has 0 DLA cores"});
        return v;
    }
    v.isConstant = isConstant(layer);
    if (v.isConstant)
        return v;
    if (isNested_)
        v.findings.push_back({Reason::kCombination, "the network has loops or conditionals"});
    else if (isQuantized_)
        v.findings.push_back({Reason::kNotSupported, "the network has quantize or dequantize layers, DLA takes INT8 by "
                                                     "dynamic ranges or a calibrator alone"});
    else if (!settings_.lack.empty())
        v.findings.push_back({Reason::kParameters, settings_.lack});
    else if (!hasKind(layer.getType()))
        v.findings.push_back(
            {Reason::kNotSupported, fmt::format("DLA has no layers of type {}", nameOf(layer.getType()))});
    else
        (hasWindow(layer.getType()) ? checkWindow : checkLayer)(layer, *this, v);
    if (!v.findings.empty())
        v.mayHalf = v.mayInt8 = false;
    return v;
}

} // namespace tw::dla
