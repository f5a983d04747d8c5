// SPDX-License-Identifier: Apache-2.0
// Layers that a client wants in INT8, without Q/DQ layers: with kOBEY_PRECISION_CONSTRAINTS they are, or the build says what is
// missing; with kPREFER_PRECISION_CONSTRAINTS what is missing is a warning. Networks as small as these are faster in FP32.
#include <cmath>

#include "engine/engines.h"

using namespace tw::test;

namespace {

// x [1, 4, 6, 6] -> conv -> relu -> pool -> sum with itself -> y
struct Wishes : testing::Test
{
    Maker m;
    std::vector<float> weights = std::vector<float>(4 * 4 * 9);
    ITensor *x = nullptr, *y = nullptr;
    IConvolutionLayer* conv = nullptr;
    IActivationLayer* relu = nullptr;
    IPoolingLayer* pool = nullptr;
    IElementWiseLayer* sum = nullptr;

    void make(PoolingType kind = PoolingType::kMAX)
    {
        for (size_t i = 0; i < weights.size(); ++i)
            weights[i] = float(int(i * 7 % 13) - 6) / 16;
        x = m.input("x", {1, 4, 6, 6});
        conv = m.network->addConvolutionNd(*x, 4, Dims2(3, 3), of(4 * 4 * 9), {});
        relu = m.network->addActivation(*named(conv, "conv"), ActivationType::kRELU);
        pool = m.network->addPoolingNd(*named(relu, "relu"), kind, Dims2(2, 2));
        pool->setStrideNd(Dims2(2, 2));
        sum = m.network->addElementWise(*named(pool, "pool"), *pool->getOutput(0), ElementWiseOperation::kSUM);
        sum->setName("sum");
        y = sum->getOutput(0);
        m.output(y, "y");
        m.config->setFlag(BuilderFlag::kINT8);
        m.config->setFlag(BuilderFlag::kOBEY_PRECISION_CONSTRAINTS);
        m.config->setProfilingVerbosity(ProfilingVerbosity::kDETAILED);
    }
    Weights of(int64_t count) const { return {DataType::kFLOAT, weights.data(), count}; }
    static ITensor* named(ILayer* l, char const* name)
    {
        l->setName(name);
        l->getOutput(0)->setName(name);
        return l->getOutput(0);
    }
    void giveRanges()
    {
        x->setDynamicRange(-2, 2);
        for (ILayer* l : std::initializer_list<ILayer*>{conv, relu, pool})
            l->getOutput(0)->setDynamicRange(-16, 16);
        y->setDynamicRange(-32, 32);
    }
    // What the inspector says of the engine's layer that came from this one.
    std::string about(ICudaEngine const& engine, std::string const& layer)
    {
        std::unique_ptr<IEngineInspector> const inspector(engine.createEngineInspector());
        for (int32_t i = 0; i < engine.getNbLayers(); ++i) {
            std::string const text = inspector->getLayerInformation(i, LayerInformationFormat::kJSON);
            size_t const from = text.find("\"NetworkLayers\"");
            if (from != text.npos &&
                text.substr(from, text.find(']', from) - from).find('"' + layer + '"') != text.npos)
                return text;
        }
        return "no layer from " + layer;
    }
    // Whether it reads integers.
    testing::AssertionResult isInt8(ICudaEngine const& engine, std::string const& layer)
    {
        std::string const text = about(engine, layer);
        size_t const in = text.find("\"Inputs\"");
        bool const reads = in != text.npos && contains(text.substr(in, text.find("\"Outputs\"", in) - in), "Int8");
        return (reads ? testing::AssertionSuccess() : testing::AssertionFailure()) << text;
    }
    std::vector<float> outputOf(ICudaEngine& engine)
    {
        std::vector<float> in(144), out(16);
        for (size_t i = 0; i < in.size(); ++i)
            in[i] = float(int(i * 5 % 31) - 15) / 8;
        void* bindings[] = {in.data(), out.data()};
        EXPECT_TRUE(contextOf(engine)->executeV2(bindings));
        return out;
    }
    bool warns(char const* part)
    {
        for (auto const& l : m.logger.lines)
            if (l.severity == ILogger::Severity::kWARNING && contains(l.text, part))
                return true;
        return false;
    }
};

// setOutputType(kINT8) of a Scale or an Identity converts numbers to integers; where the tensor has a range it is the wish that it is of
// other layers, as programs that ask so of every layer mean it.
TEST_F(Wishes, WithARangeScaleAndIdentityAreLayersLikeOthers)
{
    weights.assign(4 * 4 * 9, 0.125F);
    x = m.input("x", {1, 4, 6, 6});
    std::vector<float> const factors = {0.5F, 0.25F, 0.125F, 1};
    IScaleLayer* scale = m.network->addScale(*x, ScaleMode::kCHANNEL, {}, {DataType::kFLOAT, factors.data(), 4}, {});
    IIdentityLayer* same = m.network->addIdentity(*named(scale, "scale"));
    conv = m.network->addConvolutionNd(*named(same, "same"), 4, Dims2(3, 3), of(4 * 4 * 9), {});
    y = named(conv, "y");
    m.network->markOutput(*y);
    std::vector<float> want(64);
    auto const run = [&](std::vector<float>& out) {
        auto const engine = m.engine();
        ASSERT_TRUE(engine) << m.errors();
        std::vector<float> in(144);
        for (size_t i = 0; i < in.size(); ++i)
            in[i] = float(int(i * 5 % 31) - 15) / 8;
        void* bindings[] = {in.data(), out.data()};
        EXPECT_TRUE(contextOf(*engine)->executeV2(bindings));
    };
    run(want);
    for (ITensor* t : {x, scale->getOutput(0), same->getOutput(0), y})
        t->setDynamicRange(-4, 4);
    for (ILayer* l : std::initializer_list<ILayer*>{scale, same, conv}) {
        l->setPrecision(DataType::kINT8);
        l->setOutputType(0, DataType::kINT8);
    }
    m.config->setFlag(BuilderFlag::kINT8);
    m.config->setFlag(BuilderFlag::kOBEY_PRECISION_CONSTRAINTS);
    std::vector<float> got(64);
    run(got);
    for (size_t i = 0; i < want.size(); ++i)
        EXPECT_NEAR(got[i], want[i], 0.25F) << i;
    EXPECT_NE(got, want);
}

TEST_F(Wishes, BindWhateverTheClockSays)
{
    make();
    giveRanges();
    m.config->clearFlag(BuilderFlag::kINT8);
    auto const floats = m.engine();
    ASSERT_TRUE(floats) << m.errors();
    std::vector<float> const want = outputOf(*floats);
    m.config->setFlag(BuilderFlag::kINT8);
    for (bool prefers : {false, true})
        for (bool byOutput : {false, true}) {
            m.config->clearFlag(BuilderFlag::kOBEY_PRECISION_CONSTRAINTS);
            m.config->clearFlag(BuilderFlag::kPREFER_PRECISION_CONSTRAINTS);
            m.config->setFlag(prefers ? BuilderFlag::kPREFER_PRECISION_CONSTRAINTS
                                      : BuilderFlag::kOBEY_PRECISION_CONSTRAINTS);
            for (ILayer* l : std::initializer_list<ILayer*>{conv, relu, pool, sum}) {
                l->resetPrecision();
                l->resetOutputType(0);
                if (byOutput && l != sum)
                    l->setOutputType(0, DataType::kINT8);
                else
                    l->setPrecision(DataType::kINT8);
            }
            auto const engine = m.engine();
            ASSERT_TRUE(engine) << m.errors();
            for (char const* layer : {"conv", "relu", "pool", "sum"})
                EXPECT_TRUE(isInt8(*engine, layer)) << layer << prefers << byOutput;
            std::vector<float> const got = outputOf(*engine);
            for (size_t i = 0; i < got.size(); ++i)
                EXPECT_NEAR(got[i], want[i], 0.6) << i;
        }
}

// One layer alone; its output in floats.
TEST_F(Wishes, OfOneLayer)
{
    make();
    giveRanges();
    conv->setPrecision(DataType::kINT8);
    conv->setOutputType(0, DataType::kFLOAT); // what comes out of the sum, not how it is computed
    auto engine = m.engine();
    ASSERT_TRUE(engine) << m.errors();
    EXPECT_TRUE(isInt8(*engine, "conv"));
    conv->resetPrecision();
    conv->resetOutputType(0);
    sum->setPrecision(DataType::kINT8);
    engine = m.engine();
    ASSERT_TRUE(engine) << m.errors();
    EXPECT_TRUE(isInt8(*engine, "sum"));
}

// Numbers of a wished output are multiples of its step, also where floats leave the network.
TEST_F(Wishes, OutputsAreOfTheirSteps)
{
    make();
    giveRanges();
    sum->setOutputType(0, DataType::kINT8);
    y->setType(DataType::kFLOAT);
    auto const engine = m.engine();
    ASSERT_TRUE(engine) << m.errors();
    for (float v : outputOf(*engine)) {
        float const steps = v / (32.F / 127);
        EXPECT_NEAR(steps, std::nearbyint(steps), 1e-3) << v;
    }
}

TEST_F(Wishes, WhatIsMissingIsSaid)
{
    make();
    conv->setPrecision(DataType::kINT8);
    EXPECT_FALSE(m.plan()); // no ranges at all
    EXPECT_TRUE(contains(m.errors(), "'conv") && contains(m.errors(), "tensor 'x' has no range")) << m.errors();
    giveRanges();
    m.takeErrors();
    EXPECT_TRUE(m.plan()) << m.errors();
    conv->resetPrecision();
    pool->setPrecision(DataType::kINT8);
    pool->getOutput(0)->resetDynamicRange();
    EXPECT_FALSE(m.plan());
    EXPECT_TRUE(contains(m.errors(), "'pool'") && contains(m.errors(), "tensor 'pool' has no range")) << m.errors();
    m.takeErrors();
    m.config->clearFlag(BuilderFlag::kOBEY_PRECISION_CONSTRAINTS);
    m.config->setFlag(BuilderFlag::kPREFER_PRECISION_CONSTRAINTS);
    m.logger.lines.clear();
    EXPECT_TRUE(m.plan()) << m.errors();
    EXPECT_TRUE(warns("layer 'pool' (pooling) asks for INT8: tensor 'pool' has no range"));
}

// They compute in floating point, and what they read and make is INT8.
TEST_F(Wishes, KindsWithoutIntegersAreObeyedToo)
{
    make();
    giveRanges();
    ISoftMaxLayer* s = m.network->addSoftMax(*pool->getOutput(0));
    IReduceLayer* mean = m.network->addReduce(*pool->getOutput(0), ReduceOperation::kAVG, 4, true);
    IMatrixMultiplyLayer* square = m.network->addMatrixMultiply(*pool->getOutput(0), MatrixOperation::kNONE,
                                                                *pool->getOutput(0), MatrixOperation::kTRANSPOSE);
    std::vector<ITensor*> const outputs = {named(s, "softmax"), named(mean, "mean"), named(square, "square")};
    float const most[] = {1, 16, 256};
    for (size_t i = 0; i < outputs.size(); ++i) {
        m.network->markOutput(*outputs[i]);
        outputs[i]->setDynamicRange(-most[i], most[i]);
    }
    std::vector<float> in(144), y(16), want[] = {std::vector<float>(16), std::vector<float>(8), std::vector<float>(16)};
    for (size_t i = 0; i < in.size(); ++i)
        in[i] = float(int(i * 5 % 31) - 15) / 8;
    auto const run = [&](std::vector<float>* out) {
        auto const engine = m.engine();
        ASSERT_TRUE(engine) << m.errors();
        auto const context = contextOf(*engine);
        context->setTensorAddress("x", in.data());
        context->setTensorAddress("y", y.data());
        for (size_t i = 0; i < outputs.size(); ++i)
            context->setTensorAddress(outputs[i]->getName(), out[i].data());
        EXPECT_TRUE(context->enqueueV3(nullptr));
    };
    m.config->clearFlag(BuilderFlag::kINT8);
    run(want);
    m.config->setFlag(BuilderFlag::kINT8);
    for (ILayer* l : std::initializer_list<ILayer*>{s, mean, square}) {
        l->setPrecision(DataType::kINT8);
        l->setOutputType(0, DataType::kINT8);
    }
    std::vector<float> got[] = {std::vector<float>(16), std::vector<float>(8), std::vector<float>(16)};
    run(got);
    for (size_t i = 0; i < outputs.size(); ++i) {
        EXPECT_NE(got[i], want[i]);
        for (size_t k = 0; k < want[i].size(); ++k) {
            float const step = most[i] / 127, steps = got[i][k] / step;
            EXPECT_NEAR(steps, std::nearbyint(steps), 1e-3) << i;
            EXPECT_NEAR(got[i][k], want[i][k], i == 2 ? 4 : 0.15F) << i;
        }
    }
}

// Clients set one precision for all layers: those that compute no floating point have nothing to say.
TEST_F(Wishes, OfLayersWithoutNumbers)
{
    make();
    giveRanges();
    ILayer* shape = m.network->addShape(*y);
    ITensor* isThere = m.input("there", {1}, DataType::kBOOL);
    ILayer* assertion = m.network->addAssertion(*isThere, "not there");
    ASSERT_TRUE(assertion);
    ILayer* whole = m.network->addIdentity(*m.input("i", {3}, DataType::kINT32));
    m.output(whole->getOutput(0), "whole");
    m.profile({}, {{"there", {1}, {1}, {1}}, {"i", {0, 0, 0}, {1, 1, 1}, {9, 9, 9}}});
    for (ILayer* l : {shape, assertion, whole})
        l->setPrecision(DataType::kINT8);
    EXPECT_TRUE(m.plan()) << m.errors();
}

// With one range on both sides integers are averaged, with two the floats between them.
TEST_F(Wishes, RangesOfAverages)
{
    make(PoolingType::kAVERAGE);
    giveRanges();
    m.config->clearFlag(BuilderFlag::kINT8);
    auto const floats = m.engine();
    ASSERT_TRUE(floats) << m.errors();
    std::vector<float> const want = outputOf(*floats);
    m.config->setFlag(BuilderFlag::kINT8);
    pool->setPrecision(DataType::kINT8);
    auto engine = m.engine();
    ASSERT_TRUE(engine) << m.errors();
    EXPECT_TRUE(isInt8(*engine, "pool"));
    pool->getOutput(0)->setDynamicRange(-8, 8);
    engine = m.engine();
    ASSERT_TRUE(engine) << m.errors();
    std::vector<float> const got = outputOf(*engine);
    for (size_t i = 0; i < got.size(); ++i)
        EXPECT_NEAR(got[i], want[i], 0.6) << i;
}

TEST(Integers, NumbersThatIntegersCannotHold)
{
    for (float bad : {NAN, INFINITY}) {
        Maker m;
        float weights[16] = {1, 2, 3, bad}, others[16] = {1};
        ITensor* x = m.input("x", {1, 4, 3, 3});
        ILayer* conv = m.network->addConvolutionNd(*x, 4, Dims2(1, 1), {DataType::kFLOAT, weights, 16}, {});
        conv->setName("broken");
        m.output(m.network->addConvolutionNd(*conv->getOutput(0), 4, Dims2(1, 1), {DataType::kFLOAT, others, 16}, {})
                     ->getOutput(0),
                 "y");
        for (ITensor* t : {x, conv->getOutput(0)})
            t->setDynamicRange(-1, 1);
        EXPECT_TRUE(m.plan()) << m.errors();
        m.config->setFlag(BuilderFlag::kINT8);
        EXPECT_FALSE(m.plan());
        EXPECT_TRUE(m.oneError("layer 'broken' (convolution) is to run in INT8, and element 3 of its weights"));
        m.config->setFlag(BuilderFlag::kOBEY_PRECISION_CONSTRAINTS);
        conv->setPrecision(DataType::kFLOAT);
        EXPECT_TRUE(m.plan()) << m.errors(); // as the message says
    }
}

TEST(Integers, IntegersAreFastWhereThereAreKernels)
{
    Maker m;
    EXPECT_EQ(m.builder->platformHasFastInt8(), bool(__builtin_cpu_supports("avx2")));
}

} // namespace
