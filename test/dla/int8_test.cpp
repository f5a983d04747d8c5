// SPDX-License-Identifier: Apache-2.0
// Numbers of INT8 on a DLA: ranges, ties, what is promoted to FP16, calibrators, formats of integers.
#include "dla/dla_maker.h"
#include "engine/calibrators.h"

using namespace tw::test;

namespace {

struct Int8Maker : DlaMaker
{
    explicit Int8Maker(char const* model = "orin") : DlaMaker(model)
    {
        config->clearFlag(BuilderFlag::kFP16);
        config->setFlag(BuilderFlag::kINT8);
        config->setFlag(BuilderFlag::kGPU_FALLBACK);
    }
    static void range(ITensor* t, float most) { t->setDynamicRange(-most, most); }
    std::vector<float> run(std::vector<float> x, size_t count)
    {
        auto const made = engine();
        EXPECT_NE(made, nullptr) << errors();
        std::vector<float> y(count, -1000);
        if (!made)
            return y;
        Context const context = contextOf(*made);
        context->setTensorAddress("x", x.data());
        context->setTensorAddress("y", y.data());
        EXPECT_TRUE(context->enqueueV3(nullptr)) << errors();
        return y;
    }
};

// Weights that lie in the middle of two integers: the largest, 127, makes a step 1.
TEST(DlaInt8, WeightsTieToZero)
{
    std::vector<float> const weights{127, 2.5F, -2.5F, 0.5F, -0.5F, 1.5F, -1.5F, 0.49F, -126.5F};
    int const n = int(weights.size());
    std::vector<float> x(size_t(n * n), 0);
    for (int i = 0; i < n; ++i)
        x[size_t(i * n + i)] = 1;
    for (bool const onDla : {true, false}) {
        Int8Maker m;
        m.config->setFlag(BuilderFlag::kOBEY_PRECISION_CONSTRAINTS);
        m.config->setDefaultDeviceType(onDla ? DeviceType::kDLA : DeviceType::kGPU);
        auto* l = m.network->addConvolutionNd(*m.input("x", {1, n, 1, n}), 1, DimsHW(1, 1),
                                              {DataType::kFLOAT, weights.data(), n}, {DataType::kFLOAT, nullptr, 0});
        l->setPrecision(DataType::kINT8);
        m.range(l->getInput(0), 127);
        m.range(l->getOutput(0), 127);
        m.output(l->getOutput(0), "y");
        std::vector<float> const y = m.run(x, size_t(n));
        EXPECT_EQ(m.linesWith("[DlaLayer]").empty(), !onDla);
        std::vector<float> const zero{127, 2, -2, 0, 0, 1, -1, 0, -126}, up{127, 3, -2, 1, 0, 2, -1, 0, -126};
        EXPECT_EQ(y, onDla ? zero : up);
    }
}

TEST(DlaInt8, RangesClip)
{
    Int8Maker m;
    auto* l = m.network->addActivation(*m.input("x", {1, 1, 1, 6}), ActivationType::kRELU);
    m.range(l->getInput(0), 1);
    m.range(l->getOutput(0), 1);
    m.output(l->getOutput(0), "y");
    std::vector<float> const x{-2, -0.5F, 0.1F, 0.5F, 1, 3}, y = m.run(x, 6);
    EXPECT_TRUE(contains(m.linesWith("candidates"), "1 of 1")) << m.linesWith("DLA");
    for (size_t i = 0; i < 6; ++i)
        EXPECT_NEAR(y[i], std::nearbyint(std::clamp(x[i], 0.F, 1.F) * 127) / 127, 1e-6F) << i;
}

// Sigmoid, tanh and LRN have no INT8: their results are finer than the range's steps.
TEST(DlaInt8, PromotedLayers)
{
    for (bool const isTanh : {false, true}) {
        Int8Maker m;
        auto* l = m.network->addActivation(*m.input("x", {1, 1, 1, 64}),
                                           isTanh ? ActivationType::kTANH : ActivationType::kSIGMOID);
        m.range(l->getInput(0), 4);
        m.range(l->getOutput(0), 1);
        m.output(l->getOutput(0), "y");
        std::vector<float> x = ramp(64, -32);
        for (float& v : x)
            v *= 0.1F;
        std::vector<float> const y = m.run(x, 64);
        EXPECT_TRUE(contains(m.linesWith("candidates"), "1 of 1")) << m.linesWith("DLA");
        for (size_t i = 0; i < x.size(); ++i)
            EXPECT_NEAR(y[i], isTanh ? std::tanh(x[i]) : 1 / (1 + std::exp(-x[i])), 2e-3F) << isTanh << i;
    }
}

TEST(DlaInt8, Calibrators)
{
    auto fill = [](Int8Maker& m) {
        ITensor* x = m.input("x", {1, 4, 8, 8});
        auto* c = m.convolution(x, 8, {3, 3});
        auto* p = m.network->addPoolingNd(*c->getOutput(0), PoolingType::kMAX, DimsHW(2, 2));
        auto* d = m.convolution(p->getOutput(0), 8, {1, 1});
        m.output(d->getOutput(0), "y");
        return c;
    };
    Int8Maker good, bad;
    Calibrator<IInt8EntropyCalibrator2> entropy;
    entropy.fill("x", 256, 4);
    good.config->setInt8Calibrator(&entropy);
    ILayer* c = fill(good);
    EXPECT_TRUE(good.canRun(c)) << good.reason();
    // The pooling's two ranges become one; all is one loadable.
    ASSERT_TRUE(good.engine()) << good.errors();
    EXPECT_TRUE(contains(good.linesWith("[DlaLayer]"), "...")) << good.linesWith("DLA");
    EXPECT_TRUE(contains(good.linesWith("candidates"), "1 of 1")) << good.linesWith("DLA");
    Calibrator<IInt8MinMaxCalibrator> minMax;
    bad.config->setInt8Calibrator(&minMax);
    c = fill(bad);
    EXPECT_FALSE(bad.canRun(c));
    EXPECT_TRUE(contains(bad.reason(), "IInt8EntropyCalibrator2")) << bad.reason();
}

// Integers in and out in the formats of INT8: exact sums.
TEST(DlaInt8, FormatsOfIntegers)
{
    using enum TensorFormat;
    constexpr int kC = 4, kH = 2, kW = 67, kK = 33;
    std::vector<float> weights(kK * kC);
    std::mt19937 random(7);
    std::uniform_int_distribution<int> small(-3, 3);
    for (int k = 0; k < kK; ++k)
        for (int c = 0; c < kC; ++c)
            weights[size_t(k * kC + c)] = c == 3 ? 127.F : float(small(random)); // channel 3 of x is 0
    for (char const* model : {"orin", "xavier"})
        for (TensorFormat in : {kDLA_LINEAR, kDLA_HWC4, kCHW32})
            for (TensorFormat out : {kDLA_LINEAR, kCHW32}) {
                Int8Maker m(model);
                m.config->clearFlag(BuilderFlag::kGPU_FALLBACK);
                ITensor* x = m.input("x", {1, kC, kH, kW}, DataType::kINT8);
                x->setAllowedFormats(1U << int(in));
                m.range(x, 127);
                auto* l = m.network->addConvolutionNd(*x, kK, DimsHW(1, 1), {DataType::kFLOAT, weights.data(), kK * kC},
                                                      {DataType::kFLOAT, nullptr, 0});
                m.range(l->getOutput(0), 127);
                m.output(l->getOutput(0), "y");
                m.network->getOutput(0)->setType(DataType::kINT8);
                m.network->getOutput(0)->setAllowedFormats(1U << int(out));
                auto const engine = m.engine();
                ASSERT_NE(engine, nullptr) << m.errors();
                int const row = in == kDLA_LINEAR ? 128
                                : in == kDLA_HWC4 ? (std::string(model) == "orin" ? 80 : 72)
                                                  : kW;
                auto placeOfX = [&](int c, int h, int w) {
                    return in == kDLA_LINEAR ? (c * kH + h) * row + w
                           : in == kDLA_HWC4 ? (h * row + w) * 4 + c
                                             : (h * kW + w) * 32 + c;
                };
                auto placeOfY = [&](int k, int h, int w) {
                    return out == kDLA_LINEAR ? (k * kH + h) * 128 + w : ((k / 32 * kH + h) * kW + w) * 32 + k % 32;
                };
                std::vector<int8_t> bytes(size_t(in == kDLA_LINEAR ? kC * kH * row
                                                 : in == kDLA_HWC4 ? kH * row * 4
                                                                   : 32 * kH * kW),
                                          99),
                    y(size_t(out == kDLA_LINEAR ? kK * kH * 128 : 64 * kH * kW));
                std::vector<int> numbers(kC * kH * kW);
                for (int c = 0; c < kC; ++c)
                    for (int h = 0; h < kH; ++h)
                        for (int w = 0; w < kW; ++w) {
                            int const v = c == 3 ? 0 : small(random);
                            numbers[size_t((c * kH + h) * kW + w)] = v;
                            bytes[size_t(placeOfX(c, h, w))] = int8_t(v);
                        }
                Context const context = contextOf(*engine);
                context->setTensorAddress("x", bytes.data());
                context->setTensorAddress("y", y.data());
                ASSERT_TRUE(context->enqueueV3(nullptr)) << m.errors();
                for (int k = 0; k < kK; ++k)
                    for (int h = 0; h < kH; ++h)
                        for (int w = 0; w < kW; ++w) {
                            int want = 0;
                            for (int c = 0; c < kC; ++c)
                                want += int(weights[size_t(k * kC + c)]) * numbers[size_t((c * kH + h) * kW + w)];
                            ASSERT_EQ(y[size_t(placeOfY(k, h, w))], want)
                                << model << int(in) << int(out) << ' ' << k << h << w;
                        }
            }
}

} // namespace
