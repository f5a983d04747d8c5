// SPDX-License-Identifier: Apache-2.0
// Refits of dynamic ranges.
#include <cmath>
#include <limits>
#include <random>

#include "engine/refits.h"

using namespace tw::test;

namespace {

// x -> conv1 -> relu -> conv2 -> conv3 with ranges.
struct Ranged : Maker
{
    explicit Ranged(float range, bool refittable = true)
    {
        config->setFlag(BuilderFlag::kINT8);
        if (refittable)
            config->setFlag(BuilderFlag::kREFIT);
        std::mt19937 random(3);
        std::normal_distribution<float> normal;
        for (float& w : weights)
            w = normal(random) / 16;
        ITensor* x = input("x", {1, 64, 16, 16});
        x->setDynamicRange(-2, 2);
        for (int i = 1; i <= 3; ++i) {
            IConvolutionLayer* l =
                network->addConvolutionNd(*x, 64, Dims2(3, 3), Weights{DataType::kFLOAT, weights.data(), 64 * 64 * 9},
                                          Weights{DataType::kFLOAT, nullptr, 0});
            l->setPaddingNd(Dims2(1, 1));
            l->setName(("conv" + std::to_string(i)).c_str());
            x = l->getOutput(0);
            x->setName(("c" + std::to_string(i)).c_str());
            x->setDynamicRange(-range, range);
            if (i == 1) {
                x = relu(x);
                x->setName("r");
                x->setDynamicRange(-range, range);
            }
        }
        output(x, "y");
    }
    std::vector<float> weights = std::vector<float>(64 * 64 * 9);
};

std::vector<std::string> rangesOf(IRefitter const& r)
{
    std::vector<char const*> names(size_t(r.getTensorsWithDynamicRange(0, nullptr)));
    EXPECT_EQ(r.getTensorsWithDynamicRange(int32_t(names.size()), names.data()), int32_t(names.size()));
    return {names.begin(), names.end()};
}

// Which type wins is the clock's: where FP32 does, there are no ranges (test/passes/refit_ranges_test.cpp has no clock).
TEST(RefitRanges, AreABuildWithThem)
{
    Ranged first(4), next(8);
    auto const engine = first.engine(), want = next.engine();
    ASSERT_TRUE(engine && want) << first.errors() << next.errors();
    auto const refitter = refitterOf(*engine, first.logger), other = refitterOf(*want, next.logger);
    ASSERT_TRUE(refitter && other);
    std::vector<std::string> const names = rangesOf(*refitter);
    if (names.empty() || rangesOf(*other) != names)
        GTEST_SKIP() << "FP32 was faster in one of the builds";
    std::vector<float> const before = run(*engine);
    EXPECT_FLOAT_EQ(refitter->getDynamicRangeMax("x"), 2);
    EXPECT_FLOAT_EQ(refitter->getDynamicRangeMin("x"), -2);
    EXPECT_EQ(refitter->getMissing(0, nullptr, nullptr), 0);
    for (std::string const& name : names)
        if (name != "x") {
            EXPECT_FLOAT_EQ(refitter->getDynamicRangeMax(name.c_str()), 4);
            EXPECT_TRUE(refitter->setDynamicRange(name.c_str(), -8, 3)) << first.errors();
            EXPECT_EQ(refitter->getDynamicRangeMax(name.c_str()), 8);
            EXPECT_EQ(refitter->getDynamicRangeMin(name.c_str()), -8);
        }
    EXPECT_EQ(run(*engine), before) << "nothing happens before the refit";
    ASSERT_TRUE(refitter->refitCudaEngine()) << first.errors();
    for (std::string const& name : names)
        EXPECT_FLOAT_EQ(refitter->getDynamicRangeMax(name.c_str()), name == "x" ? 2 : 8);
    std::vector<float> const got = run(*engine), wanted = run(*want);
    EXPECT_NE(got, before);
    for (size_t i = 0; i < got.size(); ++i)
        ASSERT_NEAR(got[i], wanted[i], 1e-4) << i;
    EXPECT_EQ(first.errors(), "");
}

TEST(RefitRanges, WhatIsNoRangeIsRefused)
{
    Ranged n(4);
    auto const engine = n.engine();
    ASSERT_TRUE(engine) << n.errors();
    auto const refitter = refitterOf(*engine, n.logger);
    n.takeErrors();
    for (char const* name : {"nobody", "y", "", static_cast<char const*>(nullptr)}) {
        EXPECT_FALSE(refitter->setDynamicRange(name, -1, 1));
        EXPECT_TRUE(n.oneError("getTensorsWithDynamicRange"));
        EXPECT_TRUE(std::isnan(refitter->getDynamicRangeMin(name)));
        EXPECT_TRUE(n.oneError("getDynamicRangeMin"));
        EXPECT_TRUE(std::isnan(refitter->getDynamicRangeMax(name)));
        EXPECT_TRUE(n.oneError("getDynamicRangeMax"));
    }
    EXPECT_EQ(refitter->getTensorsWithDynamicRange(-1, nullptr), 0);
    EXPECT_TRUE(n.oneError("negative"));
    std::vector<std::string> const names = rangesOf(*refitter);
    float const nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
    for (std::string const& name : names) {
        for (auto const& [min, max] : std::vector<std::pair<float, float>>{
                 {1, -1}, {0, 0}, {nan, 1}, {-1, nan}, {-infinity, 1}, {-1, infinity}, {-1e-40F, 1e-40F}}) {
            EXPECT_FALSE(refitter->setDynamicRange(name.c_str(), min, max)) << min << " " << max;
            EXPECT_TRUE(n.oneError(("'" + name + "'").c_str()));
        }
    }
    EXPECT_TRUE(refitter->refitCudaEngine());
}

// Ranges of INT8 inputs and outputs of the network are always there.
TEST(RefitRanges, OfInputsAndOutputsInInt8)
{
    auto define = [](Maker& m, float in, float out) {
        m.config->setFlag(BuilderFlag::kINT8);
        m.config->setFlag(BuilderFlag::kREFIT);
        ITensor* x = m.input("x", {2, 5}, DataType::kINT8);
        x->setDynamicRange(-in, in);
        ITensor* y = m.network->addUnary(*x, UnaryOperation::kABS)->getOutput(0);
        m.output(y, "y");
        y->setDynamicRange(-out, out);
        y->setType(DataType::kINT8);
    };
    auto runBytes = [](ICudaEngine& e) {
        std::vector<int8_t> in{0, 1, -1, 5, -5, 100, -100, 127, -128, 64}, out(10);
        void* bindings[] = {in.data(), out.data()};
        EXPECT_TRUE(contextOf(e)->executeV2(bindings));
        return out;
    };
    Maker first, next;
    define(first, 4, 4);
    define(next, 2, 8);
    auto const engine = first.engine(), want = next.engine();
    ASSERT_TRUE(engine && want) << first.errors() << next.errors();
    auto const refitter = refitterOf(*engine, first.logger);
    EXPECT_EQ(rangesOf(*refitter), (std::vector<std::string>{"x", "y"}));
    EXPECT_EQ(refitter->getAll(0, nullptr, nullptr), 0) << "ranges are no weights";
    ASSERT_TRUE(refitter->setDynamicRange("x", -2, 2));
    ASSERT_TRUE(refitter->setDynamicRange("y", -8, 8));
    EXPECT_NE(runBytes(*engine), runBytes(*want));
    ASSERT_TRUE(refitter->refitCudaEngine()) << first.errors();
    EXPECT_EQ(runBytes(*engine), runBytes(*want));
    EXPECT_EQ(refitter->getDynamicRangeMax("x"), 2);
    EXPECT_EQ(refitter->getDynamicRangeMin("y"), -8);
}

} // namespace
