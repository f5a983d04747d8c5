// SPDX-License-Identifier: Apache-2.0
// IRNNv2Layer: settings, refusals, shapes, and text that a character model writes against an evaluation by hand.
#include <algorithm>
#include <cmath>
#include <list>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "api/client.h"
#include "api/network/network.h"
#include "base/tensor.h"
#include "interp/interp.h"

using namespace nvinfer1;
using namespace tw::test;

namespace {

constexpr RNNGateType kLstmGates[] = {RNNGateType::kINPUT, RNNGateType::kOUTPUT, RNNGateType::kFORGET,
                                      RNNGateType::kCELL};

struct RecurrentLayers : testing::Test
{
    KeepingLogger logger;
    CountingRecorder recorder;
    tw::api::Reporter reporter{&logger, &recorder};
    tw::api::NetworkObject object{reporter};
    INetworkDefinition& net = object;
    std::mt19937 random{42};
    std::list<std::vector<float>> kept;

    RecurrentLayers() { object.implicitBatch = true; }
    Weights weights(int64_t n)
    {
        std::vector<float> v(static_cast<size_t>(n));
        for (float& e : v)
            e = float(random() % 2001) / 1000 - 1;
        kept.push_back(std::move(v));
        return {DataType::kFLOAT, kept.back().data(), n};
    }
    // Random weights of every gate and index; the input matrix of index i has columns(i) columns.
    template <class Columns>
    void fill(IRNNv2Layer& l, std::vector<RNNGateType> const& gates, int indices, Columns const& columns)
    {
        int const h = l.getHiddenSize();
        for (int i = 0; i < indices; ++i)
            for (RNNGateType gate : gates)
                for (bool isW : {true, false}) {
                    if (!isW || columns(i) > 0)
                        l.setWeightsForGate(i, gate, isW, weights(int64_t(h) * (isW ? columns(i) : h)));
                    l.setBiasForGate(i, gate, isW, weights(h));
                }
    }
    static std::string shapeOf(ILayer* l, int i) { return tw::api::str(l->getOutput(i)->getDimensions()); }
};

TEST_F(RecurrentLayers, SettingsAndDefaults)
{
    ITensor* x = net.addInput("x", DataType::kFLOAT, Dims2(5, 3));
    IRNNv2Layer* l = net.addRNNv2(*x, 2, 4, 5, RNNOperation::kLSTM);
    ASSERT_NE(l, nullptr) << logger.lastError();
    EXPECT_EQ(l->getType(), LayerType::kRNN_V2);
    EXPECT_EQ(l->getLayerCount(), 2);
    EXPECT_EQ(l->getHiddenSize(), 4);
    EXPECT_EQ(l->getMaxSeqLength(), 5);
    EXPECT_EQ(l->getDataLength(), 3);
    EXPECT_EQ(l->getOperation(), RNNOperation::kLSTM);
    EXPECT_EQ(l->getInputMode(), RNNInputMode::kLINEAR);
    EXPECT_EQ(l->getDirection(), RNNDirection::kUNIDIRECTION);
    EXPECT_EQ(l->getNbOutputs(), 3);
    EXPECT_EQ(l->getHiddenState(), nullptr);
    EXPECT_EQ(l->getCellState(), nullptr);
    EXPECT_EQ(l->getSequenceLengths(), nullptr);
    ITensor* h = net.addInput("h", DataType::kFLOAT, Dims2(2, 4));
    ITensor* lengths = net.addInput("lengths", DataType::kINT32, Dims{0, {}});
    l->setHiddenState(*h);
    l->setCellState(*h);
    l->setSequenceLengths(*lengths);
    EXPECT_EQ(l->getHiddenState(), h);
    EXPECT_EQ(l->getCellState(), h);
    EXPECT_EQ(l->getSequenceLengths(), lengths);
    Weights const w = weights(12);
    l->setWeightsForGate(0, RNNGateType::kFORGET, true, w);
    EXPECT_EQ(l->getWeightsForGate(0, RNNGateType::kFORGET, true).values, w.values);
    EXPECT_EQ(l->getWeightsForGate(0, RNNGateType::kFORGET, false).count, 0);
    l->setBiasForGate(1, RNNGateType::kCELL, false, weights(4));
    EXPECT_EQ(l->getBiasForGate(1, RNNGateType::kCELL, false).count, 4);
    EXPECT_EQ(logger.errors(), 0) << logger.lastError();
}

TEST_F(RecurrentLayers, ShapesOfDirectionsAndLevels)
{
    ITensor* x = net.addInput("x", DataType::kFLOAT, Dims3(7, 5, 3)); // 7 sequences in each of the batch
    IRNNv2Layer* l = net.addRNNv2(*x, 2, 4, 5, RNNOperation::kLSTM);
    l->setDirection(RNNDirection::kBIDIRECTION);
    fill(*l, {std::begin(kLstmGates), std::end(kLstmGates)}, 4, [](int i) { return i < 2 ? 3 : 8; });
    EXPECT_EQ(shapeOf(l, 0), "[7,5,8]") << logger.lastError();
    EXPECT_EQ(shapeOf(l, 1), "[7,4,4]");
    EXPECT_EQ(shapeOf(l, 2), "[7,4,4]");
    IRNNv2Layer* gru = net.addRNNv2(*x, 1, 3, 9, RNNOperation::kGRU);
    gru->setInputMode(RNNInputMode::kSKIP);
    fill(*gru, {RNNGateType::kUPDATE, RNNGateType::kRESET, RNNGateType::kHIDDEN}, 1, [](int) { return 0; });
    EXPECT_EQ(gru->getNbOutputs(), 2);
    EXPECT_EQ(shapeOf(gru, 0), "[7,5,3]") << logger.lastError();
    EXPECT_EQ(shapeOf(gru, 1), "[7,1,3]");
}

TEST_F(RecurrentLayers, RefusalsNameWhatIsWrong)
{
    ITensor* x = net.addInput("x", DataType::kFLOAT, Dims2(5, 3));
    EXPECT_EQ(net.addRNNv2(*x, 0, 4, 5, RNNOperation::kGRU), nullptr);
    EXPECT_TRUE(contains(logger.lastError(), "layer count 0")) << logger.lastError();
    EXPECT_EQ(net.addRNNv2(*x, 1, -4, 5, RNNOperation::kGRU), nullptr);
    EXPECT_EQ(net.addRNNv2(*x, 1, 4, 0, RNNOperation::kGRU), nullptr);
    EXPECT_EQ(net.addRNNv2(*x, 1, 4, 5, RNNOperation(7)), nullptr);
    IRNNv2Layer* l = net.addRNNv2(*x, 1, 4, 5, RNNOperation::kRELU);
    ITensor* h = net.addInput("h", DataType::kFLOAT, Dims2(1, 4));
    l->setCellState(*h);
    EXPECT_TRUE(contains(logger.lastError(), "only LSTM")) << logger.lastError();
    EXPECT_EQ(l->getCellState(), nullptr);
    l->setWeightsForGate(2, RNNGateType::kINPUT, true, weights(12));
    EXPECT_TRUE(contains(logger.lastError(), "layer index 2")) << logger.lastError();
    l->setOperation(RNNOperation::kLSTM);
    EXPECT_EQ(l->getOperation(), RNNOperation::kRELU);
    l->setOperation(RNNOperation::kTANH);
    EXPECT_EQ(l->getOperation(), RNNOperation::kTANH);
    l->setWeightsForGate(0, RNNGateType::kINPUT, true, weights(11));
    EXPECT_LT(l->getOutput(0)->getDimensions().nbDims, 0);
    EXPECT_TRUE(contains(logger.lastError(), "kINPUT") && contains(logger.lastError(), "11") &&
                contains(logger.lastError(), "12"))
        << logger.lastError();
    fill(*l, {RNNGateType::kINPUT}, 1, [](int) { return 3; });
    EXPECT_EQ(shapeOf(l, 0), "[5,4]");
    l->setInputMode(RNNInputMode::kSKIP);
    EXPECT_LT(l->getOutput(0)->getDimensions().nbDims, 0);
    EXPECT_TRUE(contains(logger.lastError(), "kSKIP")) << logger.lastError();
    IRNNv2Layer* longer = net.addRNNv2(*x, 1, 4, 4, RNNOperation::kTANH);
    EXPECT_LT(longer->getOutput(0)->getDimensions().nbDims, 0);
    EXPECT_TRUE(contains(logger.lastError(), "5 steps")) << logger.lastError();
}

// A character model of two levels: one step for each character, states carried by the client.
TEST_F(RecurrentLayers, WritesTheTextOfAnEvaluationByHand)
{
    constexpr int kLetters = 12, kHidden = 9, kLevels = 2, kLength = 60;
    ITensor* x = net.addInput("x", DataType::kFLOAT, Dims2(1, kLetters));
    ITensor* h0 = net.addInput("h0", DataType::kFLOAT, Dims2(kLevels, kHidden));
    ITensor* c0 = net.addInput("c0", DataType::kFLOAT, Dims2(kLevels, kHidden));
    IRNNv2Layer* l = net.addRNNv2(*x, kLevels, kHidden, 1, RNNOperation::kLSTM);
    l->setHiddenState(*h0);
    l->setCellState(*c0);
    fill(*l, {std::begin(kLstmGates), std::end(kLstmGates)}, kLevels, [](int i) { return i ? kHidden : kLetters; });
    for (int i = 0; i < 3; ++i)
        net.markOutput(*l->getOutput(i));
    auto graph = object.toGraph();
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    Weights const out = weights(kLetters * kHidden);
    auto letterOf = [&](auto const& state) {
        std::vector<double> score(kLetters, 0.0);
        for (int c = 0; c < kLetters; ++c)
            for (int j = 0; j < kHidden; ++j)
                score[size_t(c)] += static_cast<float const*>(out.values)[c * kHidden + j] * state(j);
        return int(std::max_element(score.begin(), score.end()) - score.begin());
    };

    tw::Tensor letter(tw::DataType::kFloat, {1, 1, kLetters});
    tw::Tensor states[2] = {{tw::DataType::kFloat, {1, kLevels, kHidden}},
                            {tw::DataType::kFloat, {1, kLevels, kHidden}}};
    std::vector<double> h(kLevels * kHidden, 0.0), c(h);
    auto number = [](Weights const& w, int i) { return double(static_cast<float const*>(w.values)[i]); };
    auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
    std::string text, byHand;
    for (int t = 0, mine = 0, theirs = 0; t < kLength; ++t) {
        for (int i = 0; i < kLetters; ++i)
            letter.ref().set(i, i == mine);
        auto results = tw::interp::run(**graph, {letter.ref(), states[0].ref(), states[1].ref()});
        ASSERT_TRUE(results.ok()) << results.error().message;
        mine = letterOf([&](int j) { return (*results)[0].ref().get(j); });
        for (int s = 0; s < 2; ++s)
            for (int i = 0; i < kLevels * kHidden; ++i)
                states[s].ref().set(i, (*results)[size_t(s) + 1].ref().get(i));
        text += char('a' + mine);

        std::vector<double> in(kLetters, 0.0);
        in[size_t(theirs)] = 1;
        for (int level = 0; level < kLevels; ++level) {
            std::vector<double> next(kHidden);
            for (int j = 0; j < kHidden; ++j) {
                double gate[4];
                for (int g = 0; g < 4; ++g) {
                    RNNGateType const type = kLstmGates[g];
                    Weights const w = l->getWeightsForGate(level, type, true),
                                  r = l->getWeightsForGate(level, type, false);
                    gate[g] = number(l->getBiasForGate(level, type, true), j) +
                              number(l->getBiasForGate(level, type, false), j);
                    for (int k = 0; k < int(in.size()); ++k)
                        gate[g] += number(w, j * int(in.size()) + k) * in[size_t(k)];
                    for (int k = 0; k < kHidden; ++k)
                        gate[g] += number(r, j * kHidden + k) * h[size_t(level * kHidden + k)];
                }
                double& cell = c[size_t(level * kHidden + j)];
                cell = sigmoid(gate[2]) * cell + sigmoid(gate[0]) * std::tanh(gate[3]);
                next[size_t(j)] = sigmoid(gate[1]) * std::tanh(cell);
            }
            std::copy(next.begin(), next.end(), h.begin() + level * kHidden);
            in = next;
        }
        theirs = letterOf([&](int j) { return in[size_t(j)]; });
        byHand += char('a' + theirs);
    }
    EXPECT_EQ(text, byHand);
    EXPECT_NE(text.find_first_not_of(text[0]), std::string::npos) << text; // it does not repeat one letter
}

} // namespace
