// SPDX-License-Identifier: Apache-2.0
#include "device/large_pages.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace tw::device {

namespace {

bool isZero(float const* p, int64_t count)
{
    return std::all_of(p, p + count, [](float v) { return v == 0; });
}

TEST(LargePages, MapsWhatWasAskedFor)
{
    for (size_t bytes : {size_t(1), size_t(4097), kLargePageBytes - 1, kLargePageBytes, 3 * kLargePageBytes + 5}) {
        auto* p = static_cast<char*>(mapLargePages(bytes));
        ASSERT_NE(p, nullptr);
        EXPECT_EQ(reinterpret_cast<uintptr_t>(p) % kLargePageBytes, 0u);
        EXPECT_EQ(p[0], 0);
        p[bytes - 1] = 1;
        unmapLargePages(p, bytes);
    }
    EXPECT_EQ(mapLargePages(0), nullptr);
    EXPECT_EQ(mapLargePages(SIZE_MAX), nullptr);
}

// Blocks of all sizes come and go on several threads; each is zero at first, aligned, and nobody else's.
TEST(LargePages, BlocksAreTheirOwn)
{
    auto work = [](unsigned seed) {
        std::mt19937 random(seed);
        std::vector<std::pair<PackedFloats, int64_t>> held;
        for (int i = 0; i < 200; ++i) {
            int64_t const count = int64_t(1) << (random() % 20);
            PackedFloats block(count + int64_t(random() % 7));
            ASSERT_NE(block.data(), nullptr);
            EXPECT_EQ(reinterpret_cast<uintptr_t>(block.data()) % 64, 0u);
            EXPECT_TRUE(isZero(block.data(), count));
            std::fill(block.data(), block.data() + count, float(i));
            held.emplace_back(std::move(block), count);
            if (held.size() > 10) {
                auto& [old, size] = held[random() % held.size()];
                float const first = old.data()[0];
                EXPECT_TRUE(std::all_of(old.data(), old.data() + size, [=](float v) { return v == first; }));
                old = PackedFloats(); // given back when it goes, at the latest
                std::swap(held.back(), *std::find_if(held.begin(), held.end(),
                                                     [](auto const& h) { return h.first.data() == nullptr; }));
                held.pop_back();
            }
        }
    };
    std::thread other(work, 1);
    work(2);
    other.join();
}

TEST(LargePages, EmptyHasAnAddressAndTooMuchHasNone)
{
    EXPECT_NE(PackedFloats(0).data(), nullptr);
    EXPECT_EQ(PackedFloats(-1).data(), nullptr);
    EXPECT_EQ(PackedFloats(INT64_MAX / 4).data(), nullptr);
    EXPECT_EQ(PackedFloats(INT64_MAX / 9).data(), nullptr);
    PackedFloats a(100000), b(std::move(a));
    EXPECT_EQ(a.data(), nullptr);
    EXPECT_NE(b.data(), nullptr);
}

} // namespace

} // namespace tw::device
