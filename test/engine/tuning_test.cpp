// SPDX-License-Identifier: Apache-2.0
// What the switches of the tuner do to a build, and what the inspector says of what was chosen and what lost.
#include <chrono>
#include <cstdlib>
#include <set>
#include <thread>

#include <nlohmann/json.hpp>

#include "engine/engines.h"

using namespace tw::test;

namespace {

using Json = nlohmann::json;

// Two equal 3x3 convolutions of 16 channels on images of 20x20, which several tactics can compute.
void addConvolutions(INetworkDefinition& network, std::vector<float>& weights)
{
    weights.resize(16 * 16 * 9);
    for (size_t i = 0; i < weights.size(); ++i)
        weights[i] = float(int(i * 7 % 13) - 6) * 0.01F;
    ITensor* x = network.addInput("x", DataType::kFLOAT, Dims4(1, 16, 20, 20));
    for (char const* name : {"first", "second"}) {
        IConvolutionLayer* c =
            network.addConvolutionNd(*x, 16, Dims2(3, 3), {DataType::kFLOAT, weights.data(), int64_t(weights.size())},
                                     {DataType::kFLOAT, nullptr, 0});
        c->setPaddingNd(Dims2(1, 1));
        c->setName(name);
        x = c->getOutput(0);
    }
    network.markOutput(*x);
}

struct Convolutions : Maker
{
    std::vector<float> weights;

    Convolutions()
    {
        addConvolutions(*network, weights);
        config->setProfilingVerbosity(ProfilingVerbosity::kDETAILED);
    }
    Json layers()
    {
        std::unique_ptr<ICudaEngine> const e = engine();
        EXPECT_TRUE(e) << errors();
        std::unique_ptr<IEngineInspector> const i(e ? e->createEngineInspector() : nullptr);
        return i ? Json::parse(i->getEngineInformation(LayerInformationFormat::kJSON))["Layers"] : Json::array();
    }
    // Lines that tell how often a tactic of this layer was timed.
    int timed(std::string const& layer = "") const
    {
        int n = 0;
        for (auto const& l : logger.lines)
            n += contains(l.text, " rounds") && contains(l.text, " us, ") && contains(l.text, layer.c_str());
        return n;
    }
    // The least number of rounds that any contest of the build had, and whether all lines say `tail`.
    int leastRounds(std::string const& tail) const
    {
        int least = 1 << 30;
        for (auto const& l : logger.lines) {
            size_t const at = l.text.find(" rounds");
            if (at == std::string::npos || !contains(l.text, " us, "))
                continue;
            least = std::min(least, std::atoi(l.text.c_str() + l.text.rfind(" of ", at) + 4));
            EXPECT_EQ(l.text.substr(at), " rounds" + tail) << l.text;
        }
        return least;
    }
};

bool isConvolution(Json const& layer)
{
    return layer.value("ParameterType", "") == "Convolution";
}
std::set<std::string> mentioned(Json const& layers)
{
    std::set<std::string> names;
    for (Json const& l : layers)
        if (isConvolution(l)) {
            names.insert(l["TacticName"].get<std::string>());
            for (Json const& r : l.value("RunnersUp", Json::array()))
                names.insert(r["TacticName"].get<std::string>());
        }
    return names;
}
bool has(std::set<std::string> const& names, char const* part)
{
    return std::any_of(names.begin(), names.end(), [&](std::string const& n) { return contains(n, part); });
}

TEST(Tuning, InspectorSaysWhatLostAndWhy)
{
    Convolutions m;
    Json const layers = m.layers();
    int convolutions = 0;
    for (Json const& l : layers) {
        if (!isConvolution(l))
            continue;
        ++convolutions;
        ASSERT_TRUE(l.contains("TimeMicroseconds")) << l.dump(1);
        EXPECT_GT(l["TimeMicroseconds"].get<double>(), 0);
        EXPECT_FALSE(l.contains("EstimateMicroseconds"));
        ASSERT_TRUE(l.contains("RunnersUp")) << l.dump(1);
        bool isPlainNamed = contains(l["TacticName"].get<std::string>(), "plain"), areFormatsNamed = false;
        for (Json const& r : l["RunnersUp"]) {
            ASSERT_TRUE(r.contains("TacticName") && r.contains("Reason")) << r.dump();
            std::string const name = r["TacticName"], why = r["Reason"];
            EXPECT_NE(why, "") << name;
            if (r.contains("TimeMicroseconds")) {
                EXPECT_GT(r["TimeMicroseconds"].get<double>(), 0);
                EXPECT_TRUE(contains(why, "time of the chosen one") || contains(why, "as fast") ||
                            contains(why, "no slower by itself"))
                    << why;
            }
            isPlainNamed = isPlainNamed || contains(name, "convolution_any_plain_cpu");
            areFormatsNamed = areFormatsNamed || contains(name, "->");
        }
        EXPECT_TRUE(isPlainNamed) << "the plain tactic vanished: " << l.dump(1);
        EXPECT_TRUE(areFormatsNamed) << "nothing is said of other formats: " << l.dump(1);
    }
    EXPECT_EQ(convolutions, 2);
    EXPECT_EQ(m.errors(), "");
}

TEST(Tuning, EstimatesAreCalledEstimates)
{
    Convolutions m;
    m.config->setFlag(BuilderFlag::kENABLE_TACTIC_HEURISTIC);
    int estimates = 0;
    for (Json const& l : m.layers()) {
        EXPECT_FALSE(l.contains("TimeMicroseconds")) << l.dump(1);
        estimates += l.contains("EstimateMicroseconds");
        for (Json const& r : l.value("RunnersUp", Json::array())) {
            EXPECT_FALSE(r.contains("TimeMicroseconds")) << r.dump();
            EXPECT_NE(r["Reason"], "");
        }
    }
    EXPECT_GE(estimates, 2);
    EXPECT_EQ(m.timed(), 0) << "nothing is timed";
    Convolutions ordinary;
    ASSERT_TRUE(ordinary.engine());
    EXPECT_GT(ordinary.timed(), 0);
}

TEST(Tuning, EqualLayersAreTimedOnceUnlessTheFlagSaysOtherwise)
{
    Convolutions shared;
    std::unique_ptr<ITimingCache> cache(shared.config->createTimingCache(nullptr, 0));
    ASSERT_TRUE(shared.config->setTimingCache(*cache, false));
    ASSERT_TRUE(shared.plan());
    EXPECT_GT(shared.timed("'first'"), 0);
    EXPECT_EQ(shared.timed("'second'"), 0);
    shared.logger.lines.clear();
    ASSERT_TRUE(shared.plan());
    EXPECT_EQ(shared.timed(), 0) << "the cache knows it all";

    Convolutions apart; // with the same cache, which neither answers nor grows
    ASSERT_TRUE(apart.config->setTimingCache(*cache, false));
    std::unique_ptr<IHostMemory> const before(cache->serialize());
    apart.config->setFlag(BuilderFlag::kDISABLE_TIMING_CACHE);
    ASSERT_TRUE(apart.plan());
    EXPECT_GT(apart.timed("'first'"), 0);
    EXPECT_GT(apart.timed("'second'"), 0);
    std::unique_ptr<IHostMemory> const after(cache->serialize());
    ASSERT_EQ(after->size(), before->size());
    EXPECT_EQ(std::memcmp(after->data(), before->data(), after->size()), 0);
}

TEST(Tuning, IterationsAreLeastRounds)
{
    Convolutions few, many;
    ASSERT_TRUE(few.plan());
    EXPECT_LT(few.leastRounds(""), 23) << "else the next lines prove nothing";
    many.config->setMinTimingIterations(23);
    many.config->setAvgTimingIterations(3);
    int most = 0; // where others use the CPUs, the time for a contest may be over before all of its runs are made
    for (int i = 0; i < 3 && most < 23 * 3; ++i) {
        many.logger.lines.clear();
        ASSERT_TRUE(many.plan());
        EXPECT_GE(many.leastRounds(""), 23);
        most = std::max(most, many.leastRounds(""));
    }
    EXPECT_GE(most, 23 * 3) << "on a CPU each run is a round";
}

// Keeps lines like the other, and lets time pass after the first contest.
class SlowLogger final : public ILogger
{
public:
    void log(Severity, AsciiChar const* message) noexcept override
    {
        lines.emplace_back(message);
        if (isSlow && contains(lines.back(), "'first'") && contains(lines.back(), " rounds")) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1100));
            isSlow = false;
        }
    }
    // The most rounds of any contest of the layer.
    int rounds(char const* layer) const
    {
        int most = 0;
        for (std::string const& l : lines)
            if (size_t const at = l.find(" rounds"); at != std::string::npos && contains(l, layer))
                most = std::max(most, std::atoi(l.c_str() + l.rfind(" of ", at) + 4));
        return most;
    }
    std::vector<std::string> lines;
    bool isSlow = true;
};

// When the seconds are over, layers get three rounds: fewer tell nothing.
TEST(Tuning, SecondsLimitTheRounds)
{
    auto roundsOfSecond = [] {
        SlowLogger logger;
        std::unique_ptr<IBuilder> builder(createInferBuilder(logger));
        std::unique_ptr<INetworkDefinition> network(builder->createNetworkV2(1));
        std::unique_ptr<IBuilderConfig> config(builder->createBuilderConfig());
        config->setFlag(BuilderFlag::kDISABLE_TIMING_CACHE); // the second convolution is tuned as the first is
        std::vector<float> weights;
        addConvolutions(*network, weights);
        EXPECT_TRUE(std::unique_ptr<IHostMemory>(builder->buildSerializedNetwork(*network, *config)));
        return logger.rounds("'second'");
    };
    if (roundsOfSecond() <= 3) // without a limit
        GTEST_SKIP() << "this machine is too slow or too busy for more than the fewest rounds";
    Variable v("TENSORWRIGHT_TUNING_SECONDS", "1");
    EXPECT_EQ(roundsOfSecond(), 3) << "the first took the second";
}

TEST(Tuning, WinogradIsSwitchedOff)
{
    Convolutions with;
    EXPECT_TRUE(has(mentioned(with.layers()), "_f32_winograd")) << "else the next lines prove nothing";
    Variable v("TENSORWRIGHT_WINOGRAD", "0");
    Convolutions without;
    std::set<std::string> const names = mentioned(without.layers());
    EXPECT_FALSE(names.empty());
    EXPECT_FALSE(has(names, "_f32_winograd")) << "chosen or tried";
}

TEST(Tuning, Bf16IsSwitchedOn)
{
    Convolutions without;
    EXPECT_FALSE(has(mentioned(without.layers()), "_bf16_")) << "chosen or tried";
    Variable v("TENSORWRIGHT_CPU_BF16", "1");
    Convolutions with;
    EXPECT_TRUE(has(mentioned(with.layers()), "_bf16_"));
}

// A fill has one kernel: with 2^31 - 1 elements, three tensors of 8 GiB would be made to find that out.
TEST(Tuning, TheOneKernelOfVeryLargeTensorsIsTakenAsItIs)
{
    for (auto [operation, beta] : {std::pair{FillOperation::kLINSPACE, 1.0}, {FillOperation::kRANDOM_UNIFORM, 1.0}})
        for (bool isInput : {false, true}) {
            Maker m;
            IFillLayer* fill = m.network->addFill(dims({INT32_MAX}), operation);
            fill->setAlpha(0);
            fill->setBeta(beta);
            if (isInput) {
                fill->setInput(0, *m.input("d", {1}, DataType::kINT32));
                m.profile({}, {{"d", {1}, {INT32_MAX}, {INT32_MAX}}});
            }
            m.output(fill->getOutput(0), "y");
            auto const start = std::chrono::steady_clock::now();
            EXPECT_TRUE(m.plan()) << m.errors();
            EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
            bool isSaid = false;
            for (auto const& line : m.logger.lines)
                isSaid = isSaid || contains(line.text, "could not be compared: it is the only one");
            EXPECT_TRUE(isSaid);
        }
}

} // namespace
