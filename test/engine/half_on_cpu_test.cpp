// SPDX-License-Identifier: Apache-2.0
// FP16 on a CPU, whose kernels are of FP32: networks of FP16 are computed by these, and layers that a client wants in FP16
// (kOBEY_ or kPREFER_PRECISION_CONSTRAINTS) read and make numbers that FP16 holds.
#include <algorithm>
#include <cmath>

#include "engine/engines.h"

using namespace tw::test;

namespace {

constexpr int kChannels = 8, kSize = 12;
constexpr size_t kCount = kChannels * kSize * kSize;

// x -> conv -> relu -> conv -> softmax over channels -> y; relu is an output, too.
struct Halves : testing::Test
{
    Maker m;
    std::vector<float> weights, in;
    std::vector<_Float16> halfWeights;
    IConvolutionLayer *first = nullptr, *second = nullptr;
    ISoftMaxLayer* softmax = nullptr;

    void SetUp() override
    {
        for (int i = 0; i < kChannels * kChannels * 9; ++i)
            weights.push_back(float(i * 37 % 101 - 50) / 256);
        for (size_t i = 0; i < kCount; ++i)
            in.push_back(float(int(i * 53 % 199) - 99) / 64);
        for (float w : weights)
            halfWeights.push_back(_Float16(w));
    }
    IConvolutionLayer* convolution(ITensor* x, DataType type, char const* name)
    {
        void const* const w = type == DataType::kHALF ? static_cast<void const*>(halfWeights.data())
                                                      : static_cast<void const*>(weights.data());
        IConvolutionLayer* l =
            m.network->addConvolutionNd(*x, kChannels, Dims2(3, 3), {type, w, int64_t(weights.size())}, {});
        l->setPaddingNd(Dims2(1, 1));
        l->setName(name);
        return l;
    }
    void make(DataType type)
    {
        m.network.reset(m.builder->createNetworkV2(1));
        ITensor* x = m.input("x", {1, kChannels, kSize, kSize}, type);
        first = convolution(x, type, "first");
        ITensor* r = m.relu(first->getOutput(0));
        second = convolution(r, type, "second");
        softmax = m.network->addSoftMax(*second->getOutput(0));
        softmax->setAxes(2);
        m.output(softmax->getOutput(0), "y");
        m.output(r, "r");
        if (type == DataType::kHALF)
            for (int i = 0; i < 2; ++i)
                m.network->getOutput(i)->setType(type);
        m.config->setProfilingVerbosity(ProfilingVerbosity::kDETAILED);
    }
    struct Results
    {
        std::vector<float> y, r;
    };
    Results run(DataType type)
    {
        Results out;
        auto const engine = m.engine();
        EXPECT_TRUE(engine) << m.errors();
        if (!engine)
            return out;
        std::unique_ptr<IEngineInspector> const inspector(engine->createEngineInspector());
        EXPECT_FALSE(contains(inspector->getEngineInformation(LayerInformationFormat::kJSON),
                              "\"TacticName\":\"convolution_any_plain_cpu\",\"TacticValue\""));
        out.y.resize(kCount);
        out.r.resize(kCount);
        if (type == DataType::kFLOAT) {
            void* bindings[] = {in.data(), out.y.data(), out.r.data()};
            order(*engine, bindings);
            EXPECT_TRUE(contextOf(*engine)->executeV2(bindings));
            return out;
        }
        std::vector<_Float16> x, y(kCount), r(kCount);
        for (float v : in)
            x.push_back(_Float16(v));
        void* bindings[] = {x.data(), y.data(), r.data()};
        order(*engine, bindings);
        EXPECT_TRUE(contextOf(*engine)->executeV2(bindings));
        std::ranges::copy(y, out.y.begin());
        std::ranges::copy(r, out.r.begin());
        return out;
    }
    static void order(ICudaEngine const& engine, void** bindings)
    {
        if (engine.getBindingIndex("y") > engine.getBindingIndex("r"))
            std::swap(bindings[1], bindings[2]);
    }
    static bool isHalf(std::vector<float> const& v)
    {
        return std::ranges::all_of(v, [](float x) { return float(_Float16(x)) == x; });
    }
    static float farthest(std::vector<float> const& a, std::vector<float> const& b)
    {
        float most = 0;
        for (size_t i = 0; i < a.size(); ++i)
            most = std::max(most, std::fabs(a[i] - b[i]));
        return most;
    }
};

TEST_F(Halves, NetworksOfHalfAreComputedByKernelsOfFloat)
{
    make(DataType::kFLOAT);
    Results const want = run(DataType::kFLOAT);
    make(DataType::kHALF);
    for (bool permitted : {true, false}) {
        if (!permitted)
            m.config->clearFlag(BuilderFlag::kFP16);
        else
            m.config->setFlag(BuilderFlag::kFP16);
        Results const got = run(DataType::kHALF);
        // Nothing but the outputs is rounded: r, which reaches 8 and is read for y.
        EXPECT_LE(farthest(got.r, want.r), 0x1p-8F);
        EXPECT_LE(farthest(got.y, want.y), 0x1p-10F);
    }
}

TEST_F(Halves, WeightsOfNetworksOfHalfAreRefitted)
{
    make(DataType::kHALF);
    m.config->setFlag(BuilderFlag::kREFIT);
    auto const engine = m.engine();
    ASSERT_TRUE(engine) << m.errors();
    for (size_t i = 0; i < weights.size(); ++i)
        halfWeights[i] = _Float16(weights[i] = weights[i] / 2 + 0.25F);
    std::unique_ptr<IRefitter> const refitter(createInferRefitter(*engine, m.logger));
    ASSERT_TRUE(refitter->setWeights("first", WeightsRole::kKERNEL,
                                     {DataType::kHALF, halfWeights.data(), int64_t(weights.size())}));
    ASSERT_TRUE(refitter->setWeights("second", WeightsRole::kKERNEL,
                                     {DataType::kFLOAT, weights.data(), int64_t(weights.size())}));
    ASSERT_TRUE(refitter->refitCudaEngine());
    std::vector<_Float16> x, y(kCount), r(kCount);
    for (float v : in)
        x.push_back(_Float16(v));
    void* bindings[] = {x.data(), y.data(), r.data()};
    order(*engine, bindings);
    ASSERT_TRUE(contextOf(*engine)->executeV2(bindings));
    m.config->clearFlag(BuilderFlag::kREFIT);
    make(DataType::kHALF);
    Results const want = run(DataType::kHALF);
    for (size_t i = 0; i < kCount; ++i)
        ASSERT_NEAR(float(r[i]), want.r[i], 0.02F) << i;
}

// As programs of 8.5 do: what is sensitive in FP32, the rest in FP16.
TEST_F(Halves, LayersThatMustBeHalfAreRounded)
{
    make(DataType::kFLOAT);
    m.config->setFlag(BuilderFlag::kFP16);
    Results const want = run(DataType::kFLOAT);
    EXPECT_FALSE(isHalf(want.r));
    for (int i = 0; i < m.network->getNbLayers(); ++i) {
        ILayer* l = m.network->getLayer(i);
        l->setPrecision(l == softmax ? DataType::kFLOAT : DataType::kHALF);
        l->setOutputType(0, l == softmax ? DataType::kFLOAT : DataType::kHALF);
    }
    Results const hinted = run(DataType::kFLOAT);
    EXPECT_EQ(hinted.r, want.r);
    for (auto flag : {BuilderFlag::kOBEY_PRECISION_CONSTRAINTS, BuilderFlag::kPREFER_PRECISION_CONSTRAINTS}) {
        m.config->setFlag(flag);
        m.takeErrors();
        Results const got = run(DataType::kFLOAT);
        m.config->clearFlag(flag);
        EXPECT_EQ(m.logger.warnings(), 1);
        EXPECT_TRUE(isHalf(got.r));
        EXPECT_FALSE(isHalf(got.y));
        EXPECT_LE(farthest(got.r, want.r), 0x1p-7F);
        EXPECT_LE(farthest(got.y, want.y), 0x1p-8F);
    }
}

// Without kFP16 it is an error, or a warning, as ever.
TEST_F(Halves, WhatIsNotPermittedIsNotObeyed)
{
    make(DataType::kFLOAT);
    first->setPrecision(DataType::kHALF);
    m.config->setFlag(BuilderFlag::kOBEY_PRECISION_CONSTRAINTS);
    EXPECT_FALSE(m.engine());
    EXPECT_TRUE(m.oneError("'first' asks for f16, which BuilderFlag::kFP16 does not permit; set that flag"));
}

// kFP16 lets products keep their weights in FP16, but of layers that are to be in FP32: which kernels were asked is in the report.
TEST_F(Halves, WeightsOfLayersThatMustBeFloatStay)
{
    constexpr int kWidth = 64;
    weights.resize(kWidth * kWidth, 1.0F / 3);
    for (bool isFloat : {false, true}) {
        m.network.reset(m.builder->createNetworkV2(1));
        ITensor* x = m.input("x", {1, kWidth});
        ITensor* w = m.network->addConstant(Dims2(kWidth, kWidth), {DataType::kFLOAT, weights.data(), kWidth * kWidth})
                         ->getOutput(0);
        auto* product = m.network->addMatrixMultiply(*x, MatrixOperation::kNONE, *w, MatrixOperation::kNONE);
        if (isFloat)
            product->setPrecision(DataType::kFLOAT);
        m.output(product->getOutput(0), "y");
        m.config->setFlag(BuilderFlag::kFP16);
        m.config->setProfilingVerbosity(ProfilingVerbosity::kDETAILED);
        auto const engine = m.engine();
        ASSERT_TRUE(engine) << m.errors();
        std::unique_ptr<IEngineInspector> const inspector(engine->createEngineInspector());
        char const* const report = inspector->getEngineInformation(LayerInformationFormat::kJSON);
        EXPECT_EQ(contains(report, "f32f16_gemv"), !isFloat) << report;
    }
}

} // namespace
