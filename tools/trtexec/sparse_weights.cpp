// SPDX-License-Identifier: Apache-2.0
// --sparsity=force: weights get the 2:4 pattern, whatever results become.
#include <algorithm>
#include <cstring>
#include <map>

#include "network.h"

namespace tw::trtexec {

namespace {

using nvinfer1::DataType;
using nvinfer1::LayerType;
using nvinfer1::MatrixOperation;
using nvinfer1::Weights;

// Weights as [outer, sums, inner]; groups of four run along the middle.
struct Pattern
{
    int64_t outer = 0, sums = 0, inner = 0;
};

// Of equal magnitudes the earlier ones go. NaN counts as large.
template <class T, class Magnitude>
void prune(T* w, Pattern const& p, Magnitude const& magnitude)
{
    for (int64_t k = 0; k < p.outer; ++k)
        for (int64_t c = 0; c + 4 <= p.sums; c += 4)
            for (int64_t i = 0; i < p.inner; ++i) {
                T* group[4];
                for (int64_t j = 0; j < 4; ++j)
                    group[j] = w + (k * p.sums + c + j) * p.inner + i;
                std::stable_sort(group, group + 4,
                                 [&](T const* a, T const* b) { return magnitude(*a) < magnitude(*b); });
                *group[0] = *group[1] = T();
            }
}

// The magnitude's bits: they order as the numbers do.
uint32_t magnitudeOf(uint32_t bits)
{
    return bits & 0x7fffffff;
}
uint16_t magnitudeOf(uint16_t bits)
{
    return bits & 0x7fff;
}

// A pruned copy that the target owns; no values where the weights cannot be pruned.
Weights pruned(ParsedNetwork& target, Weights const& weights, Pattern const& p)
{
    bool const isHalf = weights.type == DataType::kHALF;
    if (!weights.values || (weights.type != DataType::kFLOAT && !isHalf) || p.sums < 4 ||
        p.outer * p.sums * p.inner != weights.count)
        return {weights.type, nullptr, 0};
    std::vector<std::byte>& bytes =
        target.ownedWeights.emplace_back(static_cast<size_t>(weights.count) * bytesPerElement(weights.type));
    std::memcpy(bytes.data(), weights.values, bytes.size());
    if (isHalf)
        prune(reinterpret_cast<uint16_t*>(bytes.data()), p, [](uint16_t bits) { return magnitudeOf(bits); });
    else
        prune(reinterpret_cast<uint32_t*>(bytes.data()), p, [](uint32_t bits) { return magnitudeOf(bits); });
    return {weights.type, bytes.data(), weights.count};
}

// Layers by the tensor that they make; a network tells a tensor no maker.
using Makers = std::map<nvinfer1::ITensor const*, nvinfer1::ILayer*>;

// The constant layer behind quantize and dequantize layers, or null.
nvinfer1::IConstantLayer* constantBehind(Makers const& makers, nvinfer1::ITensor const* tensor)
{
    for (auto at = makers.find(tensor); at != makers.end(); at = makers.find(at->second->getInput(0))) {
        LayerType const type = at->second->getType();
        if (type == LayerType::kCONSTANT)
            return static_cast<nvinfer1::IConstantLayer*>(at->second);
        if (type != LayerType::kQUANTIZE && type != LayerType::kDEQUANTIZE)
            return nullptr;
    }
    return nullptr;
}

class Forcing
{
public:
    Forcing(Log& log, ParsedNetwork& target) : log_(log), target_(target)
    {
        nvinfer1::INetworkDefinition const& network = *target.network;
        for (int32_t i = 0; i < network.getNbLayers(); ++i)
            for (int32_t k = 0; k < network.getLayer(i)->getNbOutputs(); ++k)
                makers_[network.getLayer(i)->getOutput(k)] = network.getLayer(i);
    }

    void layer(nvinfer1::ILayer& layer)
    {
        if (layer.getType() == LayerType::kCONVOLUTION) {
            auto& conv = static_cast<nvinfer1::IConvolutionLayer&>(layer);
            int64_t const window = volumeOf(conv.getKernelSizeNd(), layer.getName());
            if (layer.getNbInputs() > 1)
                return constant(layer, 1, [&](nvinfer1::Dims const& d) { return Pattern{d.d[0], d.d[1], window}; });
            Weights const w = conv.getKernelWeights();
            replace(layer, w, channels(w, conv.getNbOutputMaps(), window),
                    [&](Weights const& made) { conv.setKernelWeights(made); });
        } else if (layer.getType() == LayerType::kFULLY_CONNECTED) {
            auto& full = static_cast<nvinfer1::IFullyConnectedLayer&>(layer);
            if (layer.getNbInputs() > 1)
                return constant(layer, 1, [&](nvinfer1::Dims const& d) {
                    return Pattern{d.d[0], volumeOf(d, layer.getName()) / std::max(d.d[0], 1), 1};
                });
            Weights const w = full.getKernelWeights();
            replace(layer, w, channels(w, full.getNbOutputChannels(), 1),
                    [&](Weights const& made) { full.setKernelWeights(made); });
        } else if (layer.getType() == LayerType::kMATRIX_MULTIPLY) {
            auto const& product = static_cast<nvinfer1::IMatrixMultiplyLayer&>(layer);
            for (int32_t input = 0; input < 2; ++input) {
                MatrixOperation const op = product.getOperation(input);
                bool const isLast =
                    op == MatrixOperation::kVECTOR || (op == MatrixOperation::kTRANSPOSE) == (input == 1);
                constant(layer, input, [&](nvinfer1::Dims const& d) {
                    int32_t const axis = d.nbDims - (isLast ? 1 : 2);
                    Pattern p{1, axis < 0 ? 0 : d.d[axis], 1};
                    for (int32_t i = 0; i < d.nbDims; ++i)
                        (i < axis ? p.outer : p.inner) *= i == axis ? 1 : d.d[i];
                    return p;
                });
            }
        }
    }

private:
    static Pattern channels(Weights const& w, int64_t outMaps, int64_t window)
    {
        return {outMaps, outMaps > 0 && window > 0 ? w.count / outMaps / window : 0, window};
    }

    template <class Set>
    void replace(nvinfer1::ILayer const& layer, Weights const& weights, Pattern const& pattern, Set const& set)
    {
        Weights const made = pruned(target_, weights, pattern);
        std::string const name = "'" + std::string(layer.getName()) + "'";
        if (!made.values)
            return log_.verbose("--sparsity=force: weights of layer " + name +
                                " stay: they are not FP32 or FP16, or fewer than four along their sums");
        libraryStep(log_, "--sparsity=force for layer " + name, [&] { set(made); });
        log_.verbose("--sparsity=force: weights of layer " + name + " overwritten");
    }

    // Input `index` of the layer, where it is a constant of two or more dimensions.
    template <class PatternOf>
    void constant(nvinfer1::ILayer const& layer, int32_t index, PatternOf const& patternOf)
    {
        nvinfer1::IConstantLayer* const c = constantBehind(makers_, layer.getInput(index));
        if (c && c->getDimensions().nbDims >= 2)
            replace(layer, c->getWeights(), patternOf(c->getDimensions()),
                    [&](Weights const& made) { c->setWeights(made); });
    }

    Log& log_;
    ParsedNetwork& target_;
    Makers makers_;
};

} // namespace

void forceSparseWeights(Log& log, ParsedNetwork& parsed)
{
    Forcing forcing(log, parsed);
    for (int32_t i = 0; i < parsed.network->getNbLayers(); ++i)
        forcing.layer(*parsed.network->getLayer(i));
}

} // namespace tw::trtexec
