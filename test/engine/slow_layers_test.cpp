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
    // Of a build in which `isExpected` holds, the fourth at the latest: others may use the CPUs for a moment.
    template <class F>
    Json jsonWhere(F const& isExpected)
    {
        for (int i = 0;; ++i) {
            logger.lines.clear();
            Json j = json();
            if (i == 3 || isExpected(j))
                return j;
        }
    }
    // The log says that others use the CPUs.
    bool saysBusy() const
    {
        return std::any_of(logger.lines.begin(), logger.lines.end(),
                           [](auto const& l) { return contains(l.text, "This machine is busy"); });
    }
    // The line of copies, or "".
    std::string copies() const
    {
        auto const at = std::find_if(logger.lines.begin(), logger.lines.end(), [](auto const& l) {
            return contains(l.text, "Copies and changes of format take ");
        });
        return at == logger.lines.end() ? std::string() : at->text;
    }
    // Lines of the log from the header on that belong to it.
    std::vector<std::string> report() const
    {
        std::vector<std::string> lines;
        for (auto const& l : logger.lines)
            if (contains(l.text, kHeader) || (!lines.empty() && l.text.rfind("  ", 0) == 0))
                lines.push_back(l.text);
            else if (!lines.empty())
                break;
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
    Json const json = m.jsonWhere([&](Json const&) { return m.report().size() == 2; });
    std::vector<std::string> const lines = m.report();
    ASSERT_GE(lines.size(), 2U);
    EXPECT_TRUE(contains(lines[1], "  blend: ")) << lines[1];
    EXPECT_TRUE(contains(lines[1], "does not blend maximum and average")) << lines[1];
    // The inspector says the same, and its sums are those of the layers' records.
    ASSERT_TRUE(json.contains("WithoutFastKernel")) << json.dump(1);
    double all = 0, without = 0;
    for (Json const& l : json["Layers"]) {
        double const us = l.value("TimeMicroseconds", 0.0);
        all += us;
        if (us > 0) {
            EXPECT_GT(l.value("LimitMicroseconds", 0.0), 0) << l.dump(1);
        }
        if (l["Name"] == "conv") {
            // x and y of 16 channels, and 16 x 16 x 9 weights; two operations for each product.
            EXPECT_EQ(l["LimitBytes"], 4 * (2 * 16 * 64 * 64 + 16 * 16 * 9 + (l["Constants"].size() > 1 ? 16 : 0)));
            EXPECT_EQ(l["LimitOperations"], 2 * 16 * 64 * 64 * 16 * 9);
        }
        if (l["Name"] == "blend") {
            EXPECT_EQ(l["LimitBytes"], 4 * (16 * 64 * 64 + 16 * 62 * 62));
            EXPECT_FALSE(l.contains("LimitOperations"));
        }
        without += l.contains("LacksFastKernel") ? us : 0;
        EXPECT_EQ(l["Name"] == "blend", contains(l.value("LacksFastKernel", ""), "blend")) << l.dump(1);
    }
    Json const& report = json["WithoutFastKernel"];
    EXPECT_DOUBLE_EQ(report["Share"].get<double>(), without / all);
    EXPECT_EQ(lines.size(), report["Reasons"].size() + 1);
    Json const& first = report["Reasons"][0];
    EXPECT_EQ(first["Layers"], Json::parse(R"([{"Name": "blend", "Share": )" + first["Share"].dump() + "}]"));
    EXPECT_TRUE(contains(lines[1], first["Reason"].get<std::string>().c_str())) << lines[1];
}

TEST(SlowLayers, EnginesThatNameTheirLayersNameTheseToo)
{
    Cliff m;
    Json json = m.json();
    ASSERT_TRUE(json.contains("WithoutFastKernel")) << json.dump(1);
    EXPECT_EQ(json["WithoutFastKernel"]["Reasons"][0]["Layers"][0]["Name"], "blend");
    m.config->setProfilingVerbosity(ProfilingVerbosity::kNONE);
    json = m.json();
    EXPECT_FALSE(json.contains("WithoutFastKernel"));
}

// Several layers that lack the same are one line; of them the largest is named, with its own reason.
TEST(SlowLayers, OneLineForAReason)
{
    SlowNetwork m;
    ITensor* large = m.blended(m.input("large", {1, 16, 64, 64}), "large blend");
    m.output(large, "a");
    m.output(m.blended(m.input("small", {1, 16, 32, 32}), "small blend"), "b");
    Json const json = m.json();
    std::vector<std::string> const lines = m.report();
    ASSERT_EQ(lines.size(), 2U) << json.dump(1);
    EXPECT_EQ(lines[1].rfind("  large blend and 1 more: 100.0 %: ", 0), 0U) << lines[1];
    Json const& reasons = json["WithoutFastKernel"]["Reasons"];
    ASSERT_EQ(reasons.size(), 1U);
    ASSERT_EQ(reasons[0]["Layers"].size(), 2U);
    EXPECT_EQ(reasons[0]["Layers"][1]["Name"], "small blend");
    EXPECT_GT(reasons[0]["Layers"][0]["Share"], reasons[0]["Layers"][1]["Share"]);
    EXPECT_NEAR(reasons[0]["Layers"][0]["Share"].get<double>() + reasons[0]["Layers"][1]["Share"].get<double>(),
                reasons[0]["Share"].get<double>(), 1e-9);
    EXPECT_EQ(m.copies(), "");
    EXPECT_FALSE(json.contains("Copies"));
}

// A plain kernel of less time than the start of a kernel is nobody's loss.
TEST(SlowLayers, NoiseIsNotListed)
{
    SlowNetwork m;
    m.output(m.blended(m.input("x", {1, 1, 3, 3}), "blend"), "y");
    m.config->setProfilingVerbosity(ProfilingVerbosity::kDETAILED);
    Json const json = m.json();
    double const us = json["Layers"][0].value("TimeMicroseconds", 0.0);
    if (us == 0 || us >= 5)
        GTEST_SKIP() << "this machine is so busy that a window of nine numbers takes " << us << " us";
    EXPECT_TRUE(m.report().empty()) << m.report()[1];
    EXPECT_FALSE(json.contains("WithoutFastKernel")) << json.dump(1);
}

TEST(SlowLayers, WhatCopiesTake)
{
    SlowNetwork m;
    IShuffleLayer* s = m.network->addShuffle(*m.input("x", {1, 64, 100, 100}));
    s->setFirstTranspose({{0, 3, 2, 1}});
    s->setName("turn");
    m.output(s->getOutput(0), "y");
    Json const json = m.json();
    EXPECT_EQ(m.copies(), "Copies and changes of format take 100.0 % of the time: turn");
    ASSERT_TRUE(json.contains("Copies")) << json.dump(1);
    EXPECT_DOUBLE_EQ(json["Copies"]["Share"].get<double>(), 1);
    ASSERT_EQ(json["Copies"]["Layers"].size(), 1U);
    EXPECT_EQ(json["Copies"]["Layers"][0]["Name"], "turn");
}

// What a build's time went into: the parts in the order of their times, and their sum.
TEST(BuildTimes, AreATableInTheLog)
{
    Cliff m;
    ASSERT_TRUE(m.plan());
    auto line = std::find_if(m.logger.lines.begin(), m.logger.lines.end(),
                             [](auto const& l) { return contains(l.text, "Time of the build by parts"); });
    ASSERT_NE(line, m.logger.lines.end());
    std::vector<std::string> names;
    std::vector<double> seconds;
    for (++line; line != m.logger.lines.end() && line->text.rfind("  ", 0) == 0; ++line) {
        size_t const at = line->text.find("  ", 2);
        ASSERT_NE(at, std::string::npos) << line->text;
        names.push_back(line->text.substr(2, at - 2));
        seconds.push_back(std::atof(line->text.c_str() + at));
    }
    ASSERT_GE(names.size(), 3U);
    EXPECT_EQ(names.back(), "all");
    EXPECT_NE(std::find(names.begin(), names.end(), "timing kernels"), names.end());
    EXPECT_NE(std::find(names.begin(), names.end(), "inputs and reference"), names.end());
    double sum = 0;
    for (size_t i = 0; i + 1 < names.size(); ++i) {
        sum += seconds[i];
        if (i + 2 < names.size() && names[i + 1] != "the rest") {
            EXPECT_GE(seconds[i], seconds[i + 1]) << names[i];
        }
    }
    EXPECT_NEAR(sum, seconds.back(), 0.002 * double(names.size()));
}

// Its list holds one tactic, in plain loops: only the time tells.
TEST(SlowLayers, ALayerThatTakesTooLongForWhatItDoes)
{
    SlowNetwork m;
    ILRNLayer* lrn = m.network->addLRN(*m.input("x", {1, 64, 56, 56}), 15, 1e-4F, 0.75F, 1);
    lrn->setName("lrn");
    m.output(lrn->getOutput(0), "y");
    m.config->setProfilingVerbosity(ProfilingVerbosity::kDETAILED);
    Json const json = m.jsonWhere([&](Json const&) { return m.report().size() == (m.saysBusy() ? 0 : 2); });
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
    Json const json = m.jsonWhere([&](Json const&) { return m.report().empty(); });
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
