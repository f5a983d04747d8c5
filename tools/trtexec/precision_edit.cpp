// SPDX-License-Identifier: Apache-2.0
#include "precision_edit.h"

#include <algorithm>

namespace tw::trtexec {

namespace {

using nvinfer1::DataType;
using nvinfer1::ILayer;
using nvinfer1::INetworkDefinition;
using nvinfer1::ITensor;
using nvinfer1::LayerType;

bool isFloat(ITensor const& t)
{
    return t.getType() == DataType::kFLOAT || t.getType() == DataType::kHALF;
}

bool isPair(ILayer const& layer)
{
    return layer.getType() == LayerType::kQUANTIZE || layer.getType() == LayerType::kDEQUANTIZE;
}

// Layers by the tensor that they make; a network tells a tensor no maker.
using Makers = std::map<ITensor const*, ILayer*>;

Makers makersOf(INetworkDefinition const& network)
{
    Makers makers;
    for (int32_t i = 0; i < network.getNbLayers(); ++i)
        for (int32_t k = 0; k < network.getLayer(i)->getNbOutputs(); ++k)
            makers[network.getLayer(i)->getOutput(k)] = network.getLayer(i);
    return makers;
}

ILayer* makerOf(Makers const& makers, ITensor const* tensor, LayerType type)
{
    auto const at = makers.find(tensor);
    return at != makers.end() && at->second->getType() == type ? at->second : nullptr;
}

// What a Q, and the DQ whose output `tensor` is, begin with; null: it is none of a DQ behind a Q, or of another type.
ITensor* inFrontOfPair(Makers const& makers, ITensor const* tensor)
{
    ILayer const* const dq = makerOf(makers, tensor, LayerType::kDEQUANTIZE);
    ILayer const* const q = dq ? makerOf(makers, dq->getInput(0), LayerType::kQUANTIZE) : nullptr;
    return q && q->getInput(0)->getType() == tensor->getType() ? q->getInput(0) : nullptr;
}

bool readsPairs(Makers const& makers, ILayer const& layer)
{
    for (int32_t i = 0; i < layer.getNbInputs(); ++i)
        if (layer.getInput(i) && inFrontOfPair(makers, layer.getInput(i)))
            return !isPair(layer);
    return false;
}

// Sums of products, which have INT8 kernels.
bool isSum(ILayer const& layer)
{
    LayerType const t = layer.getType();
    return t == LayerType::kCONVOLUTION || t == LayerType::kDECONVOLUTION || t == LayerType::kFULLY_CONNECTED ||
           t == LayerType::kMATRIX_MULTIPLY;
}

// What makes new numbers, in a type that may be chosen: the rest has the same ones in other places, or no numbers of
// the arithmetic.
bool computes(ILayer const& layer)
{
    switch (layer.getType()) {
    case LayerType::kCONVOLUTION:
    case LayerType::kFULLY_CONNECTED:
    case LayerType::kACTIVATION:
    case LayerType::kPOOLING:
    case LayerType::kLRN:
    case LayerType::kSCALE:
    case LayerType::kSOFTMAX:
    case LayerType::kDECONVOLUTION:
    case LayerType::kELEMENTWISE:
    case LayerType::kUNARY:
    case LayerType::kREDUCE:
    case LayerType::kMATRIX_MULTIPLY:
    case LayerType::kRAGGED_SOFTMAX:
    case LayerType::kRNN_V2:
    case LayerType::kRESIZE:
    case LayerType::kPARAMETRIC_RELU:
    case LayerType::kEINSUM:
    case LayerType::kGRID_SAMPLE:
        return true;
    default:
        return false;
    }
}

} // namespace

bool hasExplicitQuantization(INetworkDefinition const& network)
{
    for (int32_t i = 0; i < network.getNbLayers(); ++i)
        if (isPair(*network.getLayer(i)))
            return true;
    return false;
}

Options inFp32(Options const& options)
{
    Options out = options;
    BuildOptions& build = out.build;
    build.tf32 = build.fp16 = build.int8 = build.directIo = build.refit = false;
    build.sparsity = Sparsity::kDisable;
    build.constraints = PrecisionConstraints::kNone;
    build.layerPrecisions.clear();
    build.layerOutputTypes.clear();
    build.calibration.clear();
    build.calibShapes.clear();
    build.inputFormats.clear();
    build.outputFormats.clear();
    build.saveEngine.clear();
    build.loadEngine.clear();
    build.heuristic = true;
    build.timingCacheMode = TimingCacheMode::kLocal;
    build.timingCacheFile.clear();
    build.profiling = ProfilingDetail::kLayerNames;
    return out;
}

std::map<std::string, std::string> quantizedTensors(INetworkDefinition const& network)
{
    Makers const makers = makersOf(network);
    std::map<std::string, std::string> names;
    for (auto const& [tensor, layer] : makers) {
        if (layer->getType() == LayerType::kQUANTIZE)
            names[tensor->getName()] = layer->getInput(0)->getName();
        else if (ITensor const* source = inFrontOfPair(makers, tensor))
            names[tensor->getName()] = source->getName();
    }
    return names;
}

void leavePairsOut(INetworkDefinition& network, std::function<bool(std::string const&)> const& chosen)
{
    Makers const makers = makersOf(network);
    for (int32_t i = 0; i < network.getNbLayers(); ++i) {
        ILayer& layer = *network.getLayer(i);
        if (isPair(layer) || !chosen(layer.getName()))
            continue;
        for (int32_t k = 0; k < layer.getNbInputs(); ++k) {
            // Pairs may follow each other.
            ITensor* source = layer.getInput(k) ? inFrontOfPair(makers, layer.getInput(k)) : nullptr;
            for (ITensor* before = source; before; before = inFrontOfPair(makers, before))
                source = before;
            if (source)
                layer.setInput(k, *source);
        }
    }
}

void markAllTensors(INetworkDefinition& network)
{
    std::set<ITensor const*> outputs, within;
    for (int32_t i = 0; i < network.getNbOutputs(); ++i)
        outputs.insert(network.getOutput(i));
    // Layers stand in no order that data flow would follow, so until nothing is added.
    for (bool again = true; again;) {
        again = false;
        for (int32_t i = 0; i < network.getNbLayers(); ++i) {
            ILayer const& layer = *network.getLayer(i);
            LayerType const type = layer.getType();
            if (type == LayerType::kLOOP_OUTPUT || type == LayerType::kCONDITIONAL_OUTPUT)
                continue;
            bool isWithin =
                type == LayerType::kRECURRENCE || type == LayerType::kITERATOR || type == LayerType::kCONDITIONAL_INPUT;
            for (int32_t k = 0; k < layer.getNbInputs(); ++k)
                isWithin = isWithin || within.contains(layer.getInput(k));
            for (int32_t k = 0; isWithin && k < layer.getNbOutputs(); ++k)
                again = within.insert(layer.getOutput(k)).second || again;
        }
    }
    for (int32_t i = 0; i < network.getNbLayers(); ++i) {
        ILayer const& layer = *network.getLayer(i);
        if (layer.getType() == LayerType::kCONSTANT || isPair(layer))
            continue;
        for (int32_t k = 0; k < layer.getNbOutputs(); ++k) {
            ITensor* const t = layer.getOutput(k);
            if (!t || !isFloat(*t) || outputs.contains(t) || within.contains(t) || t->isNetworkInput())
                continue;
            network.markOutput(*t);
            t->setAllowedFormats(1U << static_cast<int32_t>(nvinfer1::TensorFormat::kLINEAR));
        }
    }
}

std::vector<std::string> layersWithChoice(INetworkDefinition const& network, BuildOptions const& build)
{
    bool const isExplicit = hasExplicitQuantization(network);
    Makers const makers = makersOf(network);
    std::vector<std::string> names;
    for (int32_t i = 0; i < network.getNbLayers(); ++i) {
        ILayer const& layer = *network.getLayer(i);
        bool const isSettled = std::any_of(build.layerPrecisions.begin(), build.layerPrecisions.end(),
                                           [&](auto const& e) { return e.first == layer.getName(); });
        if (isSettled || layer.getNbOutputs() == 0 || !isFloat(*layer.getOutput(0)))
            continue;
        if ((isExplicit && readsPairs(makers, layer)) || (!isExplicit && build.int8 && isSum(layer)) ||
            (build.fp16 && computes(layer)))
            names.emplace_back(layer.getName());
    }
    return names;
}

void keepInFp32(INetworkDefinition& network, nvinfer1::IBuilderConfig& config, std::set<std::string> const& layers)
{
    using nvinfer1::BuilderFlag;
    if (layers.empty())
        return;
    leavePairsOut(network, [&](std::string const& name) { return layers.contains(name); });
    // INT8 beside Q/DQ is a matter of pairs alone; what FP16 leaves is a matter of precisions.
    if (!config.getFlag(BuilderFlag::kFP16) && hasExplicitQuantization(network))
        return;
    if (!config.getFlag(BuilderFlag::kPREFER_PRECISION_CONSTRAINTS))
        config.setFlag(BuilderFlag::kOBEY_PRECISION_CONSTRAINTS);
    for (int32_t i = 0; i < network.getNbLayers(); ++i) {
        ILayer& layer = *network.getLayer(i);
        if (layers.contains(layer.getName()) && layer.getOutput(0)->getType() == DataType::kFLOAT)
            layer.setPrecision(DataType::kFLOAT);
    }
}

} // namespace tw::trtexec
