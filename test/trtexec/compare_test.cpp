// SPDX-License-Identifier: Apache-2.0
#include "compare.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace tw::trtexec {
namespace {

RecordedTensor floats(std::vector<float> const& values)
{
    RecordedTensor t;
    t.dims = {static_cast<int64_t>(values.size())};
    t.data.resize(values.size() * sizeof(float));
    std::copy_n(reinterpret_cast<std::byte const*>(values.data()), t.data.size(), t.data.begin());
    return t;
}

Comparison run(std::vector<double> const& out, std::vector<float> const& ref, Tolerance t = {})
{
    return compareTensors(out, floats(ref), t);
}

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

TEST(Compare, Equal)
{
    Comparison const c = run({1, -2, 3}, {1, -2, 3});
    EXPECT_TRUE(c.passed);
    EXPECT_EQ(c.maxAbsolute, 0);
    EXPECT_EQ(c.maxRelative, 0);
    EXPECT_NEAR(c.cosine, 1, 1e-12);
}

TEST(Compare, NoiseAndSignal)
{
    Comparison const c = run({3, 4.5}, {3, 4});
    EXPECT_DOUBLE_EQ(c.noise, 0.25);
    EXPECT_DOUBLE_EQ(c.signal, 25);
    EXPECT_DOUBLE_EQ(c.sqnrDb(), 20);
    EXPECT_DOUBLE_EQ(c.relativeRms(), 0.1);
    EXPECT_EQ(run({1}, {1}).sqnrDb(), kInf);
    EXPECT_EQ(run({1}, {1}).relativeRms(), 0);
    EXPECT_EQ(run({1}, {0}).relativeRms(), kInf);
    EXPECT_EQ(run({0, kNan}, {0, 1}).relativeRms(), kInf);
    EXPECT_EQ(run({}, {}).relativeRms(), 0);
}

TEST(Compare, ToleranceIsASumOfTwoParts)
{
    // Allowed at the second element: 1e-5 * 100 + 1e-4 * 1 = 1.1e-3.
    EXPECT_TRUE(run({100, 1.00109}, {100, 1}).passed);
    Comparison const beyond = run({100, 1.00112}, {100, 1});
    EXPECT_FALSE(beyond.passed);
    EXPECT_EQ(beyond.failures, 1u);
    EXPECT_EQ(beyond.firstFailure, 1u);
    EXPECT_TRUE(run({100, 1.00112}, {100, 1}, {.rtol = 1e-3}).passed);
}

TEST(Compare, CosineCatchesWhatTheElementsAllow)
{
    Tolerance const loose{.atol = 10, .rtol = 0};
    Comparison const c = run({1, 0}, {0, 1}, loose);
    EXPECT_EQ(c.failures, 0u);
    EXPECT_EQ(c.cosine, 0);
    EXPECT_FALSE(c.passed);
}

TEST(Compare, ZerosAndEmpty)
{
    EXPECT_TRUE(run({0, 0}, {0, 0}).passed);
    EXPECT_FALSE(run({1e-3, 0}, {0, 0}).passed);
    EXPECT_FALSE(run({0, 0}, {1, 1}).passed);
    EXPECT_TRUE(run({}, {}).passed);
}

TEST(Compare, SpecialValuesMatchOnlyTheirLike)
{
    float const nan = std::nanf("");
    float const inf = std::numeric_limits<float>::infinity();
    EXPECT_TRUE(run({kNan, kInf, 1}, {nan, inf, 1}).passed);
    EXPECT_FALSE(run({kNan, 1}, {1, 1}).passed);
    EXPECT_FALSE(run({1, 1}, {nan, 1}).passed);
    EXPECT_FALSE(run({-kInf, 1}, {inf, 1}).passed);
    EXPECT_NE(comparisonText("y", run({kNan, 1}, {1, 1})).find("FAILED"), std::string::npos);
}

} // namespace
} // namespace tw::trtexec
