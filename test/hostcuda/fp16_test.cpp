// SPDX-License-Identifier: Apache-2.0
// __half against an independent reading of binary16: a value is sign * (1 + f/1024) * 2^(e-15), or f * 2^-24 for e = 0.
#include <cmath>
#include <limits>
#include <sstream>

#include <cuda_fp16.h>

#include "check.h"

namespace {

double valueOf(unsigned bits)
{
    int const e = static_cast<int>(bits >> 10 & 31);
    double const f = bits & 1023;
    double const size = e == 0 ? std::ldexp(f, -24) : std::ldexp(1024 + f, e - 25);
    return (bits & 0x8000) != 0 ? -size : size;
}

TEST(Half, ConvertsEveryValueToFloatAndBack)
{
    for (unsigned bits = 0; bits < 0x10000; ++bits) {
        __half const h = __ushort_as_half(static_cast<unsigned short>(bits));
        float const f = h;
        if ((bits & 0x7c00) == 0x7c00) {
            if ((bits & 0x3ff) != 0) {
                EXPECT_TRUE(std::isnan(f));
                EXPECT_TRUE(__hisnan(__half(f)));
            } else {
                EXPECT_TRUE(std::isinf(f));
                EXPECT_EQ(__half_as_ushort(__half(f)), bits);
            }
            continue;
        }
        ASSERT_EQ(static_cast<double>(f), valueOf(bits)) << bits;
        ASSERT_EQ(__half_as_ushort(__half(f)), bits);
        ASSERT_EQ(__half_as_ushort(__half(static_cast<double>(f))), bits);
    }
}

TEST(Half, RoundsToNearestEven)
{
    // Between each pair of neighbours: the middle goes to the even one, a hair beside it to the nearer one.
    for (unsigned bits = 0; bits < 0x7bff; ++bits) {
        float const low = static_cast<float>(valueOf(bits));
        float const high = static_cast<float>(valueOf(bits + 1));
        float const middle = (low + high) / 2; // exact in float
        unsigned const even = (bits & 1) == 0 ? bits : bits + 1;
        ASSERT_EQ(__half_as_ushort(__float2half(middle)), even) << bits;
        ASSERT_EQ(__half_as_ushort(__float2half(-middle)), even | 0x8000) << bits;
        ASSERT_EQ(__half_as_ushort(__float2half(std::nextafter(middle, 0.f))), bits);
        ASSERT_EQ(__half_as_ushort(__float2half(std::nextafter(middle, 1e30f))), bits + 1);
        // A double just beside the middle must not be rounded twice.
        double const d = middle;
        ASSERT_EQ(__half_as_ushort(__half(std::nextafter(d, 0.0))), bits);
        ASSERT_EQ(__half_as_ushort(__half(std::nextafter(d, 1e30))), bits + 1);
        ASSERT_EQ(__half_as_ushort(__half(-std::nextafter(d, 1e30))), (bits + 1) | 0x8000);
    }
    EXPECT_EQ(__half_as_ushort(__float2half(65519.f)), 0x7bff);
    EXPECT_EQ(__half_as_ushort(__float2half(65520.f)), 0x7c00);
    EXPECT_EQ(__half_as_ushort(__float2half(-1e9f)), 0xfc00);
    EXPECT_EQ(__half_as_ushort(__half(1e300)), 0x7c00);
    EXPECT_EQ(__half_as_ushort(__half(-1e-300)), 0x8000);
    EXPECT_EQ(__half_as_ushort(__half(std::numeric_limits<float>::denorm_min())), 0);
}

TEST(Half, ComputesAndMixesWithNumbers)
{
    __half h = 1.5f;
    __half const k = __half(2);
    h += k;
    EXPECT_EQ(static_cast<float>(h), 3.5f);
    EXPECT_EQ(static_cast<float>(h * k), 7.f);
    EXPECT_EQ(h * 2, 7.f);
    EXPECT_EQ(2.f - h, -1.5f);
    EXPECT_TRUE(h == 3.5f);
    EXPECT_TRUE(k < h);
    EXPECT_TRUE(-h < k);
    EXPECT_EQ(static_cast<int>(h), 3);
    EXPECT_EQ(__hisinf(__half(1e9f)), 1);
    EXPECT_EQ(__hisinf(__half(-1e9f)), -1);
    EXPECT_EQ(__high2float(__floats2half2_rn(1.f, 2.f)), 2.f);
    std::ostringstream text;
    text << h;
    EXPECT_EQ(text.str(), "3.5");
    static_assert(sizeof(__half) == 2 && sizeof(__half2) == 4, "binary16 is two bytes");
}

} // namespace
