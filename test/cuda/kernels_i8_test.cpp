// SPDX-License-Identifier: Apache-2.0
// The kernels of i8 sums by mma.sync and dp4a: what they refuse, how they are launched, and that NVRTC makes device code of
// them without spilled registers. Results: the ops' cases, where a GPU is.
#include <optional>

#include <gtest/gtest.h>

#include "compiles.h"
#include "kernels/cuda/conv/mma_nd.h"
#include "kernels/cuda/conv/stem.h"
#include "kernels/cuda/gemm/gemv_i8.h"
#include "kernels/cuda/gemm/mma.h"
#include "support/share_of_the_day.h"

namespace tw::test {

namespace {

cuda::IntegerEnd endOf(DataType store, std::optional<DataType> residual = {})
{
    cuda::IntegerEnd e;
    e.store = store;
    e.bias = true;
    e.residual = residual.has_value();
    e.residualType = residual.value_or(DataType::kInt8);
    e.activation = "maximumOf(v, 0.0f)";
    return e;
}

cuda::gemm_mma::Spec productSpec(cuda::IntegerEnd const& end)
{
    cuda::gemm_mma::Spec s;
    s.integers = end;
    s.bAlongK = true;
    s.vectorA = s.vectorB = 16;
    return s;
}

} // namespace

TEST(CudaGemmMmaI8, Compiles)
{
    TW_ONE_DAY_IN(3);
    cuda::gemm_mma::Spec s = productSpec(endOf(DataType::kInt8, DataType::kInt8));
    auto set = [&](int tileM, int tileN, int warpsM, int warpsN, int stages) {
        s.tileM = tileM;
        s.tileN = tileN;
        s.warpsM = warpsM;
        s.warpsN = warpsN;
        s.stages = stages;
    };
    auto compile = [&](char const* architecture) {
        ASSERT_EQ(unsupported(s), nullptr) << s.name();
        compiles(s.name(), source(s), architecture);
    };
    set(128, 256, 2, 4, 4);
    compile("sm_90a");
    set(128, 128, 2, 2, 3);
    s.integers = endOf(DataType::kHalf, DataType::kHalf);
    s.bAlongK = false;
    compile("sm_80");
    s.split = 4;
    compile("sm_90a");
    s.split = 1;
    set(64, 64, 2, 2, 3);
    s.integers = endOf(DataType::kFloat);
    s.aAlongK = s.aligned = false;
    s.vectorA = s.vectorB = 1;
    compile("sm_80");
    set(16, 64, 1, 2, 6);
    s.integers = endOf(DataType::kInt8);
    s.integers->table = s.integers->innerScale = s.integers->outputScale = true;
    s.vectorA = 4;
    s.vectorB = 8;
    compile("sm_80");
}

TEST(CudaGemmMmaI8, Refuses)
{
    cuda::gemm_mma::Spec s = productSpec({});
    EXPECT_EQ(unsupported(s), nullptr);
    s.split = 4; // 32 columns of a warp
    EXPECT_NE(unsupported(s), nullptr);
    s.split = 1;
    cuda::gemm_mma::Shape g;
    g.m = 5;
    g.n = 24;
    g.k = 64;
    EXPECT_EQ(unsupported(s, g), nullptr);
    g.k = 40;
    EXPECT_NE(unsupported(s, g), nullptr); // rows of 40 bytes
    s.vectorA = s.vectorB = cuda::gemm_mma::vectorOf(1, g.k);
    EXPECT_EQ(s.vectorA, 8);
    EXPECT_EQ(unsupported(s, g), nullptr);
    g.n = 23;
    EXPECT_NE(unsupported(s, g), nullptr); // rows of y
    s.aligned = false;
    EXPECT_EQ(unsupported(s, g), nullptr);
    EXPECT_EQ(cuda::gemm_mma::vectorOf(1, 6), 1);
    s.vectorA = 1;
    s.stages = 2;
    EXPECT_NE(unsupported(s), nullptr); // through registers: two steps ahead
}

TEST(CudaGemmMmaI8, Candidates)
{
    cuda::gemm_mma::Spec base = productSpec({});
    for (int capability : {80, 86, 90})
        for (int vector : {1, 16}) {
            base.vectorA = vector;
            cuda::gemm_mma::Shape small, large;
            small.m = 3;
            small.n = 40;
            large.m = large.n = small.k = large.k = 4096;
            auto const few = candidates(base, small, 132, capability, 5);
            auto const many = candidates(base, large, 132, capability, 5);
            ASSERT_FALSE(few.empty());
            ASSERT_FALSE(many.empty());
            EXPECT_LE(few.front().tileM, 32);
            EXPECT_GE(many.front().tileM * many.front().tileN, vector == 1 ? 4096 : 8192);
            for (auto const& s : few) {
                EXPECT_EQ(unsupported(s), nullptr) << s.name();
                EXPECT_TRUE(capability >= 90 || s.split == 1) << s.name();
                EXPECT_LE(s.sharedBytes(), capability == 86 ? 99 * 1024 : 227 * 1024) << s.name();
            }
        }
}

TEST(CudaGemvI8, Compiles)
{
    TW_ONE_DAY_IN(3);
    cuda::gemv_i8::Spec s;
    s.end = endOf(DataType::kInt8, DataType::kInt8);
    compiles(s.name(), source(s), "sm_80");
    s.rows = 16;
    s.warpsK = 4;
    s.packs = false;
    s.end = endOf(DataType::kFloat);
    compiles(s.name(), source(s));
}

TEST(CudaGemvI8, Refuses)
{
    cuda::gemv_i8::Spec s;
    EXPECT_EQ(unsupported(s, 1, 1000, 2048), nullptr);
    EXPECT_NE(unsupported(s, 2, 1000, 2048), nullptr); // made for one row
    EXPECT_NE(unsupported(s, 1, 1000, 2050), nullptr); // packs
    s.packs = false;
    EXPECT_EQ(unsupported(s, 1, 1000, 2050), nullptr);
    s.rows = 16;
    EXPECT_NE(unsupported(s, 16, 8, 8192), nullptr); // 128 KiB of rows
    s.rows = 3;
    EXPECT_NE(unsupported(s), nullptr);
    s.rows = 16;
    for (auto const& c : candidates(s, 16, 1000, 1024, 132, 3))
        EXPECT_EQ(unsupported(c, 16, 1000, 1024), nullptr) << c.name();
}

TEST(CudaConvolutionI8, Compiles)
{
    TW_ONE_DAY_IN(3);
    cuda::conv_nd::Spec s;
    s.integers = true;
    s.vector = 16;
    s.end = endOf(DataType::kInt8, DataType::kInt8);
    for (int tileN : {64, 128}) {
        s.tileM = 128;
        s.tileN = tileN;
        ASSERT_EQ(unsupported(s), nullptr) << s.name();
        compiles(s.name(), source(s), tileN == 64 ? "sm_80" : "sm_90a");
    }
    for (int vector : {1, 2}) {
        s.vector = vector;
        s.aligned = false;
        s.end = endOf(DataType::kHalf, DataType::kInt8);
        compiles(s.name(), source(s), "sm_80");
    }
    s.vector = 32;
    EXPECT_NE(unsupported(s), nullptr);
}

TEST(CudaStemI8, Compiles)
{
    TW_ONE_DAY_IN(3);
    cuda::stem_i8::Spec s;
    s.end = endOf(DataType::kInt8);
    compiles(s.name(), source(s), "sm_80");
    s.filterH = s.filterW = 3;
    s.packs = false;
    s.end = endOf(DataType::kHalf, DataType::kHalf);
    compiles(s.name(), source(s));
}

TEST(CudaStemI8, Refuses)
{
    cuda::stem_i8::Spec s;
    cuda::stem_i8::Shape g{.n = 2, .h = 224, .w = 224, .k = 64, .outH = 112, .outW = 112, .padH = 3, .padW = 3};
    EXPECT_EQ(unsupported(s, g), nullptr);
    g.w = 222;
    EXPECT_NE(unsupported(s, g), nullptr); // rows of whole words
    g.w = 224;
    g.n = 1 << 20;
    EXPECT_NE(unsupported(s, g), nullptr);
    s.channels = 5;
    EXPECT_NE(unsupported(s), nullptr);
    s.channels = 3;
    s.filterW = 9;
    EXPECT_NE(unsupported(s), nullptr);
    // Seven rows of 8 taps, three rows of 4 taps in pairs.
    s.filterW = 7;
    EXPECT_EQ(s.filterBytes(), 224);
    s.filterH = s.filterW = 3;
    EXPECT_EQ(s.filterBytes(), 64);
}

} // namespace tw::test
