// SPDX-License-Identifier: Apache-2.0
// Who hears of what: profilers, error recorders, loggers, the inspector, the process environment.
#include <cstdlib>
#include <map>

#include <nlohmann/json.hpp>

#include "engine/engines.h"

using namespace tw::test;
using Json = nlohmann::json;

namespace {

// y = softmax(relu(x) + x), x: [-1,8].
struct Reports : testing::Test
{
    Maker m;
    std::unique_ptr<ICudaEngine> engine;
    void build(ProfilingVerbosity verbosity)
    {
        ITensor* x = m.input("x", {-1, 8});
        IActivationLayer* relu = m.network->addActivation(*x, ActivationType::kRELU);
        relu->setName("my_relu");
        m.output(m.network->addSoftMax(*m.add(relu->getOutput(0), x))->getOutput(0), "y");
        m.profile({{"x", {1, 8}, {2, 8}, {4, 8}}});
        m.config->setProfilingVerbosity(verbosity);
        engine = m.engine();
        ASSERT_TRUE(engine) << m.errors();
    }
    std::vector<float> x = ramp(32, -16), y = std::vector<float>(32);
    Context ready()
    {
        Context c = contextOf(*engine);
        EXPECT_TRUE(c->setInputShape("x", Dims2(2, 8)));
        c->setTensorAddress("x", x.data());
        c->setTensorAddress("y", y.data());
        return c;
    }
};

struct Profiler final : IProfiler
{
    std::map<std::string, int> layers;
    void reportLayerTime(char const* name, float ms) noexcept override
    {
        ++layers[name];
        EXPECT_GE(ms, 0);
    }
};

TEST_F(Reports, ProfilerHearsEachLayerOnce)
{
    build(ProfilingVerbosity::kLAYER_NAMES_ONLY);
    Profiler p;
    Context c = ready();
    EXPECT_EQ(c->getProfiler(), nullptr);
    EXPECT_FALSE(c->reportToProfiler()) << "there is none";
    c->setProfiler(&p);
    EXPECT_EQ(c->getProfiler(), &p);
    EXPECT_TRUE(c->getEnqueueEmitsProfile());
    EXPECT_FALSE(c->reportToProfiler()) << "nothing has run";
    ASSERT_TRUE(c->enqueueV3(nullptr));
    EXPECT_EQ(int(p.layers.size()), engine->getNbLayers());
    EXPECT_TRUE(c->reportToProfiler()) << "which has nothing to add";
    for (auto const& [name, count] : p.layers)
        EXPECT_EQ(count, 1) << name;
    void* bindings[] = {x.data(), y.data()};
    ASSERT_TRUE(c->executeV2(bindings));
    for (auto const& [name, count] : p.layers)
        EXPECT_EQ(count, 2) << name;
    p.layers.clear();
    c->setEnqueueEmitsProfile(false);
    EXPECT_FALSE(c->getEnqueueEmitsProfile());
    ASSERT_TRUE(c->enqueueV3(nullptr));
    EXPECT_TRUE(p.layers.empty());
    EXPECT_TRUE(c->reportToProfiler());
    EXPECT_EQ(int(p.layers.size()), engine->getNbLayers());
    c->setProfiler(nullptr);
    p.layers.clear();
    ASSERT_TRUE(c->enqueueV3(nullptr));
    EXPECT_TRUE(p.layers.empty());
    EXPECT_FALSE(c->reportToProfiler());
    EXPECT_EQ(m.errors(), "");
}

TEST_F(Reports, RecordersAreInheritedAndSetPerObject)
{
    build(ProfilingVerbosity::kLAYER_NAMES_ONLY);
    std::unique_ptr<IHostMemory> const plan(engine->serialize());
    CountingRecorder a, b;
    {
        std::unique_ptr<IRuntime> runtime(createInferRuntime(m.logger));
        runtime->setErrorRecorder(&a);
        EXPECT_EQ(a.references, 1);
        EXPECT_EQ(runtime->deserializeCudaEngine("no", 2), nullptr);
        EXPECT_EQ(a.getNbErrors(), 1);
        std::unique_ptr<ICudaEngine> e(runtime->deserializeCudaEngine(plan->data(), plan->size()));
        EXPECT_EQ(e->getErrorRecorder(), &a);
        Context c = contextOf(*e);
        EXPECT_EQ(c->getErrorRecorder(), &a);
        EXPECT_FALSE(c->setTensorAddress("nobody", nullptr));
        EXPECT_EQ(a.getNbErrors(), 2);
        EXPECT_EQ(a.getErrorCode(1), ErrorCode::kINVALID_ARGUMENT);
        EXPECT_TRUE(contains(a.getErrorDesc(1), "nobody"));
        c->setErrorRecorder(&b);
        EXPECT_EQ(b.references, 1);
        EXPECT_EQ(c->getErrorRecorder(), &b);
        EXPECT_FALSE(c->setTensorAddress("nobody", nullptr));
        EXPECT_EQ(a.getNbErrors(), 2);
        EXPECT_EQ(b.getNbErrors(), 1);
        std::unique_ptr<IEngineInspector> inspector(e->createEngineInspector());
        EXPECT_EQ(inspector->getErrorRecorder(), &a);
        EXPECT_EQ(inspector->getLayerInformation(-1, LayerInformationFormat::kJSON), nullptr);
        EXPECT_EQ(a.getNbErrors(), 3);
        int const all = a.references;
        e->setErrorRecorder(nullptr);
        EXPECT_EQ(e->getErrorRecorder(), nullptr);
        EXPECT_EQ(a.references, all - 1);
        int const lines = m.logger.errors();
        EXPECT_EQ(e->getTensorShape("nobody").nbDims, -1);
        EXPECT_EQ(m.logger.errors(), lines + 1) << "the logger hears it all the same";
        EXPECT_EQ(a.getNbErrors(), 3);
    }
    EXPECT_EQ(a.references, 0);
    EXPECT_EQ(b.references, 0);
}

TEST_F(Reports, InspectorNamesOnly)
{
    build(ProfilingVerbosity::kLAYER_NAMES_ONLY);
    std::unique_ptr<IEngineInspector> i(engine->createEngineInspector());
    std::string all;
    for (int k = 0; k < engine->getNbLayers(); ++k) {
        char const* text = i->getLayerInformation(k, LayerInformationFormat::kJSON);
        ASSERT_TRUE(text);
        Json const j = Json::parse(text);
        ASSERT_TRUE(j.is_string());
        all += j.get<std::string>();
        EXPECT_EQ(i->getLayerInformation(k, LayerInformationFormat::kONELINE), j.get<std::string>() + "\n");
    }
    EXPECT_TRUE(contains(all, "my_relu")) << all;
    Json const e = Json::parse(i->getEngineInformation(LayerInformationFormat::kJSON));
    EXPECT_EQ(int(e["Layers"].size()), engine->getNbLayers());
    EXPECT_EQ(e["Bindings"].size(), 2U);
    EXPECT_TRUE(contains(i->getEngineInformation(LayerInformationFormat::kONELINE), "my_relu"));
    EXPECT_EQ(i->getLayerInformation(engine->getNbLayers(), LayerInformationFormat::kJSON), nullptr);
    EXPECT_TRUE(m.oneError("out of range"));
    EXPECT_EQ(i->getLayerInformation(0, static_cast<LayerInformationFormat>(2)), nullptr);
    EXPECT_TRUE(m.oneError("format"));
    EXPECT_EQ(i->getEngineInformation(static_cast<LayerInformationFormat>(-1)), nullptr);
    EXPECT_TRUE(m.oneError("format"));
}

TEST_F(Reports, InspectorNone)
{
    build(ProfilingVerbosity::kNONE);
    std::unique_ptr<IEngineInspector> i(engine->createEngineInspector());
    EXPECT_STREQ(i->getLayerInformation(0, LayerInformationFormat::kONELINE), "");
    EXPECT_STREQ(i->getEngineInformation(LayerInformationFormat::kONELINE), "");
    EXPECT_TRUE(Json::parse(i->getEngineInformation(LayerInformationFormat::kJSON)).empty());
    EXPECT_TRUE(Json::parse(i->getLayerInformation(0, LayerInformationFormat::kJSON)).empty());
    EXPECT_EQ(m.errors(), "");
    Context c = ready();
    EXPECT_TRUE(c->setNvtxVerbosity(ProfilingVerbosity::kNONE));
    EXPECT_FALSE(c->setNvtxVerbosity(ProfilingVerbosity::kDETAILED));
    EXPECT_TRUE(m.oneError("verbosity"));
}

TEST_F(Reports, InspectorDetailed)
{
    build(ProfilingVerbosity::kDETAILED);
    std::unique_ptr<IEngineInspector> i(engine->createEngineInspector());
    auto firstInput = [&] {
        return Json::parse(i->getLayerInformation(0, LayerInformationFormat::kJSON))["Inputs"][0];
    };
    Json const before = firstInput();
    EXPECT_EQ(before["Name"], "x");
    EXPECT_EQ(before["Dimensions"], (Json::array({-1, 8})));
    EXPECT_EQ(before["Format/Datatype"], "N/A due to dynamic shapes");
    Context c = contextOf(*engine);
    EXPECT_TRUE(i->setExecutionContext(c.get()));
    EXPECT_EQ(i->getExecutionContext(), c.get());
    EXPECT_EQ(firstInput()["Dimensions"], (Json::array({-1, 8}))) << "its shapes are not set";
    ASSERT_TRUE(c->setInputShape("x", Dims2(3, 8)));
    Json const after = firstInput();
    EXPECT_EQ(after["Dimensions"], (Json::array({3, 8})));
    EXPECT_EQ(after["Format/Datatype"], "Row major linear FP32");
    for (int k = 0; k < engine->getNbLayers(); ++k) {
        Json const j = Json::parse(i->getLayerInformation(k, LayerInformationFormat::kJSON));
        for (char const* key : {"Name", "LayerType", "Inputs", "Outputs", "ParameterType", "TacticName"})
            EXPECT_TRUE(j.contains(key)) << key;
        EXPECT_TRUE(contains(i->getLayerInformation(k, LayerInformationFormat::kONELINE), "Outputs: ["));
    }
    EXPECT_TRUE(i->setExecutionContext(nullptr));
    EXPECT_EQ(firstInput()["Dimensions"], (Json::array({-1, 8})));
    EXPECT_EQ(m.errors(), "");
    std::unique_ptr<ICudaEngine> other = m.engine();
    Context stranger = contextOf(*other);
    EXPECT_FALSE(i->setExecutionContext(stranger.get()));
    EXPECT_TRUE(m.oneError("another engine"));
}

TEST_F(Reports, LogLines)
{
    build(ProfilingVerbosity::kLAYER_NAMES_ONLY);
    EXPECT_EQ(m.logger.errors(), 0);
    EXPECT_EQ(m.logger.warnings(), 0);
    EXPECT_GT(m.logger.count(ILogger::Severity::kINFO), 0) << "a build says what it did";
    Context c = ready();
    int const builds = int(m.logger.lines.size());
    ASSERT_TRUE(c->enqueueV3(nullptr));
    EXPECT_EQ(int(m.logger.lines.size()), builds) << "a run says nothing";
}

TEST(Environment, Device)
{
    KeepingLogger logger;
    for (char const* good : {"cpu", ""}) {
        Variable v("TENSORWRIGHT_DEVICE", good);
        EXPECT_TRUE(std::unique_ptr<IRuntime>(createInferRuntime(logger)));
        EXPECT_TRUE(std::unique_ptr<IBuilder>(createInferBuilder(logger)));
        EXPECT_EQ(logger.errors(), 0);
    }
    for (char const* gpu : {"cuda", "cuda:0", "cuda:17"}) {
        Variable v("TENSORWRIGHT_DEVICE", gpu);
        EXPECT_EQ(createInferRuntime(logger), nullptr);
        EXPECT_EQ(createInferBuilder(logger), nullptr);
        ASSERT_EQ(logger.errors(), 2) << "one each";
        EXPECT_TRUE(contains(logger.lastError(), "lib/hostcuda/libcudart")); // this process uses it
        logger.lines.clear();
    }
    for (char const* bad : {"gpu", "cuda:", "cuda:x", "CPU", "cuda0"}) {
        Variable v("TENSORWRIGHT_DEVICE", bad);
        EXPECT_EQ(createInferRuntime(logger), nullptr);
        ASSERT_EQ(logger.errors(), 1);
        EXPECT_TRUE(contains(logger.lastError(), "allowed: cpu, cuda, cuda:N"));
        logger.lines.clear();
    }
}

TEST(Environment, StrictPlans)
{
    Maker m;
    m.output(m.relu(m.input("x", {2, 3})), "y");
    std::unique_ptr<IHostMemory> const plan = m.plan();
    ASSERT_TRUE(plan);
    {
        Variable v("TENSORWRIGHT_STRICT_PLAN", "1"); // what a plan of another version meets is shown in test/plan
        std::unique_ptr<IRuntime> runtime(createInferRuntime(m.logger));
        ASSERT_TRUE(runtime);
        EXPECT_TRUE(std::unique_ptr<ICudaEngine>(runtime->deserializeCudaEngine(plan->data(), plan->size())));
        EXPECT_EQ(m.errors(), "");
    }
    Variable wrong("TENSORWRIGHT_STRICT_PLAN", "yes");
    EXPECT_EQ(createInferRuntime(m.logger), nullptr);
    EXPECT_TRUE(m.oneError("must be 0 or 1"));
}

TEST(Environment, WinogradIsOnOrOff)
{
    KeepingLogger logger;
    Variable v("TENSORWRIGHT_WINOGRAD", "no");
    EXPECT_EQ(createInferBuilder(logger), nullptr);
    ASSERT_EQ(logger.errors(), 1);
    EXPECT_TRUE(contains(logger.lastError(), "TENSORWRIGHT_WINOGRAD=no must be 0 or 1"));
}

TEST(Environment, Bf16IsOnOrOff)
{
    KeepingLogger logger;
    Variable v("TENSORWRIGHT_CPU_BF16", "yes");
    EXPECT_EQ(createInferBuilder(logger), nullptr);
    ASSERT_EQ(logger.errors(), 1);
    EXPECT_TRUE(contains(logger.lastError(), "TENSORWRIGHT_CPU_BF16=yes must be 0 or 1"));
}

TEST(Environment, Tf32OverrideTakesAnyValue)
{
    for (char const* value : {"0", "1", "maybe", ""}) {
        KeepingLogger logger;
        Variable v("NVIDIA_TF32_OVERRIDE", value);
        std::unique_ptr<IBuilder> builder(createInferBuilder(logger));
        EXPECT_NE(builder, nullptr) << value;
        EXPECT_EQ(logger.errors(), 0);
    }
}

} // namespace
