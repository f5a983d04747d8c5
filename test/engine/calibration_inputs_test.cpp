// SPDX-License-Identifier: Apache-2.0
// Calibration of networks whose inputs are INT8: samples are FP32 numbers from -128 to 127, the integers that the engine
// will get, and the input's dynamic range says what they stand for. Without a range samples are these numbers.
#include <cmath>
#include <cstring>

#include "engine/calibrators.h"
#include "engine/engines.h"

using namespace tw::test;

namespace {

constexpr float kRange = 2;
constexpr size_t kElements = 2 * 3 * 8 * 8;

// x [2, 3, 8, 8], INT8 or the FP32 numbers that it stands for -> conv1 -> relu -> conv2 -> y
struct Int8InputNet : Maker
{
    explicit Int8InputNet(DataType type)
    {
        std::mt19937 random(5);
        std::normal_distribution<float> normal(0, 0.2F);
        for (float& w : weights)
            w = normal(random);
        ITensor* x = input("x", {2, 3, 8, 8}, type);
        if (type == DataType::kINT8)
            x->setDynamicRange(-kRange, kRange);
        ILayer* conv1 = network->addConvolutionNd(*x, 16, Dims2(3, 3), of(16 * 3 * 9), {});
        conv1->getOutput(0)->setName("conv1");
        ITensor* r = relu(conv1->getOutput(0));
        r->setName("relu");
        output(network->addConvolutionNd(*r, 4, Dims2(3, 3), of(4 * 16 * 9), {})->getOutput(0), "y");
        config->setFlag(BuilderFlag::kINT8);
    }
    Weights of(int64_t count) const { return {DataType::kFLOAT, weights.data(), count}; }
    std::vector<float> weights = std::vector<float>(4 * 16 * 9);
};

std::vector<std::vector<float>> integerBatches(size_t count)
{
    std::mt19937 random(11);
    std::vector<std::vector<float>> batches(count, std::vector<float>(kElements));
    for (auto& b : batches)
        for (float& v : b)
            v = float(int(random() % 256) - 128);
    batches[0][0] = -128;
    batches[0][1] = 127;
    return batches;
}

template <class Kind>
std::map<std::string, float> calibrated(DataType type)
{
    Kind c;
    c.batches["x"] = integerBatches(3);
    if (type == DataType::kFLOAT)
        for (auto& b : c.batches["x"])
            for (float& v : b)
                v *= kRange / 127;
    Int8InputNet n(type);
    n.config->setInt8Calibrator(&c);
    EXPECT_TRUE(n.plan()) << n.errors();
    return scalesOf(c.cache);
}

TEST(CalibrationOfInt8Inputs, IsThatOfTheNumbersTheyStandFor)
{
    for (bool isEntropy : {false, true}) {
        auto const want = isEntropy ? calibrated<EntropyCalibrator2>(DataType::kFLOAT)
                                    : calibrated<MinMaxCalibrator>(DataType::kFLOAT);
        auto const got =
            isEntropy ? calibrated<EntropyCalibrator2>(DataType::kINT8) : calibrated<MinMaxCalibrator>(DataType::kINT8);
        EXPECT_EQ(got.size(), 4U);
        for (auto const& [name, scale] : want) {
            ASSERT_TRUE(got.contains(name)) << name;
            EXPECT_GT(scale, 0) << name;
            EXPECT_EQ(got.at(name), scale) << name;
        }
    }
    // -128 is the largest magnitude of all.
    EXPECT_FLOAT_EQ(calibrated<MinMaxCalibrator>(DataType::kINT8).at("x"), kRange / 127 * 128 / 127);
}

TEST(CalibrationOfInt8Inputs, GivesAnEngineThatTakesIntegers)
{
    EntropyCalibrator2 c;
    c.batches["x"] = integerBatches(3);
    Int8InputNet n(DataType::kINT8), plain(DataType::kFLOAT);
    n.config->setInt8Calibrator(&c);
    auto const engine = n.engine();
    ASSERT_TRUE(engine) << n.errors();
    plain.config->clearFlag(BuilderFlag::kINT8);
    auto const floats = plain.engine();
    ASSERT_TRUE(floats) << plain.errors();
    EXPECT_EQ(engine->getTensorDataType("x"), DataType::kINT8);
    std::vector<float> x = integerBatches(1)[0], y(2 * 4 * 4 * 4), want(y.size());
    std::vector<int8_t> integers(x.begin(), x.end());
    void* bindings[] = {integers.data(), y.data()};
    ASSERT_TRUE(contextOf(*engine)->executeV2(bindings)) << n.errors();
    for (float& v : x)
        v *= kRange / 127;
    void* others[] = {x.data(), want.data()};
    ASSERT_TRUE(contextOf(*floats)->executeV2(others));
    double difference = 0, size = 0;
    for (size_t i = 0; i < y.size(); ++i) {
        difference += std::pow(y[i] - want[i], 2);
        size += std::pow(want[i], 2);
    }
    EXPECT_GT(size, 1);
    EXPECT_LT(difference, 1e-3 * size);
}

// Without a range the input is a tensor as any other: samples are the numbers that it stands for, and its scale is what
// calibration says; so is that of an INT8 output. However the client came to an INT8 input.
TEST(CalibrationOfInt8Inputs, WithoutARangeCalibrationSaysTheScale)
{
    for (bool isChanged : {false, true}) {
        MinMaxCalibrator c, again;
        c.batches["x"] = integerBatches(3);
        for (auto& b : c.batches["x"])
            for (float& v : b)
                v *= kRange / 128;
        Int8InputNet plain(DataType::kFLOAT);
        again.batches = c.batches;
        plain.config->setInt8Calibrator(&again);
        auto const floats = plain.engine();
        ASSERT_TRUE(floats) << plain.errors();

        Int8InputNet n(isChanged ? DataType::kFLOAT : DataType::kINT8);
        n.network->getInput(0)->resetDynamicRange();
        n.network->getInput(0)->setType(DataType::kINT8);
        n.network->getOutput(0)->setType(DataType::kINT8);
        n.config->setInt8Calibrator(&c);
        for (bool isCached : {false, true}) {
            n.logger.lines.clear();
            auto const engine = n.engine();
            ASSERT_TRUE(engine) << n.errors();
            EXPECT_EQ(n.logger.warnings(), 0);
            EXPECT_EQ(c.cache, again.cache) << isChanged << isCached;
            EXPECT_EQ(c.calls.back(), isCached ? "readCalibrationCache" : "writeCalibrationCache");
            auto const scales = scalesOf(c.cache);
            EXPECT_FLOAT_EQ(scales.at("x"), kRange / 127);
            EXPECT_EQ(engine->getTensorDataType("x"), DataType::kINT8);
            EXPECT_EQ(engine->getTensorDataType("y"), DataType::kINT8);
            std::vector<float> x = integerBatches(1)[0], want(2 * 4 * 4 * 4);
            std::vector<int8_t> integers(x.begin(), x.end()), y(want.size());
            void* bindings[] = {integers.data(), y.data()};
            ASSERT_TRUE(contextOf(*engine)->executeV2(bindings)) << n.errors();
            for (float& v : x)
                v *= scales.at("x");
            void* others[] = {x.data(), want.data()};
            ASSERT_TRUE(contextOf(*floats)->executeV2(others));
            double difference = 0, size = 0;
            for (size_t i = 0; i < y.size(); ++i) {
                difference += std::pow(y[i] * scales.at("y") - want[i], 2);
                size += std::pow(want[i], 2);
            }
            EXPECT_GT(size, 1);
            EXPECT_LT(difference, 2e-3 * size);
        }
    }
}

// A cache without the tensor, and no calibrator at all: its name is said.
TEST(CalibrationOfInt8Inputs, WithoutAScaleAreRefused)
{
    MinMaxCalibrator c;
    c.cache = "TRT-8503-MinMaxCalibration\ny: 3c010204\n";
    Int8InputNet n(DataType::kFLOAT);
    n.network->getInput(0)->setType(DataType::kINT8);
    for (IInt8Calibrator* calibrator : {static_cast<IInt8Calibrator*>(&c), static_cast<IInt8Calibrator*>(nullptr)}) {
        n.config->setInt8Calibrator(calibrator);
        n.takeErrors();
        EXPECT_FALSE(n.plan());
        EXPECT_TRUE(n.oneError("network input 'x' is INT8 and has no scale"));
    }
}

TEST(CalibrationOfInt8Inputs, RefusesWhatIsNoSuchNumber)
{
    for (float bad : {127.5F, 128.F, -128.5F, -1e9F, INFINITY, NAN}) {
        MinMaxCalibrator c;
        c.batches["x"] = integerBatches(2);
        c.batches["x"][1][7] = bad;
        Int8InputNet n(DataType::kINT8);
        n.config->setInt8Calibrator(&c);
        EXPECT_FALSE(n.plan());
        std::string const errors = n.errors();
        EXPECT_TRUE(n.oneError("from -128 to 127")) << bad;
        for (char const* part : {"batch 1", "element 7", "'x'"})
            EXPECT_TRUE(contains(errors, part)) << errors;
        EXPECT_EQ(c.cache, "") << "nothing half-written";
    }
}

} // namespace
