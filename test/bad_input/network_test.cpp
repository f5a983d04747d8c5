// SPDX-License-Identifier: Apache-2.0
// Networks that cannot be: null pointers, wrong shapes, indices out of range, equal names, sizes beyond the machine.
#include "bad_input/fixture.h"

using namespace nvinfer1;
using namespace tw::test;

namespace {

using BadNetwork = BadInput;

TEST_F(BadNetwork, Inputs)
{
    auto n = newNetwork();
    EXPECT_EQ(n->addInput(nullptr, DataType::kFLOAT, Dims2(1, 2)), nullptr);
    expectRefused("the name is a null pointer");
    EXPECT_EQ(n->addInput(std::string(5000, 'a').c_str(), DataType::kFLOAT, Dims2(1, 2)), nullptr);
    expectRefused("4096 bytes");
    EXPECT_EQ(n->addInput("x", static_cast<DataType>(99), Dims2(1, 2)), nullptr);
    expectRefused("99");
    EXPECT_EQ(n->addInput("x", DataType::kFLOAT, Dims2(1, -2)), nullptr);
    expectRefused("-2");
    EXPECT_EQ(n->addInput("x", DataType::kFLOAT, Dims{9, {}}), nullptr);
    expectRefused("9");
    EXPECT_EQ(n->addInput("x", DataType::kFLOAT, Dims{-1, {}}), nullptr);
    expectRefused("-1");
    EXPECT_EQ(n->addInput("x", DataType::kFLOAT, Dims4(65536, 65536, 65536, 65536)), nullptr);
    expectRefused("x");
    EXPECT_NE(n->addInput("x", DataType::kFLOAT, Dims2(1, 2)), nullptr);
    expectQuiet();
    EXPECT_EQ(n->addInput("x", DataType::kFLOAT, Dims2(1, 2)), nullptr);
    expectRefused("'x'");
    EXPECT_EQ(n->getInput(-1), nullptr);
    EXPECT_EQ(n->getInput(1), nullptr);
    EXPECT_EQ(n->getOutput(0), nullptr);
    EXPECT_EQ(n->getLayer(INT32_MAX), nullptr);
    n->setName(nullptr);
    forget();
    EXPECT_EQ(build(*n), nullptr);
    expectRefused("no output");
}

TEST_F(BadNetwork, Layers)
{
    auto n = newNetwork();
    ITensor* x = n->addInput("x", DataType::kFLOAT, Dims4(1, 2, 4, 4));
    Weights const none{DataType::kFLOAT, nullptr, 0};
    EXPECT_EQ(n->addConvolutionNd(*x, 1, Dims2(3, 3), Weights{DataType::kFLOAT, nullptr, 18}, none), nullptr);
    expectRefused("null");
    EXPECT_EQ(n->addConvolutionNd(*x, 1, Dims2(3, 3), Weights{DataType::kFLOAT, weights.data(), -18}, none), nullptr);
    expectRefused("-18");
    EXPECT_EQ(n->addActivation(*x, static_cast<ActivationType>(77)), nullptr);
    expectRefused("77");
    EXPECT_EQ(n->addConcatenation(nullptr, 2), nullptr);
    expectRefused("addConcatenation");
    ITensor* two[] = {x, nullptr};
    EXPECT_EQ(n->addConcatenation(two, 2), nullptr);
    expectRefused("input 1 is a null pointer");
    EXPECT_EQ(n->addConcatenation(two, -1), nullptr);
    expectRefused("-1");
    EXPECT_EQ(n->addTopK(*x, TopKOperation::kMAX, 0, 2), nullptr);
    expectRefused("addTopK");
    EXPECT_EQ(n->addConstant(Dims2(65536, 65536), Weights{DataType::kFLOAT, weights.data(), 0}), nullptr);
    expectRefused("addConstant");
    ISliceLayer* s = n->addSlice(*x, Dims4(0, 0, 0, 0), Dims4(1, 2, 4, 5), Dims4(1, 1, 1, 1));
    if (s) {
        n->markOutput(*s->getOutput(0));
        EXPECT_EQ(build(*n), nullptr);
    }
    expectRefused("slice");
    n = newNetwork(); // weights may be set later: the count is checked when the network is built
    if (IConstantLayer* c = n->addConstant(Dims2(4, 4), Weights{DataType::kFLOAT, weights.data(), 15})) {
        n->markOutput(*c->getOutput(0));
        EXPECT_EQ(build(*n), nullptr);
    }
    expectRefused("has count 15 but 16 was expected");
}

TEST_F(BadNetwork, EqualNamesAndCycles)
{
    auto n = newNetwork();
    ITensor* x = n->addInput("x", DataType::kFLOAT, Dims2(2, 3));
    ILayer* a = n->addActivation(*x, ActivationType::kRELU);
    ILayer* b = n->addActivation(*a->getOutput(0), ActivationType::kTANH);
    a->getOutput(0)->setName("y");
    b->getOutput(0)->setName("y");
    n->markOutput(*a->getOutput(0));
    n->markOutput(*b->getOutput(0));
    forget();
    EXPECT_EQ(build(*n), nullptr);
    expectRefused("'y'");
    a->getOutput(0)->setName("x");
    forget();
    EXPECT_EQ(build(*n), nullptr);
    expectRefused("'x'");
    a->getOutput(0)->setName("a");
    a->setInput(0, *b->getOutput(0)); // b reads a, a reads b
    forget();
    EXPECT_EQ(build(*n), nullptr);
    expectRefused("");
}

TEST_F(BadNetwork, MoreThanTheMachineHas)
{
    auto n = newNetwork();
    ITensor* x = n->addInput("x", DataType::kFLOAT, Dims2(1, 1));
    // 8 GiB each: legal sizes, more than this builder may take.
    IFillLayer* fill = n->addFill(Dims{1, {INT32_MAX}}, FillOperation::kLINSPACE);
    ITensor* t = fill->getOutput(0);
    for (int i = 0; i < 3; ++i)
        t = n->addUnary(*t, UnaryOperation::kEXP)->getOutput(0);
    n->markOutput(*t);
    ILayer* use = n->addActivation(*x, ActivationType::kRELU);
    n->markOutput(*use->getOutput(0));
    setenv("TENSORWRIGHT_MAX_MEMORY_MB", "256", 1);
    std::unique_ptr<IBuilder> small(createInferBuilder(logger));
    unsetenv("TENSORWRIGHT_MAX_MEMORY_MB");
    small->setErrorRecorder(&recorder);
    std::unique_ptr<IBuilderConfig> config(small->createBuilderConfig());
    forget();
    EXPECT_EQ(small->buildSerializedNetwork(*n, *config), nullptr);
    expectRefused("the limit is 256 MiB");
}

TEST_F(BadNetwork, Profiles)
{
    auto n = newNetwork();
    ITensor* x = n->addInput("x", DataType::kFLOAT, Dims2(-1, 3));
    n->markOutput(*n->addActivation(*x, ActivationType::kRELU)->getOutput(0));
    EXPECT_EQ(build(*n), nullptr);
    expectRefused("optimization profile");
    std::unique_ptr<IBuilderConfig> config(builder->createBuilderConfig());
    IOptimizationProfile* p = builder->createOptimizationProfile();
    EXPECT_FALSE(p->setDimensions(nullptr, OptProfileSelector::kMIN, Dims2(1, 3)));
    expectRefused("setDimensions");
    EXPECT_FALSE(p->setDimensions("x", OptProfileSelector::kMIN, Dims{99, {}}));
    expectRefused("nbDims 99");
    EXPECT_FALSE(p->setShapeValues("x", OptProfileSelector::kMIN, nullptr, 3));
    expectRefused("null pointer");
    EXPECT_EQ(config->addOptimizationProfile(nullptr), -1);
    forget();
    p->setDimensions("x", OptProfileSelector::kMIN, Dims2(1, 4));
    p->setDimensions("x", OptProfileSelector::kOPT, Dims2(1, 4));
    p->setDimensions("x", OptProfileSelector::kMAX, Dims2(1, 4));
    config->addOptimizationProfile(p);
    forget();
    EXPECT_EQ(builder->buildSerializedNetwork(*n, *config), nullptr);
    expectRefused("do not fit input 'x'");
}

} // namespace
