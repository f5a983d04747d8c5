// SPDX-License-Identifier: Apache-2.0
// Histograms against a count in doubles, whatever the order, the number of threads and the instruction set.
#include "calibrate/histogram.h"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "device/thread_pool.h"
#include "kernels/cpu/magnitudes.h"
#include "tactic/cpu_tactic.h"

namespace tw::test {

using namespace calibrate;

namespace {

Tensor tensorOf(std::vector<double> const& values, DataType type = DataType::kFloat)
{
    Tensor t(type, {int64_t(values.size())});
    for (size_t i = 0; i < values.size(); ++i)
        t.ref().set(int64_t(i), values[i]);
    return t;
}

std::vector<double> normals(int n, double sigma, unsigned seed)
{
    std::mt19937 random(seed);
    std::normal_distribution<double> normal(0, sigma);
    std::vector<double> v;
    for (int i = 0; i < n; ++i)
        v.push_back(i % 7 == 0 ? 0 : normal(random));
    return v;
}

// The bin of a value by exact arithmetic; values so close to a border that rounding decides are told apart.
bool isNearBorder(double x, Histogram const& h)
{
    double const at = std::fabs(x) / h.binWidth();
    return std::fabs(at - std::round(at)) < 1e-3;
}

} // namespace

TEST(Histogram, CountsWhatIsThere)
{
    for (int n : {1, 7, 8, 15, 16, 17, 31, 63, 64, 65, 16383, 16384, 16385, 70000}) {
        std::vector<double> const values = normals(n, 3, unsigned(n));
        Histogram h;
        Tally(serialWorkers()).add(tensorOf(values).ref(), h);
        EXPECT_EQ(h.count(), uint64_t(n));
        double largest = 0;
        uint64_t zeros = 0;
        for (double v : values) {
            largest = std::max(largest, double(std::fabs(float(v))));
            zeros += v == 0;
        }
        EXPECT_EQ(h.largest, float(largest)) << n;
        EXPECT_EQ(h.zeros, zeros) << n;
        if (largest == 0)
            continue;
        EXPECT_EQ(h.range(), largest) << n;
        std::vector<int64_t> left(h.bins.begin(), h.bins.end());
        int64_t open = 0;
        for (double v : values)
            if (v != 0 && !isNearBorder(float(v), h))
                --left[size_t(std::fabs(float(v)) / h.binWidth())];
            else
                open += v != 0;
        for (int64_t l : left) {
            EXPECT_GE(l, 0) << n;
            open -= l;
        }
        EXPECT_EQ(open, 0) << n;
    }
}

TEST(Histogram, GrowsByPowersOfTwo)
{
    Tally tally(serialWorkers());
    Histogram h;
    tally.add(tensorOf({0, 0}).ref(), h);
    EXPECT_EQ(h.first, 0);
    tally.add(tensorOf({0.5, -1, 0.25}).ref(), h);
    EXPECT_EQ(h.range(), 1);
    tally.add(tensorOf({-2.5}).ref(), h);
    EXPECT_EQ(h.range(), 4);
    EXPECT_EQ(h.largest, 2.5f);
    EXPECT_EQ(h.zeros, 2u);
    // 1 was in the last bin of the first range, which ends there.
    EXPECT_EQ(h.bins[511] + h.bins[512], 1u);
    EXPECT_EQ(h.bins[256] + h.bins[255], 1u);
    EXPECT_EQ(h.bins[128] + h.bins[127], 1u);
    EXPECT_EQ(h.bins[1280] + h.bins[1279], 1u);
    EXPECT_EQ(h.count(), 6u);
    tally.add(tensorOf({4}).ref(), h);
    EXPECT_EQ(h.range(), 4);
    EXPECT_EQ(h.bins[2047], 1u);
    // Far more: everything is in the first bin.
    tally.add(tensorOf({1e30}).ref(), h);
    EXPECT_EQ(h.bins[0], 5u);
    EXPECT_EQ(h.count(), 8u);
}

TEST(Histogram, ExtremesOfFloats)
{
    Tally tally(serialWorkers());
    Histogram h;
    tally.add(tensorOf({1e-45, 1e-40}).ref(), h);
    EXPECT_EQ(h.count(), 2u);
    EXPECT_EQ(h.zeros, 0u);
    tally.add(tensorOf({3.4e38, -1}).ref(), h);
    EXPECT_EQ(h.count(), 4u);
    EXPECT_GE(h.range(), 3.4e38);
    EXPECT_TRUE(h.isFinite);
    tally.add(tensorOf({1, NAN}).ref(), h);
    EXPECT_FALSE(h.isFinite);
    for (double bad : {double(INFINITY), -double(INFINITY), double(NAN)}) {
        Histogram first;
        tally.add(tensorOf({bad, 1}).ref(), first);
        EXPECT_FALSE(first.isFinite) << bad;
    }
}

TEST(Histogram, HalfIsCountedAsItsFloats)
{
    std::vector<double> const values = normals(40000, 2, 5);
    Tensor const half = tensorOf(values, DataType::kHalf);
    Tensor same(DataType::kFloat, half.dims());
    for (int64_t i = 0; i < half.count(); ++i)
        same.ref().set(i, half.ref().get(i));
    Histogram a, b;
    Tally(serialWorkers()).add(half.ref(), a);
    Tally(serialWorkers()).add(same.ref(), b);
    EXPECT_EQ(a, b);
    EXPECT_EQ(a.count(), 40000u);
}

// Gaps hold what nobody has written.
TEST(Histogram, EveryFormatIsCountedWithoutItsGaps)
{
    Extents const dims{2, 19, 30, 31};
    Tensor plain(DataType::kFloat, dims);
    std::vector<double> const values = normals(int(dims.volume()), 2, 8);
    for (int64_t i = 0; i < plain.count(); ++i)
        plain.ref().set(i, values[size_t(i)]);
    Histogram expected;
    Tally(serialWorkers()).add(plain.ref(), expected);
    for (Format f : kFormats)
        for (DataType type : {DataType::kFloat, DataType::kHalf}) {
            Tensor t(type, dims, f);
            for (int64_t i = 0; i < storageCount(f, type, dims); ++i)
                t.ref().set(i, 1000);
            for (int64_t i = 0; i < t.count(); ++i)
                t.ref().set(t.ref().place(i), values[size_t(i)]);
            Histogram h;
            Tally(serialWorkers()).add(t.ref(), h);
            EXPECT_EQ(h.count(), uint64_t(dims.volume())) << nameOf(f);
            EXPECT_LT(h.largest, 20) << nameOf(f);
            EXPECT_TRUE(type == DataType::kHalf || h == expected) << nameOf(f);
        }
    // A part of a larger tensor: channels 5 to 11 of 19.
    Tensor whole(DataType::kFloat, dims, Format::kChannelsLast);
    for (int64_t i = 0; i < whole.count(); ++i)
        whole.ref().set(whole.ref().place(i), values[size_t(i)]);
    TensorRef part = whole.ref();
    part.stride = part.pixelStride();
    part.dims = {2, 7, 30, 31};
    part.data = part.as<float>() + 5;
    Tensor alone(DataType::kFloat, part.dims);
    for (int64_t i = 0; i < alone.count(); ++i)
        alone.ref().set(i, part.get(part.place(i)));
    Histogram a, b;
    Tally(serialWorkers()).add(part, a);
    Tally(serialWorkers()).add(alone.ref(), b);
    EXPECT_EQ(a, b);
}

// Ranges that grow in the middle of a batch, in some workers before others.
TEST(Histogram, EveryThreadCountAndBatchSizeGivesTheSame)
{
    std::vector<double> values = normals(300000, 1, 9);
    for (size_t i = 0; i < values.size(); ++i)
        values[i] *= std::exp2(double(i / 30000)); // ever larger
    Histogram const expected = [&] {
        Histogram h;
        Tally tally(serialWorkers());
        tally.add(tensorOf({values.begin(), values.begin() + 1000}).ref(), h);
        tally.add(tensorOf({values.begin() + 1000, values.end()}).ref(), h);
        return h;
    }();
    EXPECT_GT(expected.doublings, 5);
    for (int threads : {2, 3, 7}) {
        device::ThreadPool pool(threads);
        for (size_t step : {1000u, 77777u, 299000u}) {
            Histogram h;
            Tally tally(pool.workers());
            tally.add(tensorOf({values.begin(), values.begin() + 1000}).ref(), h);
            for (size_t at = 1000; at < values.size(); at += step)
                tally.add(
                    tensorOf({values.begin() + long(at), values.begin() + long(std::min(at + step, values.size()))})
                        .ref(),
                    h);
            EXPECT_EQ(h, expected) << threads << " threads, " << step;
        }
    }
}

TEST(Histogram, EveryInstructionSetGivesTheSame)
{
    using kernels::jit::Isa;
    std::vector<std::pair<char const*, kernels::MagnitudeKernels const*>> tables;
    if (ops::supportsIsa(ops::thisCpu(), Isa::kAvx2).ok)
        tables.emplace_back("AVX2", &avx2::kMagnitudes);
    if (ops::supportsIsa(ops::thisCpu(), Isa::kAvx512).ok)
        tables.emplace_back("AVX-512", &avx512::kMagnitudes);
    ASSERT_FALSE(tables.empty()) << "this CPU has neither AVX2 nor AVX-512";
    std::vector<float> x;
    for (double v : normals(5000, 0.7, 3))
        x.push_back(float(v));
    auto countsOf = [&](kernels::MagnitudeKernels const& k, float const* from, int64_t n, float perUnit) {
        std::vector<uint32_t> counts(kernels::kMagnitudeCopies * kernels::kMagnitudeCounters);
        k.count(from, n, perUnit, counts.data());
        std::vector<uint32_t> sums(kBins);
        for (int c = 0; c < kernels::kMagnitudeCopies; ++c)
            for (int b = 0; b < kBins; ++b)
                sums[size_t(b)] += counts[size_t(c * kernels::kMagnitudeCounters + b)];
        return sums;
    };
    for (auto const& [name, k] : tables)
        for (int64_t n = 0; n < 200; ++n)
            for (float perUnit : {1.f, 700.3f, 1e6f}) {
                float const* from = x.data() + n * 7 % 31;
                EXPECT_EQ(k->largest(from, n), kernels::kPlainMagnitudes.largest(from, n)) << name << " " << n;
                EXPECT_EQ(countsOf(*k, from, n, perUnit), countsOf(kernels::kPlainMagnitudes, from, n, perUnit))
                    << name << " " << n << " " << perUnit;
            }
}

} // namespace tw::test
