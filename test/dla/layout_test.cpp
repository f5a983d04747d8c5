// SPDX-License-Identifier: Apache-2.0
#include "dla/layout.h"

#include <gtest/gtest.h>

#include "dla/sparsity.h"

using namespace tw;
using namespace tw::dla;

namespace {

TEST(Layout, MemoryOfRows)
{
    auto memory = [](Layout l, Model m, DataType t, Extents const& d) { return memoryDims(l, m, t, d).str(); };
    using enum Model;
    // Rows of 64 bytes: 32 elements of 2 bytes, 64 of 1; just below, at and above.
    EXPECT_EQ(memory(Layout::kLinear, kOrin, DataType::kHalf, {1, 5, 7, 31}), Extents({1, 5, 7, 32}).str());
    EXPECT_EQ(memory(Layout::kLinear, kOrin, DataType::kHalf, {1, 5, 7, 32}), Extents({1, 5, 7, 32}).str());
    EXPECT_EQ(memory(Layout::kLinear, kXavier, DataType::kHalf, {1, 5, 7, 33}), Extents({1, 5, 7, 64}).str());
    EXPECT_EQ(memory(Layout::kLinear, kXavier, DataType::kInt8, {2, 5, 7, 65}), Extents({2, 5, 7, 128}).str());
    EXPECT_EQ(memory(Layout::kLinear, kXavier, DataType::kInt8, {5, 7, 64}), Extents({5, 7, 64}).str());
    // Pixels of 1 and 4 channels; rows of 32 bytes on Xavier, 64 on Orin.
    EXPECT_EQ(memory(Layout::kHwc4, kXavier, DataType::kHalf, {1, 3, 7, 5}), Extents({1, 7, 8, 4}).str());
    EXPECT_EQ(memory(Layout::kHwc4, kOrin, DataType::kHalf, {1, 3, 7, 9}), Extents({1, 7, 16, 4}).str());
    EXPECT_EQ(memory(Layout::kHwc4, kXavier, DataType::kHalf, {1, 4, 7, 9}), Extents({1, 7, 12, 4}).str());
    EXPECT_EQ(memory(Layout::kHwc4, kXavier, DataType::kInt8, {1, 1, 7, 33}), Extents({1, 7, 64, 1}).str());
    EXPECT_EQ(memory(Layout::kHwc4, kOrin, DataType::kInt8, {1, 1, 7, 65}), Extents({1, 7, 128, 1}).str());
    for (int64_t channels : {0, 2, 5})
        EXPECT_EQ(memoryDims(Layout::kHwc4, kOrin, DataType::kHalf, {1, channels, 7, 9}).rank, 0);
    EXPECT_EQ(memoryDims(Layout::kLinear, kOrin, DataType::kFloat, {1, 2, 3, 4}).rank, 0);
    EXPECT_EQ(memoryDims(Layout::kLinear, kOrin, DataType::kHalf, {3, 4}).rank, 0);
}

TEST(Layout, Strides)
{
    EXPECT_EQ(stridesOf(Layout::kLinear, {2, 5, 7, 32}).str(), Extents({1120, 224, 32, 1}).str());
    // Of n, c, h, w where memory is [n, h, w', c'].
    EXPECT_EQ(stridesOf(Layout::kHwc4, {2, 7, 8, 4}).str(), Extents({224, 1, 32, 4}).str());
}

TEST(Sparsity, EachCondition)
{
    SparseConvolution const good{true, false, 65, 64, 256 << 10};
    EXPECT_EQ(whyDense(Model::kOrin, good), "");
    EXPECT_NE(whyDense(Model::kXavier, good), "");
    auto with = [&](auto change) {
        SparseConvolution c = good;
        change(c);
        return whyDense(Model::kOrin, c);
    };
    EXPECT_NE(with([](auto& c) { c.isInt8 = false; }), "");
    EXPECT_NE(with([](auto& c) { c.readsImage = true; }), "");
    EXPECT_NE(with([](auto& c) { c.channels = 64; }), "");
    EXPECT_NE(with([](auto& c) { ++c.weights; }), "");
    for (int maps = 1; maps <= 200; ++maps) {
        int const rest = maps % 64;
        bool const fits = rest == 0 || (rest & (rest - 1)) == 0; // 1, 2, 4, ... 32: every power of 2 below 64
        EXPECT_EQ(with([&](auto& c) { c.maps = maps; }).empty(), fits) << maps;
    }
}

} // namespace
