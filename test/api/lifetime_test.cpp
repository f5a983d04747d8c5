// SPDX-License-Identifier: Apache-2.0
// Factories and what they make: null and foreign arguments, inherited recorders, who outlives whom, delete and
// destroy().
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "api/client.h"

using namespace nvinfer1;
using namespace tw::test;

namespace {

struct Lifetime : testing::Test
{
    KeepingLogger logger;
    std::vector<float> kernel = std::vector<float>(9, 1.0F);

    // y = sum over 3x3 windows of x, x: [1,1,4,4].
    INetworkDefinition* network(IBuilder& builder)
    {
        INetworkDefinition* net =
            builder.createNetworkV2(1U << static_cast<uint32_t>(NetworkDefinitionCreationFlag::kEXPLICIT_BATCH));
        ITensor* x = net->addInput("x", DataType::kFLOAT, Dims4(1, 1, 4, 4));
        IConvolutionLayer* c = net->addConvolutionNd(*x, 1, Dims2(3, 3), {DataType::kFLOAT, kernel.data(), 9},
                                                     {DataType::kFLOAT, nullptr, 0});
        c->getOutput(0)->setName("y");
        net->markOutput(*c->getOutput(0));
        return net;
    }
    std::string errors() const
    {
        std::string all;
        for (auto const& l : logger.lines)
            if (l.severity <= ILogger::Severity::kERROR)
                all += l.text + "\n";
        return all;
    }
};

void expectSums(IExecutionContext& context)
{
    std::vector<float> x(16), y(4, -1);
    for (size_t i = 0; i < x.size(); ++i)
        x[i] = float(i);
    void* bindings[] = {x.data(), y.data()};
    ASSERT_TRUE(context.executeV2(bindings));
    EXPECT_EQ(y, (std::vector<float>{45, 54, 81, 90}));
}

TEST_F(Lifetime, FactoriesRefuseNullAndOtherVersions)
{
    EXPECT_EQ(createInferBuilder_INTERNAL(nullptr, 8503), nullptr);
    EXPECT_EQ(createInferRuntime_INTERNAL(nullptr, 8503), nullptr);
    EXPECT_EQ(createInferBuilder_INTERNAL(&logger, 7103), nullptr);
    EXPECT_EQ(createInferRuntime_INTERNAL(&logger, 8601), nullptr);
    EXPECT_EQ(logger.errors(), 2);
}

TEST_F(Lifetime, RecordersAreInherited)
{
    CountingRecorder recorder;
    std::unique_ptr<IBuilder> builder(createInferBuilder(logger));
    ASSERT_TRUE(builder);
    EXPECT_EQ(getLogger(), &logger);
    EXPECT_EQ(builder->getLogger(), &logger);
    builder->setErrorRecorder(&recorder);
    EXPECT_EQ(recorder.references, 1);
    std::unique_ptr<INetworkDefinition> net(builder->createNetworkV2(1));
    EXPECT_EQ(net->getErrorRecorder(), &recorder);
    net->addInput(nullptr, DataType::kFLOAT, Dims2(1, 1));
    EXPECT_EQ(recorder.getNbErrors(), 1);
    std::unique_ptr<IBuilderConfig> config(builder->createBuilderConfig());
    config->setAvgTimingIterations(-1);
    EXPECT_EQ(recorder.getNbErrors(), 2);
    IOptimizationProfile* profile = builder->createOptimizationProfile();
    EXPECT_FALSE(profile->setExtraMemoryTarget(2));
    EXPECT_EQ(recorder.getNbErrors(), 3);
    config.reset();
    net.reset();
    builder.reset();
    EXPECT_EQ(recorder.references, 0) << "everyone gave the recorder back";
    EXPECT_EQ(getLogger(), nullptr);
}

TEST_F(Lifetime, BuildRefusesAnEmptyNetwork)
{
    std::unique_ptr<IBuilder> builder(createInferBuilder(logger));
    std::unique_ptr<INetworkDefinition> net(builder->createNetworkV2(1));
    std::unique_ptr<IBuilderConfig> config(builder->createBuilderConfig());
    EXPECT_EQ(builder->buildSerializedNetwork(*net, *config), nullptr);
    EXPECT_TRUE(contains(errors(), "markOutput")) << errors();
}

TEST_F(Lifetime, EngineOutlivesWhatMadeIt)
{
    std::unique_ptr<ICudaEngine> engine;
    {
        std::unique_ptr<IBuilder> builder(createInferBuilder(logger));
        std::unique_ptr<INetworkDefinition> net(network(*builder));
        std::unique_ptr<IBuilderConfig> config(builder->createBuilderConfig());
        std::unique_ptr<IHostMemory> plan(builder->buildSerializedNetwork(*net, *config));
        ASSERT_TRUE(plan) << errors();
        kernel.assign(9, 0.0F); // the weights are the caller's again
        IRuntime* runtime = createInferRuntime(logger);
        engine.reset(runtime->deserializeCudaEngine(plan->data(), plan->size()));
        ASSERT_TRUE(engine) << errors();
        plan.reset();
        runtime->destroy();
    }
    EXPECT_EQ(engine->getNbIOTensors(), 2);
    std::unique_ptr<IExecutionContext> first(engine->createExecutionContext()),
        second(engine->createExecutionContext());
    ASSERT_TRUE(first && second);
    std::thread other([&] { expectSums(*second); });
    expectSums(*first);
    other.join();
    IExecutionContext* third = engine->createExecutionContext();
    expectSums(*third);
    third->destroy();
    EXPECT_EQ(errors(), "");
}

TEST_F(Lifetime, TheSameNetworkAndCacheGiveTheSamePlan)
{
    std::unique_ptr<IBuilder> builder(createInferBuilder(logger));
    std::unique_ptr<INetworkDefinition> net(network(*builder));
    std::unique_ptr<IBuilderConfig> config(builder->createBuilderConfig());
    std::unique_ptr<ITimingCache> cache(config->createTimingCache(nullptr, 0));
    ASSERT_TRUE(config->setTimingCache(*cache, false)) << errors();
    std::unique_ptr<IHostMemory> first(builder->buildSerializedNetwork(*net, *config));
    ASSERT_TRUE(first) << errors();
    std::unique_ptr<IHostMemory> measured(cache->serialize());
    std::unique_ptr<IBuilder> again(createInferBuilder(logger));
    std::unique_ptr<IBuilderConfig> config2(again->createBuilderConfig());
    std::unique_ptr<ITimingCache> loaded(config2->createTimingCache(measured->data(), measured->size()));
    ASSERT_TRUE(loaded);
    EXPECT_TRUE(config2->setTimingCache(*loaded, false)) << "the same machine";
    std::unique_ptr<INetworkDefinition> net2(network(*again));
    std::unique_ptr<IHostMemory> second(again->buildSerializedNetwork(*net2, *config2));
    ASSERT_TRUE(second) << errors();
    ASSERT_EQ(first->size(), second->size());
    EXPECT_EQ(std::memcmp(first->data(), second->data(), first->size()), 0);
    std::unique_ptr<IHostMemory> after(loaded->serialize());
    EXPECT_EQ(after->size(), measured->size()) << "nothing new was measured";
}

TEST_F(Lifetime, PlansOfOthersAreRefused)
{
    std::unique_ptr<IRuntime> runtime(createInferRuntime(logger));
    char const bytes[64] = "no plan";
    EXPECT_EQ(runtime->deserializeCudaEngine(bytes, sizeof bytes), nullptr);
    EXPECT_EQ(runtime->deserializeCudaEngine(bytes, 0), nullptr);
    EXPECT_EQ(runtime->deserializeCudaEngine(nullptr, 64), nullptr);
    EXPECT_EQ(logger.errors(), 3);
}

} // namespace
