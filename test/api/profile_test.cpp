// SPDX-License-Identifier: Apache-2.0
#include "api/builder/profile.h"

#include <cmath>

#include <gtest/gtest.h>

#include "api/client.h"

using namespace nvinfer1;
using namespace tw::test;

namespace {

constexpr auto kMin = OptProfileSelector::kMIN, kOpt = OptProfileSelector::kOPT, kMax = OptProfileSelector::kMAX;

struct Profile : testing::Test
{
    KeepingLogger logger;
    tw::api::Reporter reporter{&logger};
    tw::api::OptimizationProfileObject object{reporter};
    IOptimizationProfile& profile = object;
};

TEST_F(Profile, EmptyIsValid)
{
    EXPECT_TRUE(profile.isValid());
    EXPECT_EQ(profile.getDimensions("x", kMin).nbDims, -1);
    EXPECT_EQ(profile.getNbShapeValues("x"), -1);
    EXPECT_EQ(profile.getShapeValues("x", kOpt), nullptr);
    EXPECT_EQ(profile.getExtraMemoryTarget(), 1.0F);
    EXPECT_TRUE(logger.lines.empty());
}

TEST_F(Profile, NeedsAllThreePoints)
{
    EXPECT_TRUE(profile.setDimensions("x", kMin, Dims2(1, 8)));
    EXPECT_FALSE(profile.isValid());
    EXPECT_TRUE(profile.setDimensions("x", kOpt, Dims2(4, 8)));
    EXPECT_TRUE(profile.setDimensions("x", kMax, Dims2(16, 8)));
    EXPECT_TRUE(profile.isValid());
    EXPECT_EQ(profile.getDimensions("x", kOpt).d[0], 4);
    EXPECT_EQ(profile.getDimensions("x", kMax).d[0], 16);
}

TEST_F(Profile, RefusesFallingPoints)
{
    EXPECT_TRUE(profile.setDimensions("x", kOpt, Dims2(4, 8)));
    EXPECT_FALSE(profile.setDimensions("x", kMin, Dims2(5, 8)));
    EXPECT_TRUE(contains(logger.lastError(), "input 'x': kMIN [5,8] and kOPT [4,8]")) << logger.lastError();
    EXPECT_FALSE(profile.setDimensions("x", kMax, Dims2(4, 7)));
    EXPECT_FALSE(profile.setDimensions("x", kMax, Dims3(4, 8, 8)));
    EXPECT_TRUE(contains(logger.lastError(), "same number of entries"));
    EXPECT_EQ(profile.getDimensions("x", kMin).nbDims, -1) << "a refused point is not kept";
    EXPECT_EQ(logger.errors(), 3);
}

TEST_F(Profile, RefusesBadArguments)
{
    EXPECT_FALSE(profile.setDimensions(nullptr, kMin, Dims2(1, 1)));
    EXPECT_FALSE(profile.setDimensions("x", static_cast<OptProfileSelector>(3), Dims2(1, 1)));
    EXPECT_FALSE(profile.setDimensions("x", kMin, Dims2(-1, 1)));
    EXPECT_FALSE(profile.setDimensions("x", kMin, Dims{9, {}}));
    EXPECT_FALSE(profile.setDimensions("x", kMin, Dims{-1, {}}));
    EXPECT_EQ(logger.errors(), 5);
    EXPECT_EQ(profile.getDimensions(nullptr, kMin).nbDims, -1);
    EXPECT_EQ(profile.getDimensions("x", static_cast<OptProfileSelector>(-1)).nbDims, -1);
    EXPECT_EQ(profile.getNbShapeValues(nullptr), -1);
    EXPECT_TRUE(profile.isValid());
}

TEST_F(Profile, ShapeValuesAreCopied)
{
    int32_t values[] = {1, -2};
    EXPECT_TRUE(profile.setShapeValues("s", kMin, values, 2));
    values[0] = 99;
    EXPECT_EQ(profile.getShapeValues("s", kMin)[0], 1);
    EXPECT_EQ(profile.getNbShapeValues("s"), 2);
    EXPECT_EQ(profile.getShapeValues("s", kMax), nullptr);
    EXPECT_FALSE(profile.isValid());

    int32_t const low[] = {0, 0};
    EXPECT_FALSE(profile.setShapeValues("s", kOpt, low, 2)) << "below kMIN";
    EXPECT_FALSE(profile.setShapeValues("s", kOpt, values, 1)) << "another count";
    EXPECT_FALSE(profile.setShapeValues("s", kOpt, nullptr, 2));
    EXPECT_FALSE(profile.setShapeValues("s", kOpt, values, -1));
    EXPECT_FALSE(profile.setShapeValues("s", kOpt, values, 65));
    EXPECT_TRUE(profile.setShapeValues("s", kOpt, values, 2));
    EXPECT_TRUE(profile.setShapeValues("s", kMax, values, 2));
    EXPECT_TRUE(profile.isValid());
}

TEST_F(Profile, NoShapeValuesIsAValue)
{
    for (auto point : {kMin, kOpt, kMax})
        EXPECT_TRUE(profile.setShapeValues("s", point, nullptr, 0));
    EXPECT_EQ(profile.getNbShapeValues("s"), 0);
    EXPECT_TRUE(profile.isValid());
}

TEST_F(Profile, ExtraMemoryTarget)
{
    EXPECT_TRUE(profile.setExtraMemoryTarget(0));
    EXPECT_TRUE(profile.setExtraMemoryTarget(0.5F));
    EXPECT_FALSE(profile.setExtraMemoryTarget(-0.1F));
    EXPECT_FALSE(profile.setExtraMemoryTarget(1.1F));
    EXPECT_FALSE(profile.setExtraMemoryTarget(std::nanf("")));
    EXPECT_EQ(profile.getExtraMemoryTarget(), 0.5F);
}

} // namespace
