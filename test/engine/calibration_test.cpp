// SPDX-License-Identifier: Apache-2.0
// Builds with a calibrator: who is asked what and when, which bytes come out, and what is refused.
#include <cmath>
#include <cstring>

#include "engine/calibrators.h"
#include "engine/engines.h"

using namespace tw::test;

namespace {

// x [N, 3, 8, 8] -> conv [4 maps] -> relu -> pool -> y
struct Network : Maker
{
    explicit Network(int32_t batch = 2, uint32_t flags = 1) : Maker(flags)
    {
        std::mt19937 random(7);
        std::normal_distribution<float> normal;
        for (float& w : weights)
            w = normal(random);
        std::vector<int32_t> shape{batch, 3, 8, 8};
        if (flags == 0)
            shape.erase(shape.begin());
        ITensor* x = input("x", shape);
        ILayer* conv = network->addConvolutionNd(*x, 4, Dims{2, {3, 3}}, {DataType::kFLOAT, weights, 108}, {});
        conv->getOutput(0)->setName("conv");
        ITensor* r = relu(conv->getOutput(0));
        r->setName("relu");
        ILayer* pool = network->addPoolingNd(*r, PoolingType::kMAX, Dims{2, {2, 2}});
        output(pool->getOutput(0), "y");
        config->setFlag(BuilderFlag::kINT8);
    }
    bool build(IInt8Calibrator* calibrator)
    {
        config->setInt8Calibrator(calibrator);
        return plan() != nullptr;
    }
    int countLines(char const* part) const
    {
        int n = 0;
        for (auto const& l : logger.lines)
            n += contains(l.text, part);
        return n;
    }
    float weights[108];
};

std::vector<std::string> times(size_t n, std::string const& what)
{
    return std::vector<std::string>(n, what);
}

template <class Kind>
std::string cacheOf(Network& n, Kind calibrator)
{
    EXPECT_TRUE(n.build(&calibrator)) << n.errors();
    return calibrator.cache;
}

} // namespace

TEST(Calibration, TheProtocol)
{
    Network n;
    EntropyCalibrator2 c;
    c.fill("x", 2 * 192, 3);
    ASSERT_TRUE(n.build(&c)) << n.errors();
    std::vector<std::string> expected{"readCalibrationCache"};
    for (auto const& call : times(4, "getBatch"))
        expected.push_back(call);
    expected.push_back("writeCalibrationCache");
    EXPECT_EQ(c.calls, expected);
    for (auto const& names : c.names)
        EXPECT_EQ(names, (std::vector<std::string>{"x"}));
    EXPECT_EQ(c.cache.find("TRT-8503-EntropyCalibration2\nx: "), 0u) << c.cache;
    std::map<std::string, float> const scales = scalesOf(c.cache);
    EXPECT_EQ(scales.size(), 4u);
    for (char const* name : {"x", "conv", "relu", "y"})
        EXPECT_GT(scales.at(name), 0) << name;
    EXPECT_EQ(scales.at("relu"), scales.at("y")); // the two sides of a pool
    EXPECT_EQ(n.countLines("Starting Calibration."), 1);
    EXPECT_EQ(n.countLines("Calibrated batch 2 in "), 1);
    EXPECT_EQ(n.countLines("Calibrated batch 3 in "), 0);
    EXPECT_EQ(n.countLines("Writing Calibration Cache for calibrator: EntropyCalibration2"), 1);
    EXPECT_EQ(n.countLines("Missing scale"), 0);

    // With the cache nobody is asked for batches.
    c.calls.clear();
    n.logger.lines.clear();
    std::string const cache = c.cache;
    ASSERT_TRUE(n.build(&c)) << n.errors();
    EXPECT_EQ(c.calls, (std::vector<std::string>{"readCalibrationCache"}));
    EXPECT_EQ(c.cache, cache);
    EXPECT_EQ(n.countLines("Reading Calibration Cache for calibrator: EntropyCalibration2"), 1);
    EXPECT_EQ(n.countLines("Starting Calibration."), 0);
}

TEST(Calibration, AllFourKinds)
{
    auto withBatches = [](auto calibrator) {
        calibrator.fill("x", 2 * 192, 2);
        return calibrator;
    };
    Network n;
    auto const minMax = withBatches(MinMaxCalibrator());
    std::map<std::string, float> scales = scalesOf(cacheOf(n, minMax));
    float largest = 0;
    for (auto const& batch : minMax.batches.at("x"))
        for (float x : batch)
            largest = std::max(largest, std::abs(x));
    EXPECT_EQ(scales.at("x"), largest / 127);
    EXPECT_EQ(scales.size(), 4u);

    // Entropy and legacy look at what is left after fusion, unless told otherwise.
    EXPECT_EQ(cacheOf(n, minMax).find("TRT-8503-MinMaxCalibration\n"), 0u);
    std::string const fused = cacheOf(n, withBatches(EntropyCalibrator()));
    EXPECT_EQ(fused.find("TRT-8503-EntropyCalibration\n"), 0u);
    EXPECT_FALSE(scalesOf(fused).contains("conv")) << fused;
    EXPECT_GT(n.countLines("table is of fused layers"), 0);
    n.config->setQuantizationFlag(QuantizationFlag::kCALIBRATE_BEFORE_FUSION);
    std::map<std::string, float> const entropy = scalesOf(cacheOf(n, withBatches(EntropyCalibrator())));
    EXPECT_EQ(entropy.size(), 4u);
    EXPECT_EQ(entropy.at("x"), scalesOf(cacheOf(n, withBatches(EntropyCalibrator2()))).at("x"));

    LegacyCalibrator legacy;
    legacy.fill("x", 2 * 192, 2);
    legacy.quantile = 0.9;
    ASSERT_TRUE(n.build(&legacy)) << n.errors();
    EXPECT_EQ(legacy.calls,
              (std::vector<std::string>{"readCalibrationCache", "readHistogramCache", "getBatch", "getBatch",
                                        "getBatch", "writeHistogramCache", "writeCalibrationCache"}));
    EXPECT_EQ(legacy.cache.find("TRT-8503-LegacyCalibration\n"), 0u);
    EXPECT_LT(scalesOf(legacy.cache).at("x"), scales.at("x"));
    // The histograms are enough for another quantile.
    legacy.cache.clear();
    legacy.calls.clear();
    legacy.quantile = 1;
    ASSERT_TRUE(n.build(&legacy)) << n.errors();
    EXPECT_EQ(legacy.calls, (std::vector<std::string>{"readCalibrationCache", "readHistogramCache",
                                                      "writeHistogramCache", "writeCalibrationCache"}));
    EXPECT_EQ(scalesOf(legacy.cache).at("x"), scales.at("x"));
}

TEST(Calibration, BytesAreTheSameAgainAndForEveryThreadCount)
{
    std::string first;
    for (int threads : {0, 1, 2, 1}) {
        Network n(16);
        n.builder->setMaxThreads(threads);
        EntropyCalibrator2 c;
        c.fill("x", 16 * 192, 3);
        ASSERT_TRUE(n.build(&c)) << n.errors();
        first = first.empty() ? c.cache : first;
        EXPECT_EQ(c.cache, first) << threads;
    }
}

// Many values in one place and others far out, which hold the energy: entropy clamps them, and says so once for all tensors.
TEST(Calibration, SaysWhenClampingHurts)
{
    auto warnings = [](Network& n) {
        std::vector<std::string> lines;
        for (auto const& l : n.logger.lines)
            if (l.severity == ILogger::Severity::kWARNING && contains(l.text, "of their energy is lost"))
                lines.push_back(l.text);
        return lines;
    };
    auto fill = [](CalibratorState& c) {
        c.fill("x", 2 * 192, 2);
        for (auto& batch : c.batches["x"])
            for (size_t i = 0; i < batch.size(); ++i)
                batch[i] = i % 4 == 0 ? 10 * std::fmod(float(i) * 0.618F, 1.F) : 1;
    };
    Network n;
    EntropyCalibrator2 c;
    fill(c);
    ASSERT_TRUE(n.build(&c)) << n.errors();
    ASSERT_LT(127 * scalesOf(c.cache).at("x"), 5);
    std::vector<std::string> const said = warnings(n);
    ASSERT_EQ(said.size(), 1U);
    for (char const* part : {"x (", " %)", "IInt8MinMaxCalibrator", "setDynamicRange()", "FP32"})
        EXPECT_TRUE(contains(said[0], part)) << said[0];
    MinMaxCalibrator all;
    fill(all);
    n.logger.lines.clear();
    ASSERT_TRUE(n.build(&all)) << n.errors();
    EXPECT_TRUE(warnings(n).empty());
}

TEST(Calibration, MinMaxDoesNotLookAtTheOrder)
{
    Network n;
    MinMaxCalibrator c;
    c.fill("x", 2 * 192, 5);
    MinMaxCalibrator turned = c;
    std::reverse(turned.batches["x"].begin(), turned.batches["x"].end());
    EXPECT_EQ(cacheOf(n, c), cacheOf(n, turned));
}

TEST(Calibration, ImplicitBatch)
{
    Network n(0, 0);
    n.builder->setMaxBatchSize(4);
    EntropyCalibrator2 c;
    c.batchSize = 3;
    c.fill("x", 3 * 192, 2);
    ASSERT_TRUE(n.build(&c)) << n.errors();
    Network explicitly(3);
    EntropyCalibrator2 same;
    same.fill("x", 3 * 192, 2);
    EXPECT_EQ(cacheOf(explicitly, same), c.cache);
    for (int32_t bad : {0, -1}) {
        n.takeErrors();
        EntropyCalibrator2 other;
        other.batchSize = bad;
        other.fill("x", 5 * 192, 1);
        EXPECT_FALSE(n.build(&other));
        EXPECT_TRUE(n.oneError("getBatchSize()")) << bad;
    }
}

// The maximum is that of the engine's batches: clients calibrate with 50 pictures at a time for an engine of 32.
TEST(Calibration, ImplicitBatchesMayBeLargerThanTheEngines)
{
    Network n(0, 0);
    n.builder->setMaxBatchSize(2);
    EntropyCalibrator2 c;
    c.batchSize = 5;
    c.fill("x", 5 * 192, 2);
    ASSERT_TRUE(n.build(&c)) << n.errors();
    Network explicitly(5);
    EntropyCalibrator2 same;
    same.fill("x", 5 * 192, 2);
    EXPECT_EQ(cacheOf(explicitly, same), c.cache);
    auto const engine = n.engine();
    ASSERT_TRUE(engine) << n.errors();
    EXPECT_EQ(engine->getMaxBatchSize(), 2);
}

TEST(Calibration, DynamicShapesHaveTheProfilesOptimum)
{
    Network n(-1);
    IOptimizationProfile* run = n.profile({{"x", {1, 3, 8, 8}, {2, 3, 8, 8}, {8, 3, 8, 8}}});
    ASSERT_TRUE(run);
    EntropyCalibrator2 c;
    c.fill("x", 2 * 192, 2);
    std::string const first = cacheOf(n, c);
    Network two(2);
    EXPECT_EQ(cacheOf(two, c), first);
    // A profile for calibration alone; its minimum and maximum do not count.
    IOptimizationProfile* p = n.builder->createOptimizationProfile();
    p->setDimensions("x", OptProfileSelector::kMIN, Dims{4, {1, 3, 8, 8}});
    p->setDimensions("x", OptProfileSelector::kOPT, Dims{4, {5, 3, 8, 8}});
    p->setDimensions("x", OptProfileSelector::kMAX, Dims{4, {50, 3, 8, 8}});
    ASSERT_TRUE(n.config->setCalibrationProfile(p));
    EntropyCalibrator2 five;
    five.fill("x", 5 * 192, 2);
    Network static5(5);
    EXPECT_EQ(cacheOf(n, five), cacheOf(static5, five));
    five.batchSize = 5;
    n.logger.lines.clear();
    cacheOf(n, five);
    EXPECT_EQ(n.countLines("should be 1"), 1);
    IOptimizationProfile* empty = n.builder->createOptimizationProfile();
    ASSERT_TRUE(n.config->setCalibrationProfile(empty));
    n.takeErrors();
    EXPECT_FALSE(n.build(&five));
    EXPECT_TRUE(n.oneError("calibration profile: optimization profile 0: input 'x'"));
}

TEST(Calibration, BatchesThatAreRefused)
{
    Network n;
    EntropyCalibrator2 none;
    EXPECT_FALSE(n.build(&none));
    EXPECT_TRUE(n.oneError("getBatch() gives no batch at its first call"));
    EXPECT_TRUE(none.cache.empty());
    for (float bad : {NAN, INFINITY, -INFINITY}) {
        EntropyCalibrator2 c;
        c.fill("x", 2 * 192, 3);
        c.batches["x"][1][100] = bad;
        EXPECT_FALSE(n.build(&c));
        EXPECT_TRUE(n.oneError("calibration batch 1: element 100 of input 'x'"));
        EXPECT_TRUE(c.cache.empty()); // nothing half-written
    }
    n.network->getInput(0)->setName("x");
    ITensor* other = n.input("other", {2, 4, 5, 5});
    n.output(n.add(n.network->getOutput(0), other), "sum");
    EntropyCalibrator2 c;
    c.fill("x", 2 * 192, 1);
    EXPECT_FALSE(n.build(&c));
    EXPECT_TRUE(n.oneError("calibration batch 0: getBatch() sets no address for input 'other'"));
    ASSERT_EQ(c.names.size(), 1u);
    EXPECT_EQ(c.names[0], (std::vector<std::string>{"x", "other"}));
}

TEST(Calibration, CachesThatAreRefused)
{
    Network n;
    std::pair<std::string, char const*> const bad[] = {
        {"TRT-8503-MinMaxCalibration\nx: 3c010204\n", "written for MinMaxCalibration"},
        {"rubbish", "line 1"},
        {"TRT-8503-EntropyCalibration2\nx: 7fc00000\n", "line 2"},
        {"TRT-8503-EntropyCalibration2\nx: 3c010204\nx: 3c010204\n", "line 3"},
        {"TRT-8503-EntropyCalibration2\nx: -1\n", "line 2"},
    };
    for (auto const& [text, part] : bad) {
        EntropyCalibrator2 c;
        c.fill("x", 2 * 192, 1);
        c.cache = text;
        EXPECT_FALSE(n.build(&c)) << text;
        EXPECT_TRUE(n.oneError(part));
        EXPECT_EQ(c.calls, (std::vector<std::string>{"readCalibrationCache"}));
        EXPECT_EQ(c.cache, text);
    }
    LegacyCalibrator legacy;
    legacy.fill("x", 2 * 192, 1);
    legacy.histograms = "rubbish";
    EXPECT_FALSE(n.build(&legacy));
    EXPECT_TRUE(n.oneError("histogram cache"));
    for (auto const& [quantile, cutoff] : {std::pair(0., 1.), {1.5, 1.}, {NAN, 1.}, {1., -0.1}, {1., 1.1}, {1., NAN}}) {
        LegacyCalibrator c;
        c.fill("x", 2 * 192, 1);
        c.quantile = quantile;
        c.cutoff = cutoff;
        EXPECT_FALSE(n.build(&c));
        EXPECT_TRUE(n.oneError("IInt8LegacyCalibrator"));
    }
    struct Unknown final : EntropyCalibrator2
    {
        CalibrationAlgoType getAlgorithm() noexcept override { return static_cast<CalibrationAlgoType>(9); }
    } unknown;
    EXPECT_FALSE(n.build(&unknown));
    EXPECT_TRUE(n.oneError("getAlgorithm()"));
}

TEST(Calibration, CachesOfOtherVersionsAndOfPartOfTheTensors)
{
    Network n;
    EntropyCalibrator2 c;
    c.cache = "TRT-7103-EntropyCalibration2\nx: 3c010204\nsomewhere else: 3c010204\ny: 0\n";
    ASSERT_TRUE(n.build(&c)) << n.errors();
    EXPECT_EQ(n.countLines("it is of version 7103"), 1);
    EXPECT_EQ(n.countLines("Missing scale and zero-point for tensor conv, relu, y, expect fall back to"), 1);
    EXPECT_EQ(c.calls.size(), 1u);
}

TEST(Calibration, DynamicRangesAlone)
{
    Network n;
    n.network->getInput(0)->setDynamicRange(-1, 2);
    ASSERT_TRUE(n.build(nullptr)) << n.errors();
    EXPECT_EQ(n.countLines("Calibrator is not being used."), 1);
    EXPECT_EQ(n.countLines("Missing scale and zero-point for tensor conv, relu, y"), 1);
    n.network->getInput(0)->resetDynamicRange();
    n.logger.lines.clear();
    ASSERT_TRUE(n.build(nullptr)) << n.errors();
    EXPECT_EQ(n.countLines("Missing scale and zero-point for tensor conv, relu, x, y"), 1);
    n.network->getInput(0)->setDynamicRange(0, 0);
    EXPECT_FALSE(n.build(nullptr));
    EXPECT_TRUE(n.oneError("tensor 'x': its dynamic range has the largest magnitude 0"));
    n.network->getInput(0)->setDynamicRange(-1e-40F, 1e-40F);
    EXPECT_FALSE(n.build(nullptr));
    EXPECT_TRUE(n.oneError("tensor 'x': its dynamic range"));
    n.config->clearFlag(BuilderFlag::kINT8);
    EXPECT_TRUE(n.build(nullptr));
}

TEST(Calibration, WithoutTheFlagNobodyIsAsked)
{
    Network n;
    n.config->clearFlag(BuilderFlag::kINT8);
    EntropyCalibrator2 c;
    EXPECT_TRUE(n.build(&c)) << n.errors();
    EXPECT_TRUE(c.calls.empty());
}

TEST(Calibration, TensorsThatAreZeroOrInfinite)
{
    Maker m;
    m.config->setFlag(BuilderFlag::kINT8);
    ITensor* x = m.input("x", {4});
    ILayer* clip = m.network->addActivation(*x, ActivationType::kCLIP);
    static_cast<IActivationLayer*>(clip)->setAlpha(0);
    static_cast<IActivationLayer*>(clip)->setBeta(0);
    clip->getOutput(0)->setName("zero");
    m.output(m.network->addUnary(*clip->getOutput(0), UnaryOperation::kLOG)->getOutput(0), "y");
    EntropyCalibrator2 c;
    c.fill("x", 4, 1);
    m.config->setInt8Calibrator(&c);
    ASSERT_TRUE(m.plan()) << m.errors();
    EXPECT_TRUE(contains(c.cache, "\nzero: 0\n"));
    EXPECT_TRUE(contains(c.cache, "\ny: 0\n"));
    int zero = 0, infinite = 0;
    for (auto const& l : m.logger.lines) {
        zero += contains(l.text, "Tensor zero is uniformly zero");
        infinite += contains(l.text, "infinite values or NaN, which get no scale: y");
    }
    EXPECT_EQ(zero, 1);
    EXPECT_EQ(infinite, 1);
}

// A loop and its neighbours: what is outside is calibrated, also what comes out of it.
TEST(Calibration, LoopsAreSeenFromOutside)
{
    Maker m;
    m.config->setFlag(BuilderFlag::kINT8);
    ITensor* x = m.input("x", {3, 4});
    ITensor* before = m.relu(x);
    before->setName("before");
    int32_t const trips = 5;
    ITensor* count = m.network->addConstant(Dims{0, {}}, {DataType::kINT32, &trips, 1})->getOutput(0);
    ILoop* loop = m.network->addLoop();
    loop->addTripLimit(*count, TripLimit::kCOUNT);
    IRecurrenceLayer* state = loop->addRecurrence(*before);
    ITensor* inside = m.add(state->getOutput(0), x);
    inside->setName("inside");
    state->setInput(1, *inside);
    ITensor* last = loop->addLoopOutput(*state->getOutput(0), LoopOutput::kLAST_VALUE)->getOutput(0);
    last->setName("last");
    m.output(m.network->addActivation(*last, ActivationType::kTANH)->getOutput(0), "y");
    MinMaxCalibrator c;
    c.fill("x", 12, 2);
    m.config->setInt8Calibrator(&c);
    ASSERT_TRUE(m.plan()) << m.errors();
    std::map<std::string, float> const scales = scalesOf(c.cache);
    float most = 0, relu = 0;
    for (auto const& batch : c.batches["x"])
        for (float v : batch) {
            relu = std::max(relu, v);
            most = std::max(most, std::abs(std::max(v, 0.0F) + 5 * v));
        }
    EXPECT_FLOAT_EQ(scales.at("before"), relu / 127);
    EXPECT_FLOAT_EQ(scales.at("last"), most / 127);
    EXPECT_FALSE(scales.contains("inside")) << c.cache;
    int said = 0;
    for (auto const& l : m.logger.lines)
        said += contains(l.text, "tensors within loops and conditionals get no scales");
    EXPECT_EQ(said, 1);
}

TEST(Calibration, ShapeTensorsHaveTheProfilesValues)
{
    Maker m;
    m.config->setFlag(BuilderFlag::kINT8);
    ITensor* x = m.input("x", {-1, 6});
    ITensor* shape = m.input("shape", {2}, DataType::kINT32);
    IShuffleLayer* reshape = m.network->addShuffle(*m.relu(x));
    reshape->setInput(1, *shape);
    m.output(reshape->getOutput(0), "y");
    m.profile({{"x", {1, 6}, {4, 6}, {8, 6}}}, {{"shape", {1, 6}, {3, 8}, {48, 8}}});
    MinMaxCalibrator c;
    c.fill("x", 24, 2);
    m.config->setInt8Calibrator(&c);
    ASSERT_TRUE(m.plan()) << m.errors();
    EXPECT_EQ(c.names[0], (std::vector<std::string>{"x"})); // nobody is asked for the other
    EXPECT_FALSE(scalesOf(c.cache).contains("shape"));
    EXPECT_TRUE(scalesOf(c.cache).contains("y")) << c.cache;
}

// Samples have the input's type.
TEST(Calibration, HalfInputsAndIndices)
{
    Maker m;
    m.config->setFlag(BuilderFlag::kINT8);
    ITensor* x = m.input("x", {8}, DataType::kHALF);
    ITensor* index = m.input("index", {4}, DataType::kINT32);
    m.output(m.network->addGather(*m.relu(x), *index, 0)->getOutput(0), "y");
    struct Samples final : MinMaxCalibrator
    {
        bool getBatch(void* bindings[], char const* names[], int32_t count) noexcept override
        {
            for (int32_t i = 0; i < count; ++i)
                bindings[i] = std::strcmp(names[i], "x") == 0 ? static_cast<void*>(half) : indices;
            return next++ == 0;
        }
        uint16_t half[8] = {0x3c00, 0x4000, 0xc400, 0, 0, 0, 0x4200, 0x3800}; // 1 2 -4 0 0 0 3 0.5
        int32_t indices[4] = {0, 1, 2, 7};
    } c;
    m.config->setInt8Calibrator(&c);
    ASSERT_TRUE(m.plan()) << m.errors();
    std::map<std::string, float> const scales = scalesOf(c.cache);
    EXPECT_EQ(scales.at("x"), 4.0F / 127);
    EXPECT_EQ(scales.at("y"), 2.0F / 127); // 3 is not looked up
    EXPECT_FALSE(scales.contains("index"));
}
