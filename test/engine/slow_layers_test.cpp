// SPDX-License-Identifier: Apache-2.0
// Layers without a fast kernel: the log after a build and the inspector name them, with the condition that failed.
// Equal timing caches give equal plans.
#include <algorithm>
#include <cstring>

#include <nlohmann/json.hpp>

#include "base/sanitizers.h"
#include "engine/engines.h"

using namespace tw::test;

namespace {

using Json = nlohmann::json;

constexpr char const* kHeader = "Layers without a fast kernel take ";

struct SlowNetwork : Maker
{
    std::vector<std::vector<float>> weights;

    ITensor* convolution(ITensor* x, int channels, char const* name)
    {
        int const inputs = x->getDimensions().d[1];
        std::vector<float>& w = weights.emplace_back(size_t(channels * inputs * 9));
        for (size_t i = 0; i < w.size(); ++i)
            w[i] = float(int(i * 7 % 13) - 6) * 0.01F;
        IConvolutionLayer* c = network->addConvolutionNd(
            *x, channels, Dims2(3, 3), {DataType::kFLOAT, w.data(), int64_t(w.size())}, {DataType::kFLOAT, nullptr, 0});
        c->setPaddingNd(Dims2(1, 1));
        c->setName(name);
        return c->getOutput(0);
    }
    // No kernel but the plain one blends.
    ITensor* blended(ITensor* x, char const* name)
    {
        IPoolingLayer* p = network->addPoolingNd(*x, PoolingType::kMAX_AVERAGE_BLEND, Dims2(3, 3));
        p->setBlendFactor(0.5F);
        p->setName(name);
        return p->getOutput(0);
    }
    Json json()
    {
        std::unique_ptr<ICudaEngine> const e = engine();
        EXPECT_TRUE(e) << errors();
        std::unique_ptr<IEngineInspector> const i(e ? e->createEngineInspector() : nullptr);
        return i ? Json::parse(i->getEngineInformation(LayerInformationFormat::kJSON)) : Json::object();
    }
    // The log says that others use the CPUs.
    bool saysBusy() const
    {
        return std::any_of(logger.lines.begin(), logger.lines.end(),
                           [](auto const& l) { return contains(l.text, "This machine is busy"); });
    }
    // Lines of the log from the header on that belong to it.
    std::vector<std::string> report() const
    {
        std::vector<std::string> lines;
        for (auto const& l : logger.lines)
            if (contains(l.text, kHeader) || (!lines.empty() && l.text.rfind("  ", 0) == 0))
                lines.push_back(l.text);
        return lines;
    }
};

struct Cliff : SlowNetwork
{
    Cliff() { output(blended(convolution(input("x", {1, 16, 64, 64}), 16, "conv"), "blend"), "y"); }
};

TEST(SlowLayers, TheLogNamesThemWithTheConditionThatFailed)
{
    Cliff m;
    m.config->setProfilingVerbosity(ProfilingVerbosity::kDETAILED);
    Json const json = m.json();
    std::vector<std::string> const lines = m.report();
    ASSERT_GE(lines.size(), 2U);
    EXPECT_TRUE(contains(lines[1], "  blend: ")) << lines[1];
    EXPECT_TRUE(contains(lines[1], "does not blend maximum and average")) << lines[1];
    // The inspector says the same, and its sums are those of the layers' records.
    ASSERT_TRUE(json.contains("WithoutFastKernel")) << json.dump(1);
    double all = 0, without = 0;
    size_t count = 0;
    for (Json const& l : json["Layers"]) {
        double const us = l.value("TimeMicroseconds", 0.0);
        all += us;
        if (us > 0) {
            EXPECT_GT(l.value("LimitMicroseconds", 0.0), 0) << l.dump(1);
        }
        if (l.contains("LacksFastKernel")) {
            without += us;
            ++count;
        }
        EXPECT_EQ(l["Name"] == "blend", contains(l.value("LacksFastKernel", ""), "blend")) << l.dump(1);
    }
    Json const& report = json["WithoutFastKernel"];
    EXPECT_DOUBLE_EQ(report["Share"].get<double>(), without / all);
    EXPECT_EQ(report["Layers"].size(), count);
    EXPECT_EQ(lines.size(), count + 1);
    EXPECT_EQ(report["Layers"][0]["Name"], "blend");
    EXPECT_TRUE(contains(lines[1], report["Layers"][0]["Reason"].get<std::string>().c_str())) << lines[1];
}

TEST(SlowLayers, EnginesThatNameTheirLayersNameTheseToo)
{
    Cliff m;
    Json json = m.json();
    ASSERT_TRUE(json.contains("WithoutFastKernel")) << json.dump(1);
    EXPECT_EQ(json["WithoutFastKernel"]["Layers"][0]["Name"], "blend");
    m.config->setProfilingVerbosity(ProfilingVerbosity::kNONE);
    json = m.json();
    EXPECT_FALSE(json.contains("WithoutFastKernel"));
}

// Its list holds one tactic, in plain loops: only the time tells.
TEST(SlowLayers, ALayerThatTakesTooLongForWhatItDoes)
{
    SlowNetwork m;
    ILRNLayer* lrn = m.network->addLRN(*m.input("x", {1, 64, 56, 56}), 15, 1e-4F, 0.75F, 1);
    lrn->setName("lrn");
    m.output(lrn->getOutput(0), "y");
    m.config->setProfilingVerbosity(ProfilingVerbosity::kDETAILED);
    Json const json = m.json();
    std::vector<std::string> const lines = m.report();
    if (m.saysBusy()) { // then no layer is slow for its time
        EXPECT_TRUE(lines.empty()) << lines[1];
        return;
    }
    ASSERT_EQ(lines.size(), 2U);
    EXPECT_TRUE(contains(lines[1], "  lrn: 100.0 %: ")) << lines[1];
    EXPECT_TRUE(contains(lines[1], " times its limit of ")) << lines[1];
    Json const& layer = json["Layers"][0];
    EXPECT_GT(layer["TimeMicroseconds"].get<double>(), 3 * layer["LimitMicroseconds"].get<double>());
}

TEST(SlowLayers, NothingIsSaidWhereAllAreFast)
{
    if (tw::kAddressSanitizer || tw::kThreadSanitizer)
        GTEST_SKIP() << "a sanitizer makes layers slow";
    SlowNetwork m;
    m.output(m.relu(m.convolution(m.input("x", {1, 64, 56, 56}), 64, "conv")), "y");
    Json const json = m.json();
    EXPECT_FALSE(json.contains("WithoutFastKernel")) << json.dump(1);
    EXPECT_TRUE(m.report().empty()) << m.report()[1];
}

// Without clocks there is nothing to say.
TEST(SlowLayers, EstimatesTellNothing)
{
    Cliff m;
    m.config->setFlag(BuilderFlag::kENABLE_TACTIC_HEURISTIC);
    m.config->setProfilingVerbosity(ProfilingVerbosity::kDETAILED);
    Json const json = m.json();
    EXPECT_TRUE(m.report().empty());
    for (Json const& l : json["Layers"])
        EXPECT_FALSE(l.contains("LimitMicroseconds"));
}

TEST(TimingCaches, EqualOnesGiveEqualPlans)
{
    for (auto const verbosity : {ProfilingVerbosity::kLAYER_NAMES_ONLY, ProfilingVerbosity::kDETAILED}) {
        Cliff m;
        m.config->setProfilingVerbosity(verbosity);
        std::unique_ptr<ITimingCache> cache(m.config->createTimingCache(nullptr, 0));
        ASSERT_TRUE(m.config->setTimingCache(*cache, false));
        ASSERT_TRUE(m.plan());
        std::unique_ptr<IHostMemory> const bytes(cache->serialize());
        std::vector<std::unique_ptr<IHostMemory>> plans;
        for (int i = 0; i < 2; ++i) {
            Cliff again;
            again.config->setProfilingVerbosity(verbosity);
            std::unique_ptr<ITimingCache> copy(again.config->createTimingCache(bytes->data(), bytes->size()));
            ASSERT_TRUE(copy && again.config->setTimingCache(*copy, false));
            plans.push_back(again.plan());
            ASSERT_TRUE(plans.back());
        }
        ASSERT_EQ(plans[0]->size(), plans[1]->size());
        EXPECT_EQ(std::memcmp(plans[0]->data(), plans[1]->data(), plans[0]->size()), 0);
    }
}

} // namespace
