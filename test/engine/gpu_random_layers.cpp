// SPDX-License-Identifier: Apache-2.0
// Recurrent layers, networks with Q/DQ, networks whose weights a refit replaces.
#include "gpu_random.h"

namespace gpu_random {

using namespace nvinfer1;

void defineRecurrence(Maker& m)
{
    Draw& d = m.draw;
    auto const op =
        d.of<RNNOperation>({RNNOperation::kRELU, RNNOperation::kTANH, RNNOperation::kLSTM, RNNOperation::kGRU});
    bool const both = d.chance(40), skips = d.chance(20);
    int const layers = d.from(1, 2), batch = d.from(1, 5), steps = d.from(1, 12),
              hidden = d.of<int>({1, 3, 8, 16, 24, 33, 64, 100, 128}), width = skips ? hidden : d.from(1, 40),
              directions = both ? 2 : 1;
    ITensor* const x = m.input("x", DataType::kFLOAT, {batch, steps, width}, -1, 1);
    IRNNv2Layer* const rnn = m.n.addRNNv2(*x, layers, hidden, steps, op);
    rnn->setDirection(both ? RNNDirection::kBIDIRECTION : RNNDirection::kUNIDIRECTION);
    rnn->setInputMode(skips ? RNNInputMode::kSKIP : RNNInputMode::kLINEAR);
    using Gates = std::vector<RNNGateType>;
    Gates const gates = op == RNNOperation::kLSTM
                            ? Gates{RNNGateType::kINPUT, RNNGateType::kFORGET, RNNGateType::kCELL, RNNGateType::kOUTPUT}
                        : op == RNNOperation::kGRU
                            ? Gates{RNNGateType::kUPDATE, RNNGateType::kRESET, RNNGateType::kHIDDEN}
                            : Gates{RNNGateType::kINPUT};
    float const most = op == RNNOperation::kRELU ? 0.5F / float(hidden) : 0.4F;
    for (int l = 0; l < layers * directions; ++l)
        for (RNNGateType const gate : gates)
            for (bool const ofInput : {true, false}) {
                std::string const name = std::to_string(l) + "," + std::to_string(int(gate)) + (ofInput ? "w" : "r");
                int const inputs = l < directions ? width : hidden * directions;
                if (!ofInput || !skips || l >= directions)
                    rnn->setWeightsForGate(l, gate, ofInput,
                                           m.weights(name, int64_t(hidden) * (ofInput ? inputs : hidden), -most, most));
                rnn->setBiasForGate(l, gate, ofInput, m.weights(name + "b", hidden, -0.3F, 0.3F));
            }
    if (d.chance(50))
        rnn->setHiddenState(*m.input("h", DataType::kFLOAT, {batch, layers * directions, hidden}, -1, 1));
    if (op == RNNOperation::kLSTM && d.chance(50))
        rnn->setCellState(*m.input("c", DataType::kFLOAT, {batch, layers * directions, hidden}, -1, 1));
    if (d.chance(50))
        rnn->setSequenceLengths(*m.input("lengths", DataType::kINT32, {batch}, 0, float(steps)));
    for (int i = 0; i < rnn->getNbOutputs(); ++i)
        m.output(rnn->getOutput(i));
}

namespace {

ITensor* quantized(Maker& m, ITensor* x, ITensor* scale, int axis)
{
    IQuantizeLayer* const q = m.n.addQuantize(*x, *scale);
    q->setAxis(axis);
    IDequantizeLayer* const dq = m.n.addDequantize(*q->getOutput(0), *scale);
    dq->setAxis(axis);
    return dq->getOutput(0);
}

} // namespace

void defineQuantized(Maker& m)
{
    Draw& d = m.draw;
    m.config.setFlag(BuilderFlag::kINT8);
    int channels = d.from(1, 40), pixels = d.from(4, 14);
    ITensor* x = m.input("x", DataType::kFLOAT, {d.from(1, 3), channels, pixels, pixels}, -1, 1);
    x = quantized(m, x, m.number(1.0F / 127), 1);
    ITensor* before = nullptr; // of the same shape
    for (int layer = d.from(1, 4); layer > 0; --layer) {
        std::string const id = std::to_string(layer);
        int const kernel = pixels > 2 ? d.of<int>({1, 3}) : 1, stride = d.chance(20) ? 2 : 1;
        int const groups = d.chance(20) ? channels : 1,
                  outputs = groups > 1 ? channels : d.of<int>({5, 8, 16, 33, 64, channels});
        int64_t const each = int64_t(channels / groups) * kernel * kernel;
        IConvolutionLayer* const conv =
            m.n.addConvolutionNd(*x, outputs, dimsOf({kernel, kernel}), Weights{DataType::kFLOAT, nullptr, 0},
                                 m.weights("b" + id, outputs, -0.2F, 0.2F));
        ITensor* const w = m.n.addConstant(dimsOf({outputs, int(channels / groups), kernel, kernel}),
                                           m.weights("w" + id, outputs * each, -1.5F / float(each), 2.0F / float(each)))
                               ->getOutput(0);
        conv->setInput(1, *quantized(m, w, m.constant({outputs}, 0.01F / float(each), 0.016F / float(each)), 0));
        conv->setPaddingNd(dimsOf({kernel / 2, kernel / 2}));
        conv->setStrideNd(dimsOf({stride, stride}));
        conv->setNbGroups(groups);
        ITensor* y = conv->getOutput(0);
        if (before && stride == 1 && outputs == channels && d.chance(60))
            y = m.binary(y, before, ElementWiseOperation::kSUM);
        if (d.chance(70))
            y = m.n.addActivation(*y, ActivationType::kRELU)->getOutput(0);
        if (layer > 1 || d.chance(50))
            y = quantized(m, y, m.number(d.real(0.006F, 0.012F)), 1);
        channels = outputs;
        pixels = (pixels + 2 * (kernel / 2) - kernel) / stride + 1;
        before = x = y;
    }
    m.output(x);
}

std::vector<Refitted> defineRefitted(Maker& m)
{
    Draw& d = m.draw;
    m.config.setFlag(BuilderFlag::kREFIT);
    int channels = d.from(1, 24), pixels = d.from(3, 10);
    std::vector<Refitted> list;
    auto weights = [&](std::string const& layer, WeightsRole role, int64_t count, float low, float high) {
        list.push_back({layer, role, layer + "/" + std::to_string(int(role)), count, low, high});
        return m.weights(list.back().weights, count, low, high);
    };
    ITensor* x = m.input("x", DataType::kFLOAT, {d.from(1, 3), channels, pixels, pixels}, -1, 1);
    for (int i = d.from(2, 5); i > 0; --i) {
        std::string const name = "layer " + std::to_string(i);
        ILayer* layer = nullptr;
        switch (d.from(0, 3)) {
        case 0:
        case 1: {
            int const kernel = d.of<int>({1, 3}), outputs = d.from(1, 24);
            int64_t const each = int64_t(channels) * kernel * kernel;
            Weights const w =
                weights(name, WeightsRole::kKERNEL, outputs * each, -2.0F / float(each), 3.0F / float(each));
            Weights const b = weights(name, WeightsRole::kBIAS, outputs, -0.5F, 0.5F);
            auto* const conv = m.n.addConvolutionNd(*x, outputs, dimsOf({kernel, kernel}), w, b);
            conv->setPaddingNd(dimsOf({kernel / 2, kernel / 2}));
            layer = conv;
            channels = outputs;
            break;
        }
        case 2: {
            Weights const shift = weights(name, WeightsRole::kSHIFT, channels, -0.5F, 0.5F);
            Weights const scale = weights(name, WeightsRole::kSCALE, channels, 0.5F, 1.5F);
            layer = m.n.addScale(*x, ScaleMode::kCHANNEL, shift, scale, Weights{DataType::kFLOAT, nullptr, 0});
            break;
        }
        default: {
            Weights const c = weights(name, WeightsRole::kCONSTANT, int64_t(pixels) * pixels, -0.4F, 0.6F);
            layer = m.n.addConstant(dimsOf({1, 1, pixels, pixels}), c);
        }
        }
        layer->setName(name.c_str());
        if (layer->getType() == LayerType::kCONSTANT)
            x = d.chance(50)
                    ? m.binary(x, layer->getOutput(0), ElementWiseOperation::kSUM)
                    : m.n.addMatrixMultiply(*x, MatrixOperation::kNONE, *layer->getOutput(0), MatrixOperation::kNONE)
                          ->getOutput(0);
        else
            x = layer->getOutput(0);
        if (d.chance(50))
            x = m.tanh(x);
    }
    m.output(x);
    return list;
}

} // namespace gpu_random
