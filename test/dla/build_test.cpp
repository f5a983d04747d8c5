// SPDX-License-Identifier: Apache-2.0
// Builds with a DLA: who runs where, what the log says, pools, and what a plan asks of the machine that loads it.
#include "dla/dla_maker.h"

using namespace tw::test;

namespace {

// A chain of `count` layers, relus but where `isOut` says so.
ITensor* chain(DlaMaker& m, int count, std::function<bool(int)> const& isOut)
{
    ITensor* x = m.input("x", {1, 4, 6, 6});
    for (int i = 0; i < count; ++i) {
        ILayer* l = isOut(i) ? static_cast<ILayer*>(m.network->addUnary(*x, UnaryOperation::kEXP))
                             : m.network->addActivation(*x, ActivationType::kRELU);
        l->setName(("layer" + std::to_string(i)).c_str());
        x = l->getOutput(0);
    }
    m.output(x, "y");
    return x;
}

TEST(DlaBuild, CutInThree)
{
    DlaMaker m;
    chain(m, 8, [](int i) { return i == 2 || i == 5; });
    EXPECT_FALSE(m.plan());
    EXPECT_EQ(m.logger.errors(), 3); // one for each layer, and the sum
    std::string const all = m.takeErrors();
    for (char const* part : {"layer 'layer2' (Unary) cannot run on DLA (not supported on DLA)", "layer 'layer5'",
                             "kGPU_FALLBACK is not set", "2 of 8 layers for DLA cannot run there"})
        EXPECT_TRUE(contains(all, part)) << all;
    m.config->setFlag(BuilderFlag::kGPU_FALLBACK);
    auto const engine = m.engine();
    ASSERT_NE(engine, nullptr) << m.errors();
    EXPECT_TRUE(contains(m.linesWith("candidates"), "3 of 3 subgraph candidates")) << m.linesWith("candidates");
    EXPECT_TRUE(contains(m.linesWith("candidates"), "model, not the device"));
    EXPECT_EQ(m.linesWith("[DlaLayer]"), "[DlaLayer] {ForeignNode[layer0...layer1]}\n"
                                         "[DlaLayer] {ForeignNode[layer3...layer4]}\n"
                                         "[DlaLayer] {ForeignNode[layer6...layer7]}\n");
    EXPECT_EQ(m.linesWith("[GpuLayer]"), "[GpuLayer] Unary: layer2\n[GpuLayer] Unary: layer5\n");
    EXPECT_TRUE(contains(m.linesWith("it runs on the GPU device"), "layer 'layer5'"));
    std::vector<float> x(144), y(144);
    std::ranges::generate(x, [i = 0]() mutable { return float(i++ % 7) * 0.2F - 0.5F; });
    Context const context = contextOf(*engine);
    context->setTensorAddress("x", x.data());
    context->setTensorAddress("y", y.data());
    ASSERT_TRUE(context->enqueueV3(nullptr)) << m.errors();
    for (size_t i = 0; i < x.size(); ++i) {
        float want = std::exp(std::exp(std::max(x[i], 0.F)));
        EXPECT_NEAR(y[i], want, 0.01F * want) << i;
    }
    std::unique_ptr<IEngineInspector> inspector(engine->createEngineInspector());
    std::string const json = inspector->getEngineInformation(LayerInformationFormat::kJSON);
    EXPECT_TRUE(contains(json, "layer2")) << json;
    m.config->setProfilingVerbosity(ProfilingVerbosity::kDETAILED);
    auto const detailed = m.engine();
    ASSERT_NE(detailed, nullptr);
    inspector.reset(detailed->createEngineInspector());
    std::string const records = inspector->getEngineInformation(LayerInformationFormat::kJSON);
    EXPECT_TRUE(contains(records, "DLA core 0 of orin (model, not the device)")) << records;
}

TEST(DlaBuild, DevicesOfSingleLayers)
{
    DlaMaker m;
    chain(m, 6, [](int) { return false; });
    m.config->setFlag(BuilderFlag::kGPU_FALLBACK);
    m.config->setDeviceType(m.network->getLayer(3), DeviceType::kGPU);
    ASSERT_TRUE(m.plan()) << m.errors();
    EXPECT_EQ(m.linesWith("[DlaLayer]"), "[DlaLayer] {ForeignNode[layer0...layer2]}\n"
                                         "[DlaLayer] {ForeignNode[layer4...layer5]}\n");
    m.logger.lines.clear();
    m.config->setDefaultDeviceType(DeviceType::kGPU);
    m.config->setDeviceType(m.network->getLayer(1), DeviceType::kDLA);
    ASSERT_TRUE(m.plan()) << m.errors();
    EXPECT_EQ(m.linesWith("[DlaLayer]"), "[DlaLayer] {ForeignNode[layer1]}\n");
    m.logger.lines.clear();
    m.config->resetDeviceType(m.network->getLayer(1));
    ASSERT_TRUE(m.plan()) << m.errors();
    EXPECT_EQ(m.linesWith("DLA"), "");
}

TEST(DlaBuild, WithoutAModel)
{
    DlaMaker m(nullptr);
    chain(m, 3, [](int) { return false; });
    EXPECT_FALSE(m.plan());
    EXPECT_EQ(m.logger.errors(), 4);
    EXPECT_TRUE(contains(m.takeErrors(), "no DLA on this platform")) << m.errors();
    m.config->setFlag(BuilderFlag::kGPU_FALLBACK);
    EXPECT_TRUE(m.engine()) << m.errors();
    EXPECT_TRUE(contains(m.linesWith("0 cores"), "3 layers run on the GPU device"));
    m.config->clearFlag(BuilderFlag::kGPU_FALLBACK);
    m.config->setFlag(BuilderFlag::kDIRECT_IO);
    m.config->setEngineCapability(EngineCapability::kDLA_STANDALONE);
    m.takeErrors();
    EXPECT_FALSE(m.plan());
    EXPECT_TRUE(m.oneError("no DLA on this platform (0 cores)"));
}

// The 17th subgraph is one too many for a core.
TEST(DlaBuild, SixteenLoadables)
{
    for (int cuts : {15, 16}) {
        DlaMaker m;
        m.config->setFlag(BuilderFlag::kGPU_FALLBACK);
        // Two layers each, the last one alone.
        chain(m, cuts * 3 + 1, [](int i) { return i % 3 == 2; });
        ASSERT_TRUE(m.plan()) << m.errors();
        std::string const line = m.linesWith("candidates");
        EXPECT_TRUE(contains(line, cuts == 15 ? "16 of 16" : "16 of 17")) << line;
        std::string const more = m.linesWith("16 loadables a core");
        EXPECT_EQ(more.empty(), cuts == 15) << more;
        if (cuts == 16) {
            EXPECT_TRUE(contains(more, "layer 'layer48'") && contains(more, "the combination of layers")) << more;
        }
    }
}

TEST(DlaBuild, Pools)
{
    DlaMaker m;
    m.config->setFlag(BuilderFlag::kGPU_FALLBACK);
    ITensor* x = m.input("x", {1, 64, 32, 32});
    auto* c = m.convolution(x, 64, {3, 3});
    c->setPaddingNd(DimsHW(1, 1));
    m.output(m.relu(c->getOutput(0)), "y");
    ASSERT_TRUE(m.plan()) << m.errors();
    // Weights: 64 * 64 * 9 + 64 of 2 bytes, by pages; between the two layers: 64 * 32 * 32 of 2 bytes.
    EXPECT_TRUE(
        contains(m.linesWith("Memory of all"), "managed SRAM 0.125 MiB, local DRAM 0.125 MiB, global DRAM 0.07422 MiB"))
        << m.linesWith("Memory of all");
    using enum MemoryPoolType;
    for (auto const& [pool, need, name] : {std::tuple(kDLA_LOCAL_DRAM, size_t(128) << 10, "kDLA_LOCAL_DRAM"),
                                           {kDLA_GLOBAL_DRAM, size_t(128) << 10, "kDLA_GLOBAL_DRAM"}}) {
        m.logger.lines.clear();
        m.config->setMemoryPoolLimit(pool, need);
        ASSERT_TRUE(m.plan()) << m.errors();
        EXPECT_TRUE(contains(m.linesWith("candidates"), "1 of 1")) << name;
        m.config->setMemoryPoolLimit(pool, need / 2);
        m.logger.lines.clear();
        ASSERT_TRUE(m.plan()) << m.errors();
        EXPECT_TRUE(contains(m.linesWith("candidates"), "0 of 1")) << name;
        EXPECT_TRUE(contains(m.linesWith(name), "0.0625 MiB")) << m.linesWith(name);
        m.config->setMemoryPoolLimit(pool, size_t(1) << 30);
    }
    // The managed SRAM is a cache: less is slower, no error.
    m.config->setMemoryPoolLimit(kDLA_MANAGED_SRAM, 4096);
    m.logger.lines.clear();
    ASSERT_TRUE(m.plan());
    EXPECT_TRUE(contains(m.linesWith("Memory of all"), "managed SRAM 0.003906 MiB")) << m.linesWith("Memory of all");
    for (auto pool : {kDLA_MANAGED_SRAM, kDLA_LOCAL_DRAM, kDLA_GLOBAL_DRAM})
        for (size_t bad : {size_t(0), size_t(2048), size_t(4095), size_t(4097), size_t(3) << 20}) {
            size_t const before = m.config->getMemoryPoolLimit(pool);
            m.config->setMemoryPoolLimit(pool, bad);
            EXPECT_EQ(m.config->getMemoryPoolLimit(pool), bad);
            m.takeErrors();
            EXPECT_FALSE(m.plan()) << bad;
            EXPECT_TRUE(m.oneError("powers of two of at least 4096 bytes")) << bad;
            m.config->setMemoryPoolLimit(pool, before);
        }
}

// On Orin weights of other layers than convolutions take 4 bytes and whole vectors of channels.
TEST(DlaBuild, WeightsOfOrin)
{
    for (char const* model : {"orin", "xavier"}) {
        DlaMaker m(model);
        m.config->setFlag(BuilderFlag::kGPU_FALLBACK);
        ITensor* x = m.input("x", {1, 17, 64, 64});
        int64_t const count = 17 * 64 * 64;
        m.output(m.network->addScale(*x, ScaleMode::kELEMENTWISE, m.weights(count), m.weights(0), m.weights(0))
                     ->getOutput(0),
                 "y");
        ASSERT_TRUE(m.plan()) << m.errors();
        EXPECT_TRUE(contains(m.linesWith("Memory of all"),
                             std::string(model) == "orin" ? "global DRAM 0.5 MiB" : "global DRAM 0.1328 MiB"))
            << model << m.linesWith("Memory of all");
    }
}

TEST(DlaBuild, PlansAskForTheirModel)
{
    DlaMaker m;
    m.config->setFlag(BuilderFlag::kGPU_FALLBACK);
    chain(m, 2, [](int) { return false; });
    auto const plan = m.plan();
    ASSERT_TRUE(plan) << m.errors();
    for (char const* model : {static_cast<char const*>(nullptr), "xavier"}) {
        DlaModel const here(model);
        KeepingLogger logger;
        std::unique_ptr<IRuntime> const runtime(createInferRuntime(logger));
        EXPECT_EQ(runtime->deserializeCudaEngine(plan->data(), plan->size()), nullptr);
        EXPECT_TRUE(contains(logger.lastError(), "set TENSORWRIGHT_DLA_MODEL=orin")) << logger.lastError();
    }
    DlaModel const here("orin");
    KeepingLogger logger;
    std::unique_ptr<IRuntime> const runtime(createInferRuntime(logger));
    std::unique_ptr<ICudaEngine> const engine(runtime->deserializeCudaEngine(plan->data(), plan->size()));
    ASSERT_NE(engine, nullptr) << logger.lastError();
    std::unique_ptr<IHostMemory> const again(engine->serialize());
    EXPECT_EQ(std::string(static_cast<char const*>(again->data()), again->size()),
              std::string(static_cast<char const*>(plan->data()), plan->size()));
}

TEST(DlaBuild, SupportedNetworks)
{
    DlaMaker m;
    chain(m, 3, [](int i) { return i == 1; });
    EXPECT_FALSE(m.builder->isNetworkSupported(*m.network, *m.config));
    EXPECT_TRUE(contains(m.takeErrors(), "layer 'layer1'"));
    m.config->setFlag(BuilderFlag::kGPU_FALLBACK);
    EXPECT_TRUE(m.builder->isNetworkSupported(*m.network, *m.config)) << m.errors();
}

TEST(DlaBuild, WildcardsWithOneShape)
{
    DlaMaker m;
    m.config->setFlag(BuilderFlag::kGPU_FALLBACK);
    ITensor* x = m.input("x", {-1, 4, 6, 6});
    m.output(m.relu(m.relu(x)), "y");
    m.profile({{"x", {3, 4, 6, 6}, {3, 4, 6, 6}, {3, 4, 6, 6}}});
    auto const engine = m.engine();
    ASSERT_NE(engine, nullptr) << m.errors();
    EXPECT_TRUE(contains(m.linesWith("candidates"), "1 of 1"));
    Context const context = contextOf(*engine);
    EXPECT_FALSE(context->setInputShape("x", dims({2, 4, 6, 6})));
    EXPECT_EQ(list(context->getTensorShape("y")), (Shape{3, 4, 6, 6}));
}

TEST(DlaBuild, ImplicitBatch)
{
    DlaMaker m("orin", 0);
    m.builder->setMaxBatchSize(3);
    m.config->setFlag(BuilderFlag::kGPU_FALLBACK);
    m.output(m.relu(m.input("x", {2, 3, 4})), "y");
    auto const engine = m.engine();
    ASSERT_NE(engine, nullptr) << m.errors();
    EXPECT_TRUE(contains(m.linesWith("candidates"), "1 of 1"));
    Context const context = contextOf(*engine);
    std::vector<float> x = ramp(72, -36), y(72, 7);
    void* bindings[] = {x.data(), y.data()};
    for (int batch : {1, 2}) {
        EXPECT_FALSE(context->execute(batch, bindings));
        EXPECT_TRUE(m.oneError("runs the batch of the build alone, 3"));
    }
    ASSERT_TRUE(context->execute(3, bindings)) << m.errors();
    for (size_t i = 0; i < x.size(); ++i)
        EXPECT_EQ(y[i], std::max(x[i], 0.F)) << i;
    // The batch of the builder counts.
    DlaMaker large("orin", 0);
    large.builder->setMaxBatchSize(4097);
    large.output(large.relu(large.input("x", {2, 3, 4})), "y");
    EXPECT_FALSE(large.plan());
    EXPECT_TRUE(contains(large.errors(), "batch 4097")) << large.errors();
}

// Layers of loops stay where they are, whatever is asked for.
TEST(DlaBuild, Loops)
{
    DlaMaker m;
    m.config->setFlag(BuilderFlag::kGPU_FALLBACK);
    ITensor* x = m.input("x", {1, 4, 6, 6});
    static int32_t const trips = 3;
    ILoop* loop = m.network->addLoop();
    loop->addTripLimit(*m.network->addConstant(Dims{0, {}}, {DataType::kINT32, &trips, 1})->getOutput(0),
                       TripLimit::kCOUNT);
    IRecurrenceLayer* r = loop->addRecurrence(*x);
    ITensor* next = m.add(m.relu(r->getOutput(0)), r->getOutput(0));
    r->setInput(1, *next);
    ILoopOutputLayer* out = loop->addLoopOutput(*r->getOutput(0), LoopOutput::kLAST_VALUE);
    m.output(m.relu(out->getOutput(0)), "y");
    EXPECT_TRUE(m.engine()) << m.errors();
    EXPECT_TRUE(contains(m.linesWith("loops or conditionals"), "the combination of layers"));
}

} // namespace
