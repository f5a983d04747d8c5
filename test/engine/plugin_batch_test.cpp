// SPDX-License-Identifier: Apache-2.0
// Plugins without expressions see no batch: implicit and explicit, tensors that are one for the whole batch. Handles of
// libraries.
#include "engine/plugins.h"

namespace tw::test {

namespace {

// ---- batches

template <class Plugin>
struct BatchPlugins : testing::Test
{};
using WithoutDynamic = testing::Types<V2Plugin, ExtPlugin, IOExtPlugin>;
TYPED_TEST_SUITE(BatchPlugins, WithoutDynamic);

TYPED_TEST(BatchPlugins, ImplicitBatch)
{
    Behaviour b;
    OnePlugin<TypeParam> m(b, {3}, 0);
    ASSERT_TRUE(m.layer) << m.errors();
    EXPECT_EQ(list(m.layer->getOutput(0)->getDimensions()), (std::vector<int32_t>{3}));
    m.builder->setMaxBatchSize(4);
    RecordedCreator<TypeParam> creator(b);
    auto engine = m.engine();
    ASSERT_TRUE(engine) << m.errors();
    Context const c = contextOf(*engine);
    for (int32_t batch : {1, 4, 2}) {
        std::vector<float> x = ramp(12), y(12, -1);
        void* bindings[] = {x.data(), y.data()};
        ASSERT_TRUE(c->enqueue(batch, bindings, nullptr, nullptr)) << m.errors();
        for (int i = 0; i < 12; ++i)
            EXPECT_EQ(y[size_t(i)], i < 3 * batch ? float(6 * i) : -1);
    }
}

TYPED_TEST(BatchPlugins, TheFirstDimensionMayVary)
{
    Behaviour b;
    OnePlugin<TypeParam> m(b, {-1, 3});
    ASSERT_TRUE(m.layer) << m.errors();
    m.profile({{"x", {1, 3}, {2, 3}, {5, 3}}});
    RecordedCreator<TypeParam> creator(b);
    auto engine = m.engine();
    ASSERT_TRUE(engine) << m.errors();
    Context const c = contextOf(*engine);
    std::vector<float> x = ramp(15), y(15);
    ASSERT_TRUE(c->setInputShape("x", dims({5, 3})));
    ASSERT_TRUE(run(*c, x, y)) << m.errors();
    EXPECT_EQ(y[14], 84);
}

TEST(PluginBatch, DynamicNeedsAnExplicitBatch)
{
    Behaviour b;
    OnePlugin<DynamicPlugin> m(b, {3}, 0);
    EXPECT_FALSE(m.layer);
    EXPECT_TRUE(m.oneError("needs an explicit batch network"));
}

TEST(PluginBatch, InputsForTheWholeBatchAreRepeatedUnlessThePluginReadsOne)
{
    for (bool const readsOne : {false, true}) {
        Behaviour b;
        if (readsOne)
            b.broadcastInputs = {1};
        b.run = [&](std::vector<Dims> const& d, void const* const* in, void* const* out, void*, cudaStream_t) {
            auto const *x = static_cast<float const*>(in[0]), *c = static_cast<float const*>(in[1]);
            for (int i = 0; i < 2 * d[0].d[0]; ++i)
                static_cast<float*>(out[0])[i] = x[i] * c[readsOne ? i % 2 : i];
            return 0;
        };
        Maker m(0);
        float const values[] = {10, 100};
        ITensor* x[] = {m.input("x", {2}),
                        m.network->addConstant(dims({2}), Weights{DataType::kFLOAT, values, 2})->getOutput(0)};
        ExtPlugin plugin(b, 1);
        m.output(m.network->addPluginV2(x, 2, plugin)->getOutput(0), "y");
        m.builder->setMaxBatchSize(3);
        RecordedCreator<ExtPlugin> creator(b);
        auto engine = m.engine();
        ASSERT_TRUE(engine) << m.errors();
        Context const c = contextOf(*engine);
        std::vector<float> in = ramp(6, 1), out(6);
        void* bindings[] = {in.data(), out.data()};
        ASSERT_TRUE(c->enqueue(3, bindings, nullptr, nullptr)) << m.errors();
        EXPECT_EQ(out, (std::vector<float>{10, 200, 30, 400, 50, 600})) << readsOne;
    }
}

TEST(PluginBatch, AnOutputMayBeOneForTheWholeBatch)
{
    Behaviour b;
    b.broadcastInputs = {0};
    b.isOutputBroadcast = true;
    std::vector<int32_t> batches;
    b.run = [&](std::vector<Dims> const& d, void const* const* in, void* const* out, void*, cudaStream_t) {
        batches.push_back(d[0].d[0]);
        std::memcpy(out[0], in[0], 2 * sizeof(float));
        return 0;
    };
    Maker m(0);
    float const values[] = {10, 100};
    ITensor* c = m.network->addConstant(dims({2}), Weights{DataType::kFLOAT, values, 2})->getOutput(0);
    ITensor* x = m.input("x", {2});
    IOExtPlugin plugin(b, 1);
    ITensor* one = m.network->addPluginV2(&c, 1, plugin)->getOutput(0);
    m.output(m.add(x, one), "y");
    m.builder->setMaxBatchSize(3);
    std::unique_ptr<ICudaEngine> engine(m.builder->buildEngineWithConfig(*m.network, *m.config));
    ASSERT_TRUE(engine) << m.errors();
    Context const context = contextOf(*engine);
    std::vector<float> in = ramp(6), out(6);
    void* bindings[] = {in.data(), out.data()};
    batches.clear();
    ASSERT_TRUE(context->enqueue(3, bindings, nullptr, nullptr)) << m.errors();
    EXPECT_EQ(out, (std::vector<float>{10, 101, 12, 103, 14, 105}));
    EXPECT_EQ(batches, std::vector<int32_t>{1});
}

// ---- handles of libraries

TEST(PluginHandles, AreNullOnTheCpuWithOneWarning)
{
    for (bool const isWanted : {true, false}) {
        Behaviour b;
        OnePlugin<DynamicPlugin> m(b);
        if (!isWanted)
            m.config->setTacticSources(0);
        RecordedCreator<DynamicPlugin> creator(b);
        auto engine = m.engine();
        ASSERT_TRUE(engine) << m.errors();
        m.logger.lines.clear();
        Context const a = contextOf(*engine), c = contextOf(*engine);
        EXPECT_EQ(m.logger.warnings(), isWanted ? 1 : 0);
        if (isWanted) {
            EXPECT_TRUE(contains(m.logger.lines.at(0).text, "cuDNN and cuBLAS"));
        }
    }
}

} // namespace

} // namespace tw::test
