// SPDX-License-Identifier: Apache-2.0
// Engines and contexts asked for what is not there.
#include "bad_input/fixture.h"

using namespace nvinfer1;
using namespace tw::test;

namespace {

struct BadCalls : BadInput
{
    std::unique_ptr<ICudaEngine> engine;
    std::unique_ptr<IExecutionContext> context;
    std::vector<float> x = std::vector<float>(48, 1.0F), y = std::vector<float>(12);

    void SetUp() override
    {
        auto plan = goodPlan();
        ASSERT_NE(plan, nullptr) << lastError();
        engine.reset(runtime->deserializeCudaEngine(plan->data(), plan->size()));
        ASSERT_NE(engine, nullptr) << lastError();
        context.reset(engine->createExecutionContext());
        ASSERT_NE(context, nullptr) << lastError();
        forget();
    }
};

TEST_F(BadCalls, EngineQueries)
{
    for (int32_t i : {-1, 2, INT32_MAX, INT32_MIN}) {
        SCOPED_TRACE(i);
        EXPECT_EQ(engine->getIOTensorName(i), nullptr);
        expectRefused("getIOTensorName");
        EXPECT_EQ(engine->getBindingName(i), nullptr);
        expectRefused("getBindingName");
        EXPECT_EQ(engine->getBindingDimensions(i).nbDims, -1);
        expectRefused("getBindingDimensions");
    }
    for (char const* name : {static_cast<char const*>(nullptr), "", "no such tensor"}) {
        EXPECT_EQ(engine->getTensorShape(name).nbDims, -1);
        expectRefused("getTensorShape");
        EXPECT_EQ(engine->getTensorIOMode(name), TensorIOMode::kNONE);
        EXPECT_EQ(engine->getProfileShape(name, 0, OptProfileSelector::kMIN).nbDims, -1);
        expectRefused("getProfileShape");
        EXPECT_EQ(engine->getBindingIndex(name), -1);
        forget(); // a name that is not there is an answer
    }
    EXPECT_EQ(engine->getProfileShape("x", 7, OptProfileSelector::kMIN).nbDims, -1);
    expectRefused("7");
    EXPECT_EQ(engine->getProfileDimensions(0, -1, OptProfileSelector::kMAX).nbDims, -1);
    expectRefused("getProfileDimensions");
}

TEST_F(BadCalls, Shapes)
{
    Dims const bad[] = {Dims4(4, 1, 4, 4), Dims4(0, 1, 4, 4), Dims4(2, 1, 4, 5), Dims4(-1, 1, 4, 4),
                        Dims3(2, 4, 4),    Dims{-1, {}},      Dims{9, {}},       Dims{INT32_MAX, {}}};
    for (Dims const& d : bad) {
        SCOPED_TRACE(d.nbDims);
        EXPECT_FALSE(context->setInputShape("x", d));
        expectRefused("x");
        EXPECT_FALSE(context->setBindingDimensions(0, d));
        expectRefused("x");
    }
    EXPECT_FALSE(context->setInputShape(nullptr, Dims4(2, 1, 4, 4)));
    expectRefused("setInputShape");
    EXPECT_FALSE(context->setInputShape("y", Dims4(2, 1, 2, 2)));
    expectRefused("y");
    EXPECT_FALSE(context->setBindingDimensions(-1, Dims4(2, 1, 4, 4)));
    expectRefused("-1");
    EXPECT_FALSE(context->setBindingDimensions(2, Dims4(2, 1, 4, 4)));
    expectRefused("2");
    EXPECT_FALSE(context->setInputShapeBinding(0, nullptr));
    expectRefused("setInputShapeBinding");
    EXPECT_FALSE(context->setOptimizationProfileAsync(1, nullptr));
    expectRefused("1");
    EXPECT_FALSE(context->setOptimizationProfile(-1));
    expectRefused("-1");
}

TEST_F(BadCalls, Addresses)
{
    void* both[] = {x.data(), y.data()};
    EXPECT_FALSE(context->executeV2(both)); // no shape yet
    expectRefused("'x' has no shape");
    ASSERT_TRUE(context->setInputShape("x", Dims4(3, 1, 4, 4)));
    EXPECT_FALSE(context->executeV2(nullptr));
    expectRefused("null");
    void* onlyX[] = {x.data(), nullptr};
    EXPECT_FALSE(context->executeV2(onlyX));
    expectRefused("y");
    void* onlyY[] = {nullptr, y.data()};
    EXPECT_FALSE(context->enqueueV2(onlyY, nullptr, nullptr));
    expectRefused("x");
    EXPECT_FALSE(context->enqueueV3(nullptr));
    expectRefused("x");
    EXPECT_FALSE(context->setTensorAddress(nullptr, x.data()));
    expectRefused("setTensorAddress");
    EXPECT_FALSE(context->setTensorAddress("z", x.data()));
    expectRefused("z");
    EXPECT_FALSE(context->setInputTensorAddress("y", y.data()));
    expectRefused("y");
    EXPECT_TRUE(context->setTensorAddress("x", x.data()));
    EXPECT_FALSE(context->enqueueV3(nullptr));
    expectRefused("y");
    EXPECT_FALSE(context->setOutputAllocator("x", nullptr));
    expectRefused("x");
    EXPECT_EQ(context->getTensorAddress("z"), nullptr);
    expectRefused("z");
    context->setName(nullptr);
    expectRefused("setName");
    EXPECT_TRUE(context->setTensorAddress("y", y.data()));
    EXPECT_TRUE(context->enqueueV3(nullptr));
    EXPECT_TRUE(context->executeV2(both));
    expectQuiet();
    EXPECT_FLOAT_EQ(y[11], 4.5F);
}

TEST_F(BadCalls, ImplicitBatchCallsOnExplicitEngines)
{
    void* both[] = {x.data(), y.data()};
    EXPECT_FALSE(context->execute(1, both));
    expectRefused("batch");
    EXPECT_FALSE(context->enqueue(1, both, nullptr, nullptr));
    expectRefused("batch");
}

TEST_F(BadCalls, OwnMemoryIsMissing)
{
    context.reset(); // gives its profile back
    std::unique_ptr<IExecutionContext> bare(engine->createExecutionContextWithoutDeviceMemory());
    ASSERT_NE(bare, nullptr);
    ASSERT_TRUE(bare->setOptimizationProfileAsync(0, nullptr)) << lastError();
    ASSERT_TRUE(bare->setInputShape("x", Dims4(3, 1, 4, 4)));
    void* both[] = {x.data(), y.data()};
    if (engine->getDeviceMemorySize() > 0) {
        EXPECT_FALSE(bare->executeV2(both));
        expectRefused("setDeviceMemory");
    }
}

} // namespace
