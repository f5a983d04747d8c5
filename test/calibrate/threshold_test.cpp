// SPDX-License-Identifier: Apache-2.0
// Thresholds: worked vectors, and a second implementation written as the publication's pseudocode reads.
#include "calibrate/threshold.h"

#include <cmath>
#include <limits>
#include <random>

#include <gtest/gtest.h>

namespace tw::test {

using namespace calibrate;

namespace {

// For each bin its level by division, sums by lists, everything anew for every position.
struct Naive
{
    static std::vector<double> expand(std::vector<double> const& p, int levels)
    {
        std::vector<std::vector<size_t>> members{size_t(levels)};
        for (size_t j = 0; j < p.size(); ++j)
            members[j * size_t(levels) / p.size()].push_back(j);
        std::vector<double> q(p.size(), 0);
        for (auto const& level : members) {
            double sum = 0, filled = 0;
            for (size_t j : level) {
                sum += p[j];
                filled += p[j] > 0 ? 1 : 0;
            }
            for (size_t j : level)
                if (p[j] > 0)
                    q[j] = sum / filled;
        }
        return q;
    }
    static double divergence(std::vector<double> const& bins, int i, int levels)
    {
        std::vector<double> p(bins.begin(), bins.begin() + i), q = expand(p, levels);
        double outliers = 0, sumP = 0, sumQ = 0, d = 0;
        for (size_t j = size_t(i); j < bins.size(); ++j)
            outliers += bins[j];
        p.back() += outliers;
        for (double x : p)
            sumP += x;
        for (double x : q)
            sumQ += x;
        for (size_t j = 0; j < p.size(); ++j) {
            if (p[j] > 0 && q[j] == 0)
                return std::numeric_limits<double>::infinity();
            if (p[j] > 0)
                d += p[j] / sumP * std::log((p[j] / sumP) / (q[j] / sumQ));
        }
        return sumP > 0 ? d : std::numeric_limits<double>::infinity();
    }
};

Histogram filled(std::function<double(std::mt19937&)> const& draw, int n, unsigned seed)
{
    std::mt19937 random(seed);
    Tensor t(DataType::kFloat, {n});
    for (int i = 0; i < n; ++i)
        t.ref().set(i, draw(random));
    Histogram h;
    Tally(serialWorkers()).add(t.ref(), h);
    return h;
}

} // namespace

TEST(Threshold, WorkedVectorOfTheGuide)
{
    std::vector<uint64_t> const p = {1, 0, 2, 3, 5, 3, 1, 7};
    EXPECT_EQ(throughLevels(p, 2), (std::vector<double>{2, 0, 2, 2, 4, 4, 4, 4}));
    // sum P log(P / Q), both divided by their sums (22 each).
    double d = 0;
    for (auto const& [a, b] : {std::pair(1., 2.), {2., 2.}, {3., 2.}, {5., 4.}, {3., 4.}, {1., 4.}, {7., 4.}})
        d += a / 22 * std::log(a / b);
    EXPECT_NEAR(divergence(p, 8, 2), d, 1e-15);
}

TEST(Threshold, OutliersGoToTheLastBinOfPAlone)
{
    // Position 4 of 6: P = 1 2 3 (4 + 5 + 6), Q of 1 2 3 4 by two levels = 1.5 1.5 3.5 3.5.
    std::vector<uint64_t> const bins = {1, 2, 3, 4, 5, 6};
    double const p[] = {1 / 21., 2 / 21., 3 / 21., 15 / 21.}, q[] = {.15, .15, .35, .35};
    double d = 0;
    for (int i = 0; i < 4; ++i)
        d += p[i] * std::log(p[i] / q[i]);
    EXPECT_NEAR(divergence(bins, 4, 2), d, 1e-15);
    // Nothing in the last bin, something behind it: no finite value.
    EXPECT_TRUE(std::isinf(divergence(std::vector<uint64_t>{1, 2, 0, 4}, 3, 2)));
    EXPECT_TRUE(std::isinf(divergence(std::vector<uint64_t>{0, 0, 0, 4}, 3, 2)));
    EXPECT_EQ(leastDivergence(std::vector<uint64_t>(2048, 0)), -1);
}

TEST(Threshold, PositionsThatAreNoMultipleOfTheLevels)
{
    // Five bins in two levels: bins 0, 1, 2 (0 * 2 / 5 .. 2 * 2 / 5 are below 1) and 3, 4.
    EXPECT_EQ(throughLevels(std::vector<uint64_t>{3, 0, 6, 1, 2}, 2), (std::vector<double>{4.5, 0, 4.5, 1.5, 1.5}));
}

TEST(Threshold, FewValues)
{
    // 16 grey levels: the first bin alone would do for D = 0, and clamp all the others.
    int i = 0;
    Histogram h = filled([&](auto&) { return (i++ % 16 + 1) / 16.; }, 1600, 1);
    EXPECT_EQ(divergence(h.bins, 128), divergence(h.bins, kBins));
    EXPECT_EQ(leastDivergence(h.bins), kBins);
    EXPECT_EQ(entropyThreshold(h), 1);
    // Two values, in a range that has doubled since the first.
    Tally tally(serialWorkers());
    h = filled([](auto&) { return 0.5; }, 10, 1);
    Tensor more(DataType::kFloat, {1000});
    for (int k = 0; k < 1000; ++k)
        more.ref().set(k, 0.75);
    tally.add(more.ref(), h);
    EXPECT_EQ(h.range(), 1);
    EXPECT_EQ(entropyThreshold(h), 0.75);
}

TEST(Threshold, AgreesWithASecondImplementation)
{
    std::normal_distribution<double> normal;
    std::exponential_distribution<double> steep;
    std::uniform_real_distribution<double> flat(-1, 1);
    std::vector<std::function<double(std::mt19937&)>> const draws = {
        [&](auto& r) { return normal(r); },
        [&](auto& r) { return std::max(normal(r), 0.); },
        [&](auto& r) { return steep(r) * steep(r); },
        [&](auto& r) { return flat(r); },
        [&](auto& r) { return flat(r) < 0.999 ? normal(r) * 0.01 : normal(r); },
        [&](auto& r) { return std::round(normal(r) * 20) / 4; }, // few bins are in use
    };
    for (size_t k = 0; k < draws.size(); ++k) {
        Histogram const h = filled(draws[k], 30000, unsigned(k));
        std::vector<double> const bins(h.bins.begin(), h.bins.end());
        double least = std::numeric_limits<double>::infinity();
        int m = -1;
        for (int i = 128; i <= kBins; ++i) {
            double const d = Naive::divergence(bins, i, 128), ours = divergence(h.bins, i);
            if (std::isinf(d))
                EXPECT_TRUE(std::isinf(ours)) << k << " " << i;
            else
                ASSERT_NEAR(ours, d, 1e-12) << k << " " << i;
            if (d <= least) {
                least = d;
                m = i;
            }
        }
        int const found = leastDivergence(h.bins);
        EXPECT_LE(Naive::divergence(bins, found, 128), least + 1e-12) << k;
        EXPECT_EQ(found, m) << k;
        EXPECT_DOUBLE_EQ(entropyThreshold(h), std::min((m + 0.5) * h.range() / 2048, double(h.largest))) << k;
    }
}

TEST(Threshold, ZerosDoNotCount)
{
    std::normal_distribution<double> normal;
    Histogram const h = filled([&](auto& r) { return normal(r); }, 100000, 1);
    Histogram more = h;
    more.zeros += 1000000;
    EXPECT_EQ(entropyThreshold(h), entropyThreshold(more));
    EXPECT_GT(entropyThreshold(h), h.largest / 2); // a normal distribution has no outliers to clip
}

// Of 10 and 100: what is beyond 50 is 50^2, of 10^2 + 100^2.
TEST(Threshold, WhatClampingCosts)
{
    Tensor t(DataType::kFloat, {2});
    t.ref().set(0, -10);
    t.ref().set(1, 100);
    Histogram h;
    EXPECT_EQ(clippedShare(h, 1), 0);
    Tally(serialWorkers()).add(t.ref(), h);
    EXPECT_NEAR(clippedShare(h, 50), 2500.0 / 10100, 1e-3);
    EXPECT_NEAR(clippedShare(h, 5), (25.0 + 9025) / 10100, 1e-3);
    EXPECT_EQ(clippedShare(h, 100), 0);
    EXPECT_EQ(clippedShare(h, 0), 0);
}

TEST(Threshold, OneValueOnly)
{
    Histogram const h = filled([](auto&) { return -3; }, 100, 1);
    EXPECT_EQ(entropyThreshold(h), 3);
    EXPECT_EQ(largestThreshold(h), 3);
    Histogram const zero = filled([](auto&) { return 0; }, 100, 1);
    EXPECT_EQ(zero.zeros, 100u);
    EXPECT_EQ(entropyThreshold(zero), 0);
    EXPECT_EQ(largestThreshold(zero), 0);
    EXPECT_EQ(quantileThreshold(zero, 0.5, 1), 0);
}

TEST(Threshold, Quantiles)
{
    // 1000 values 0.001 .. 1, and 1000 zeros.
    int i = 0;
    Histogram const h = filled([&](auto&) { return i++ % 2 ? (i / 2) / 1000. : 0.; }, 2000, 1);
    EXPECT_EQ(h.zeros, 1000u);
    double const step = h.binWidth();
    EXPECT_EQ(quantileThreshold(h, 1, 1), 1);
    EXPECT_NEAR(quantileThreshold(h, 0.75, 1), 0.5, step);
    EXPECT_NEAR(quantileThreshold(h, 0.9, 1), 0.8, step);
    EXPECT_EQ(quantileThreshold(h, 0.3, 1), step); // zeros are enough
    EXPECT_EQ(quantileThreshold(h, 1, 0.25), 0.25);
    EXPECT_EQ(quantileThreshold(h, 1, 0), 1); // no cutoff
}

TEST(Threshold, Scales)
{
    EXPECT_EQ(scaleOf(1), 1.f / 127);
    EXPECT_EQ(scaleOf(254), 2);
    EXPECT_EQ(scaleOf(0), 0);
    EXPECT_EQ(scaleOf(1e-38), 0); // no normal number
    EXPECT_EQ(scaleOf(1e300), 0);
}

} // namespace tw::test
