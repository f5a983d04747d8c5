// SPDX-License-Identifier: Apache-2.0
// Lifetime and threads: contexts of one engine side by side, builders side by side, what is deleted in which order.
#include <cmath>
#include <thread>

#include "engine/engines.h"

using namespace tw::test;

namespace {

void makeNetwork(Maker& m, std::vector<float>& weights)
{
    weights = ramp(9 * 2 * 2, -18);
    for (float& w : weights)
        w *= 0.02F;
    ITensor* x = m.input("x", {-1, 2, 6, 6});
    IConvolutionLayer* conv =
        m.network->addConvolutionNd(*x, 2, Dims2(3, 3), {DataType::kFLOAT, weights.data(), int64_t(weights.size())},
                                    {DataType::kFLOAT, nullptr, 0});
    ITensor* t = m.relu(conv->getOutput(0));
    m.output(m.network->addSoftMax(*t)->getOutput(0), "y");
    for (int i = 0; i < 4; ++i)
        m.profile({{"x", {1, 2, 6, 6}, {2, 2, 6, 6}, {3, 2, 6, 6}}});
}

std::vector<float> runBatch(IExecutionContext& c, int batch, float from)
{
    std::vector<float> x = ramp(size_t(batch) * 72, from), y(size_t(batch) * 32, -1);
    for (float& v : x)
        v = std::sin(v);
    EXPECT_TRUE(c.setInputShape("x", Dims4(batch, 2, 6, 6)));
    c.setTensorAddress("x", x.data());
    c.setTensorAddress("y", y.data());
    EXPECT_TRUE(c.enqueueV3(nullptr));
    return y;
}

TEST(Parallel, ContextsOfOneEngine)
{
    Maker m;
    std::vector<float> weights;
    makeNetwork(m, weights);
    std::unique_ptr<ICudaEngine> engine = m.engine();
    ASSERT_TRUE(engine) << m.errors();
    std::vector<Context> contexts;
    for (int i = 0; i < 4; ++i) {
        contexts.push_back(contextOf(*engine));
        ASSERT_TRUE(contexts.back()->setOptimizationProfileAsync(i, nullptr));
    }
    std::vector<std::vector<float>> expected;
    for (int batch = 1; batch <= 3; ++batch)
        expected.push_back(runBatch(*contexts[0], batch, float(batch)));
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([&, i] {
            for (int round = 0; round < 60; ++round) {
                int const batch = 1 + (round + i) % 3;
                EXPECT_EQ(runBatch(*contexts[size_t(i)], batch, float(batch)), expected[size_t(batch - 1)]);
            }
        });
    for (std::thread& t : threads)
        t.join();
    EXPECT_EQ(m.errors(), "");
}

TEST(Parallel, ContextsComeAndGo)
{
    Maker m;
    std::vector<float> weights;
    makeNetwork(m, weights);
    std::unique_ptr<ICudaEngine> engine = m.engine();
    ASSERT_TRUE(engine);
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([&, i] {
            for (int round = 0; round < 20; ++round) {
                Context c(engine->createExecutionContext());
                if (c->getOptimizationProfile() != i && !c->setOptimizationProfileAsync(i, nullptr))
                    continue; // another thread's first context took it for a moment
                runBatch(*c, 1, 1);
                std::unique_ptr<IEngineInspector> inspector(engine->createEngineInspector());
                EXPECT_TRUE(inspector->getEngineInformation(LayerInformationFormat::kJSON));
                std::unique_ptr<IHostMemory> bytes(engine->serialize());
                EXPECT_TRUE(bytes);
            }
        });
    for (std::thread& t : threads)
        t.join();
}

TEST(Parallel, BuildersAndRuntimes)
{
    std::vector<std::thread> threads;
    std::vector<std::vector<float>> results(3);
    for (size_t i = 0; i < results.size(); ++i)
        threads.emplace_back([&, i] {
            Maker m;
            std::vector<float> weights;
            makeNetwork(m, weights);
            std::unique_ptr<ICudaEngine> engine = m.engine();
            ASSERT_TRUE(engine) << m.errors();
            Context c = contextOf(*engine);
            results[i] = runBatch(*c, 2, 5);
        });
    for (std::thread& t : threads)
        t.join();
    for (auto const& r : results)
        for (size_t k = 0; k < r.size(); ++k)
            ASSERT_NEAR(r[k], results[0][k], 1e-6);
}

TEST(Lifetime, EveryOrderOfDeletion)
{
    std::vector<float> weights, expected;
    KeepingLogger logger;
    ICudaEngine* engine = nullptr;
    {
        auto m = std::make_unique<Maker>();
        makeNetwork(*m, weights);
        std::unique_ptr<IHostMemory> plan = m->plan();
        ASSERT_TRUE(plan) << m->errors();
        IRuntime* runtime = createInferRuntime(logger);
        std::string copy(static_cast<char const*>(plan->data()), plan->size());
        engine = runtime->deserializeCudaEngine(copy.data(), copy.size());
        copy.assign(copy.size(), '\xff'); // the blob is the client's again
        plan.reset();
        m.reset();
        weights.assign(weights.size(), -1.0F);
        delete runtime;
    }
    ASSERT_TRUE(engine);
    Context c(engine->createExecutionContext());
    expected = runBatch(*c, 2, 1);
    EXPECT_NE(expected[0], expected[31]);
    // 8.5 asks for contexts to go first; the other order must not crash.
    engine->destroy();
    EXPECT_EQ(runBatch(*c, 2, 1), expected);
    EXPECT_EQ(c->getTensorShape("y").d[0], 2);
    c.release()->destroy();
    int errors = logger.errors();
    EXPECT_EQ(errors, 0);
}

TEST(Lifetime, InspectorAndContextsOutliveTheEngine)
{
    Maker m;
    std::vector<float> weights;
    makeNetwork(m, weights);
    std::unique_ptr<ICudaEngine> engine = m.engine();
    ASSERT_TRUE(engine);
    Context c = contextOf(*engine);
    EXPECT_EQ(&c->getEngine(), engine.get());
    c->setName("worker");
    EXPECT_STREQ(c->getName(), "worker");
    c->setName(nullptr);
    EXPECT_TRUE(m.oneError("null"));
    EXPECT_STREQ(c->getName(), "worker");
    std::unique_ptr<IEngineInspector> inspector(engine->createEngineInspector());
    EXPECT_TRUE(inspector->setExecutionContext(c.get()));
    engine.reset();
    EXPECT_TRUE(inspector->getEngineInformation(LayerInformationFormat::kJSON));
    inspector.reset();
    runBatch(*c, 1, 1);
}

TEST(LargeNetworks, ThreeThousandLayers)
{
    constexpr int kLayers = 3000;
    Maker m;
    ITensor* x = m.input("x", {1, 4});
    ITensor* t = x;
    for (int i = 0; i < kLayers; ++i) {
        IElementWiseLayer* layer = m.network->addElementWise(*t, *x, ElementWiseOperation::kMAX);
        ASSERT_TRUE(layer);
        layer->setName(("layer " + std::to_string(i)).c_str());
        t = layer->getOutput(0);
        ASSERT_EQ(t->getDimensions().nbDims, 2); // asked after every layer, as parsers do
    }
    m.output(t, "y");
    ASSERT_EQ(m.network->getNbLayers(), kLayers);
    std::unique_ptr<ICudaEngine> engine = m.engine();
    ASSERT_TRUE(engine) << m.errors();
    Context c = contextOf(*engine);
    std::vector<float> in = ramp(4, -2), out(4, -9);
    void* bindings[] = {in.data(), out.data()};
    ASSERT_TRUE(c->executeV2(bindings));
    EXPECT_EQ(out, in);
}

} // namespace
