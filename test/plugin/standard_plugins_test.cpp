// SPDX-License-Identifier: Apache-2.0
// Standard plugins as objects: creators, interfaces, copies, bytes, and enqueue() called by the program itself.
#include <cmath>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <random>

#include <dlfcn.h>
#include <gtest/gtest.h>

#include "NvInferPlugin.h"
#include "api/client.h"
#include "plugin/plugin_ptr.h"

using namespace nvinfer1;
using namespace tw::test;

namespace {

IPluginCreator* creatorOf(char const* name, char const* version = "1", char const* space = "")
{
    return getPluginRegistry()->getPluginCreator(name, version, space);
}

PluginPtr make(char const* name, std::vector<PluginField> const& fields, char const* space = "")
{
    PluginFieldCollection const collection{int32_t(fields.size()), fields.data()};
    IPluginCreator* const creator = creatorOf(name, "1", space);
    return PluginPtr(creator ? creator->createPlugin("layer", &collection) : nullptr);
}

std::string bytesOf(IPluginV2 const& p)
{
    std::string bytes(p.getSerializationSize(), '\0');
    p.serialize(bytes.data());
    return bytes;
}

struct StandardPlugins : testing::Test
{
    StandardPlugins() { EXPECT_TRUE(initLibNvInferPlugins(&logger, "")); }
    ~StandardPlugins() override { initLibNvInferPlugins(nullptr, ""); } // the library keeps the logger
    PluginPtr clip()
    {
        return make("Clip_TRT", {{"clipMin", &low, PluginFieldType::kFLOAT32, 1},
                                 {"clipMax", &high, PluginFieldType::kFLOAT32, 1}});
    }
    PluginPtr instanceNorm()
    {
        return make("InstanceNormalization_TRT",
                    {{"epsilon", &epsilon, PluginFieldType::kFLOAT32, 1},
                     {"scales", scales.data(), PluginFieldType::kFLOAT32, int32_t(scales.size())},
                     {"bias", bias.data(), PluginFieldType::kFLOAT32, int32_t(bias.size())}});
    }

    KeepingLogger logger;
    float low = -1, high = 2, epsilon = 1e-5F;
    std::vector<float> scales{1, 2, 3}, bias{0, -1, 0.5};
};

TEST_F(StandardPlugins, AreRegisteredOnceForEachNamespace)
{
    IPluginCreator* const first = creatorOf("Clip_TRT");
    ASSERT_NE(first, nullptr);
    logger.lines.clear();
    EXPECT_TRUE(initLibNvInferPlugins(&logger, ""));
    EXPECT_EQ(creatorOf("Clip_TRT"), first);
    auto const says = [&](std::string const& text) {
        return std::any_of(logger.lines.begin(), logger.lines.end(),
                           [&](auto const& l) { return l.severity == ILogger::Severity::kVERBOSE && l.text == text; });
    };
    EXPECT_TRUE(says("Plugin creator Clip_TRT version 1 already registered"));
    EXPECT_EQ(creatorOf("Clip_TRT", "1", "mine"), nullptr);
    EXPECT_TRUE(initLibNvInferPlugins(&logger, "mine"));
    ASSERT_NE(creatorOf("Clip_TRT", "1", "mine"), nullptr);
    EXPECT_STREQ(creatorOf("Clip_TRT", "1", "mine")->getPluginNamespace(), "mine");
    EXPECT_STREQ(first->getPluginNamespace(), "");
    PluginPtr const p =
        make("Clip_TRT", {{"clipMin", &low, PluginFieldType::kFLOAT32}, {"clipMax", &high, PluginFieldType::kFLOAT32}},
             "mine");
    ASSERT_TRUE(p);
    EXPECT_STREQ(p->getPluginNamespace(), "mine");
    EXPECT_EQ(logger.errors(), 0);
    EXPECT_FALSE(initLibNvInferPlugins(&logger, nullptr));
    EXPECT_EQ(logger.errors(), 1);
    // Those that register themselves are there in the empty namespace alone.
    EXPECT_NE(creatorOf("GroupNormalizationPlugin"), nullptr);
    EXPECT_EQ(creatorOf("GroupNormalizationPlugin", "1", "mine"), nullptr);
    // Ours are no creators of the list.
    int32_t n = 0;
    IPluginCreator* const* list = getPluginRegistry()->getPluginCreatorList(&n);
    for (int32_t i = 0; i < n; ++i)
        EXPECT_STRNE(list[i]->getPluginNamespace(), "tensorwright.standard");
}

TEST_F(StandardPlugins, AreSixtyOneAndFourOfOurOwn)
{
    int32_t n = 0;
    IPluginCreator* const* const list = getPluginRegistry()->getPluginCreatorList(&n);
    int const ours = int(std::count_if(list, list + n, [](IPluginCreator* c) { return !*c->getPluginNamespace(); }));
    EXPECT_EQ(ours, 61 + 5);
    for (int32_t i = 0; i < n; ++i) { // without fields each is made, or refused in a line
        logger.lines.clear();
        PluginFieldCollection const none{0, nullptr};
        PluginPtr const plugin(list[i]->createPlugin("layer", &none));
        EXPECT_EQ(plugin == nullptr, logger.errors() == 1) << list[i]->getPluginName();
        if (!plugin)
            continue;
        EXPECT_STREQ(plugin->getPluginType(), list[i]->getPluginName());
        PluginPtr const read(
            list[i]->deserializePlugin("layer", bytesOf(*plugin).data(), plugin->getSerializationSize()));
        EXPECT_NE(read, nullptr) << list[i]->getPluginName();
    }
}

TEST_F(StandardPlugins, ListTheirFields)
{
    PluginFieldCollection const* const f = creatorOf("Clip_TRT")->getFieldNames();
    ASSERT_EQ(f->nbFields, 2);
    EXPECT_STREQ(f->fields[0].name, "clipMin");
    EXPECT_EQ(f->fields[0].type, PluginFieldType::kFLOAT32);
    EXPECT_EQ(f->fields[0].data, nullptr);
}

TEST_F(StandardPlugins, AreCopiedAndWrittenDown)
{
    for (char const* name : {"Clip_TRT", "InstanceNormalization_TRT"}) {
        PluginPtr const p = name == std::string("Clip_TRT") ? clip() : instanceNorm();
        ASSERT_TRUE(p);
        std::string const bytes = bytesOf(*p);
        PluginPtr const copy(p->clone()), read(creatorOf(name)->deserializePlugin("layer", bytes.data(), bytes.size()));
        ASSERT_TRUE(copy && read);
        EXPECT_EQ(bytesOf(*copy), bytes);
        EXPECT_EQ(bytesOf(*read), bytes);
        EXPECT_STREQ(read->getPluginType(), name);
        // Damaged bytes, of any length, give no plugin or one that is sound.
        std::mt19937 random(5);
        for (size_t i = 0; i < bytes.size(); ++i) {
            PluginPtr const shorter(creatorOf(name)->deserializePlugin("layer", bytes.data(), i));
            EXPECT_FALSE(shorter) << i;
            std::string broken = bytes;
            broken[i] = char(random());
            PluginPtr const other(creatorOf(name)->deserializePlugin("layer", broken.data(), broken.size()));
        }
        PluginPtr const none(creatorOf("LReLU_TRT")->deserializePlugin("layer", bytes.data(), bytes.size()));
        EXPECT_FALSE(none);
        PluginPtr const null(creatorOf(name)->deserializePlugin("layer", nullptr, 10));
        EXPECT_FALSE(null);
    }
}

TEST_F(StandardPlugins, SayWhatIsWrongThroughTheLoggerOfTheirLibrary)
{
    logger.lines.clear();
    EXPECT_FALSE(make("Clip_TRT", {}));
    ASSERT_EQ(logger.errors(), 1);
    EXPECT_NE(logger.lastError().find("PluginFieldCollection missing required fields: {clipMax, clipMin}"),
              std::string::npos);
    PluginPtr const null(creatorOf("Clip_TRT")->createPlugin("layer", nullptr));
    EXPECT_FALSE(null);
    EXPECT_FALSE(make("Clip_TRT", {{"clipMin", nullptr, PluginFieldType::kFLOAT32, 1},
                                   {"clipMax", &high, PluginFieldType::kFLOAT32, 1}}));
    EXPECT_FALSE(make("InstanceNormalization_TRT", {{"scales", scales.data(), PluginFieldType::kFLOAT32, -1}}));
}

TEST_F(StandardPlugins, V2RunsWhenTheProgramCallsIt)
{
    PluginPtr const p = clip();
    Dims const d = dims({2, 3});
    Dims const y = p->getOutputDimensions(0, &d, 1);
    ASSERT_EQ(y.nbDims, 2);
    EXPECT_EQ(y.d[1], 3);
    EXPECT_EQ(p->getOutputDimensions(1, &d, 1).nbDims, -1);
    EXPECT_TRUE(p->supportsFormat(DataType::kFLOAT, PluginFormat::kLINEAR));
    EXPECT_FALSE(p->supportsFormat(DataType::kINT8, PluginFormat::kLINEAR));
    EXPECT_FALSE(p->supportsFormat(DataType::kFLOAT, PluginFormat::kCHW32));
    p->configureWithFormat(&d, 1, &d, 1, DataType::kFLOAT, PluginFormat::kLINEAR, 4);
    EXPECT_EQ(p->initialize(), 0);
    for (int32_t batch : {1, 4}) {
        std::vector<float> x(size_t(batch) * 6), out(x.size());
        std::iota(x.begin(), x.end(), -3.0F);
        void const* const inputs[] = {x.data()};
        void* const outputs[] = {out.data()};
        ASSERT_EQ(p->enqueue(batch, inputs, outputs, nullptr, nullptr), 0);
        for (size_t i = 0; i < x.size(); ++i)
            EXPECT_EQ(out[i], std::min(std::max(x[i], -1.0F), 2.0F));
    }
    p->terminate();
}

TEST_F(StandardPlugins, DynamicExtRunsWhenTheProgramCallsIt)
{
    PluginPtr const p = instanceNorm();
    auto& plugin = static_cast<IPluginV2DynamicExt&>(*p);
    std::vector<float> x(2 * 3 * 5), y(x.size());
    std::mt19937 random(3);
    for (float& v : x)
        v = std::normal_distribution<float>()(random);
    PluginTensorDesc const desc[2] = {{dims({2, 3, 5}), DataType::kFLOAT, PluginFormat::kLINEAR, 1},
                                      {dims({2, 3, 5}), DataType::kFLOAT, PluginFormat::kLINEAR, 1}};
    EXPECT_TRUE(plugin.supportsFormatCombination(0, desc, 1, 1) && plugin.supportsFormatCombination(1, desc, 1, 1));
    PluginTensorDesc mixed[2] = {desc[0], desc[1]};
    mixed[1].type = DataType::kHALF;
    EXPECT_FALSE(plugin.supportsFormatCombination(1, mixed, 1, 1));
    void const* const inputs[] = {x.data()};
    void* const outputs[] = {y.data()};
    ASSERT_EQ(plugin.enqueue(&desc[0], &desc[1], inputs, outputs, nullptr, nullptr), 0);
    for (int i = 0; i < 6; ++i) {
        double mean = 0, variance = 0;
        for (int j = 0; j < 5; ++j)
            mean += x[size_t(i * 5 + j)] / 5;
        for (int j = 0; j < 5; ++j)
            variance += std::pow(x[size_t(i * 5 + j)] - mean, 2) / 5;
        for (int j = 0; j < 5; ++j)
            EXPECT_NEAR(y[size_t(i * 5 + j)],
                        (x[size_t(i * 5 + j)] - mean) / std::sqrt(variance + 1e-5) * scales[size_t(i % 3)] +
                            bias[size_t(i % 3)],
                        1e-5);
    }
    DataType const type = DataType::kHALF;
    EXPECT_EQ(plugin.getOutputDataType(0, &type, 1), DataType::kHALF);
}

TEST_F(StandardPlugins, StayPluginsInANetwork)
{
    std::unique_ptr<IBuilder> const builder(createInferBuilder(logger));
    std::unique_ptr<INetworkDefinition> const network(builder->createNetworkV2(1));
    PluginPtr const p = instanceNorm();
    ITensor* const x = network->addInput("x", DataType::kFLOAT, dims({2, 3, 5}));
    IPluginV2Layer* const layer = network->addPluginV2(&x, 1, *p);
    ASSERT_NE(layer, nullptr);
    EXPECT_EQ(network->getNbLayers(), 1);
    EXPECT_EQ(layer->getType(), LayerType::kPLUGIN_V2);
    EXPECT_STREQ(layer->getPlugin().getPluginType(), "InstanceNormalization_TRT");
    EXPECT_NE(&layer->getPlugin(), p.get());
    // Of three channels: on four it is refused, and the layer is named.
    ITensor* const wide = network->addInput("wide", DataType::kFLOAT, dims({2, 4, 5}));
    IPluginV2Layer* const wrong = network->addPluginV2(&wide, 1, *p);
    ASSERT_NE(wrong, nullptr);
    EXPECT_EQ(wrong->getOutput(0)->getDimensions().nbDims, -1);
    EXPECT_NE(logger.lastError().find("field 'scales' has 3 numbers for 4 channels"), std::string::npos)
        << logger.lastError();
}

TEST_F(StandardPlugins, AreFusedAndStayPluginsToTheInspector)
{
    std::unique_ptr<IBuilder> const builder(createInferBuilder(logger));
    std::unique_ptr<INetworkDefinition> const network(builder->createNetworkV2(1));
    std::unique_ptr<IBuilderConfig> const config(builder->createBuilderConfig());
    config->setProfilingVerbosity(ProfilingVerbosity::kDETAILED);
    PluginPtr const p = instanceNorm();
    ITensor* const x = network->addInput("x", DataType::kFLOAT, dims({2, 3, 5}));
    IPluginV2Layer* const layer = network->addPluginV2(&x, 1, *p);
    layer->setName("norm");
    network->markOutput(*layer->getOutput(0));
    std::unique_ptr<IHostMemory> const plan(builder->buildSerializedNetwork(*network, *config));
    ASSERT_TRUE(plan);
    std::unique_ptr<IRuntime> const runtime(createInferRuntime(logger));
    std::unique_ptr<ICudaEngine> const engine(runtime->deserializeCudaEngine(plan->data(), plan->size()));
    std::unique_ptr<IEngineInspector> const inspector(engine->createEngineInspector());
    std::string text; // of the norm, beside which a layer may change formats
    for (int32_t i = 0; i < engine->getNbLayers() && text.find("layer_norm") == std::string::npos; ++i)
        text = inspector->getLayerInformation(i, LayerInformationFormat::kJSON);
    for (char const* part : {"\"Name\":\"norm\"", "\"LayerType\":\"PluginV2\"",
                             "\"PluginType\":\"InstanceNormalization_TRT\"", "\"Op\":\"layer_norm\""})
        EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
}

TEST_F(StandardPlugins, ComeWithTheLibraryThatIsOpenedAtRunTime)
{
    void* const library = dlopen(std::getenv("TW_PLUGIN_LIBRARY"), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library, nullptr) << dlerror();
    auto* const init = reinterpret_cast<bool (*)(void*, char const*)>(dlsym(library, "initLibNvInferPlugins"));
    ASSERT_NE(init, nullptr);
    EXPECT_TRUE(init(nullptr, "opened"));
    EXPECT_NE(creatorOf("LReLU_TRT", "1", "opened"), nullptr);
    dlclose(library);
}

} // namespace
