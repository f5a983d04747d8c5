// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "NvUtils.h"

using namespace nvinfer1;

namespace {

TEST(Utils, ReshapeWeightsTransposes)
{
    std::vector<float> in(2 * 3), out(6, -1);
    std::iota(in.begin(), in.end(), 0.F);
    int32_t const shape[] = {2, 3}, order[] = {1, 0};
    EXPECT_TRUE(utils::reshapeWeights({DataType::kFLOAT, in.data(), 6}, shape, order, out.data(), 2));
    EXPECT_EQ(out, (std::vector<float>{0, 3, 1, 4, 2, 5}));
}

TEST(Utils, ReshapeWeightsOfFourDimensions)
{
    // Shape [3,2,3,2] by (1,0,3,2) is [2,3,2,3]: out[b][a][d][c] = in[a][b][c][d].
    std::vector<int32_t> in(36), out(36, -1);
    std::iota(in.begin(), in.end(), 0);
    int32_t const shape[] = {3, 2, 3, 2}, order[] = {1, 0, 3, 2};
    EXPECT_TRUE(utils::reshapeWeights({DataType::kINT32, in.data(), 36}, shape, order, out.data(), 4));
    for (int a = 0; a < 3; ++a)
        for (int b = 0; b < 2; ++b)
            for (int c = 0; c < 3; ++c)
                for (int d = 0; d < 2; ++d)
                    EXPECT_EQ(out[size_t(((b * 3 + a) * 2 + d) * 3 + c)], ((a * 2 + b) * 3 + c) * 2 + d);
}

TEST(Utils, ReshapeWeightsOfHalfAndByte)
{
    std::vector<uint16_t> half{1, 2, 3, 4}, halfOut(4);
    std::vector<int8_t> bytes{1, 2, 3, 4}, bytesOut(4);
    int32_t const shape[] = {2, 2}, order[] = {1, 0};
    EXPECT_TRUE(utils::reshapeWeights({DataType::kHALF, half.data(), 4}, shape, order, halfOut.data(), 2));
    EXPECT_TRUE(utils::reshapeWeights({DataType::kINT8, bytes.data(), 4}, shape, order, bytesOut.data(), 2));
    EXPECT_EQ(halfOut, (std::vector<uint16_t>{1, 3, 2, 4}));
    EXPECT_EQ(bytesOut, (std::vector<int8_t>{1, 3, 2, 4}));
}

TEST(Utils, ReshapeWeightsRefuses)
{
    std::vector<float> in(6), out(6);
    int32_t const shape[] = {2, 3}, order[] = {1, 0}, twice[] = {1, 1}, far[] = {0, 2}, zero[] = {0, 3};
    Weights const w{DataType::kFLOAT, in.data(), 6};
    EXPECT_FALSE(utils::reshapeWeights(w, nullptr, order, out.data(), 2));
    EXPECT_FALSE(utils::reshapeWeights(w, shape, nullptr, out.data(), 2));
    EXPECT_FALSE(utils::reshapeWeights(w, shape, order, nullptr, 2));
    EXPECT_FALSE(utils::reshapeWeights({DataType::kFLOAT, nullptr, 6}, shape, order, out.data(), 2));
    EXPECT_FALSE(utils::reshapeWeights({DataType::kFLOAT, in.data(), 5}, shape, order, out.data(), 2));
    EXPECT_FALSE(utils::reshapeWeights(w, shape, twice, out.data(), 2));
    EXPECT_FALSE(utils::reshapeWeights(w, shape, far, out.data(), 2));
    EXPECT_FALSE(utils::reshapeWeights(w, zero, order, out.data(), 2));
    EXPECT_FALSE(utils::reshapeWeights(w, shape, order, out.data(), 0));
    EXPECT_FALSE(utils::reshapeWeights(w, shape, order, out.data(), 9));
    EXPECT_FALSE(utils::reshapeWeights({static_cast<DataType>(17), in.data(), 6}, shape, order, out.data(), 2));
}

TEST(Utils, ReorderSubBuffersPutsBlockIAtOrderI)
{
    // Gates i, c, f, o become f, i, c, o.
    std::vector<int16_t> gates{10, 11, 20, 21, 30, 31, 40, 41};
    int32_t const order[] = {1, 2, 0, 3};
    EXPECT_TRUE(utils::reorderSubBuffers(gates.data(), order, 4, 4));
    EXPECT_EQ(gates, (std::vector<int16_t>{30, 31, 10, 11, 20, 21, 40, 41}));
    int32_t const twice[] = {1, 1, 0, 3};
    EXPECT_FALSE(utils::reorderSubBuffers(gates.data(), twice, 4, 4));
    EXPECT_FALSE(utils::reorderSubBuffers(nullptr, order, 4, 4));
    EXPECT_FALSE(utils::reorderSubBuffers(gates.data(), nullptr, 4, 4));
    EXPECT_FALSE(utils::reorderSubBuffers(gates.data(), order, 0, 4));
    EXPECT_FALSE(utils::reorderSubBuffers(gates.data(), order, 4, -4));
}

TEST(Utils, TransposeSubBuffers)
{
    std::vector<float> m(2 * 2 * 3);
    std::iota(m.begin(), m.end(), 0.F);
    EXPECT_TRUE(utils::transposeSubBuffers(m.data(), DataType::kFLOAT, 2, 2, 3));
    EXPECT_EQ(m, (std::vector<float>{0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11}));
    EXPECT_FALSE(utils::transposeSubBuffers(nullptr, DataType::kFLOAT, 1, 2, 3));
    EXPECT_FALSE(utils::transposeSubBuffers(m.data(), DataType::kFLOAT, 0, 2, 3));
    EXPECT_FALSE(utils::transposeSubBuffers(m.data(), DataType::kFLOAT, 1, -2, 3));
    EXPECT_FALSE(utils::transposeSubBuffers(m.data(), static_cast<DataType>(-1), 1, 2, 3));
}

} // namespace
