// SPDX-License-Identifier: Apache-2.0
// The matrix, convolution and attention kernels: what they refuse, how they are launched, and that NVRTC makes device
// code of them without spilled registers. bench_gpu_kernels runs them where a GPU is.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "base/types.h"
#include "compiles.h"
#include "kernels/cuda/attention/mma_f32.h"
#include "kernels/cuda/attention/wgmma_f16.h"
#include "kernels/cuda/common/hopper.h"
#include "kernels/cuda/common/prelude.h"
#include "kernels/cuda/common/source.h"
#include "kernels/cuda/conv/mma_2d.h"
#include "kernels/cuda/conv/stem.h"
#include "kernels/cuda/gemm/f32.h"
#include "kernels/cuda/gemm/mma.h"
#include "kernels/cuda/gemm/wgmma.h"
#include "support/share_of_the_day.h"

namespace tw::test {

namespace {

cuda::gemm_f16::Spec gemmSpec(int tileP, int tileQ, int stages, int groups)
{
    cuda::gemm_f16::Spec s;
    s.tileP = tileP;
    s.tileQ = tileQ;
    s.stages = stages;
    s.groups = groups;
    return s;
}

} // namespace

TEST(CudaGemm, CompilesLarge)
{
    TW_ONE_DAY_IN(3);
    cuda::gemm_f16::Spec s = gemmSpec(128, 256, 4, 2);
    s.activation = cuda::kGeluErf;
    s.multicast = 2;
    compiles(s.name(), cuda::gemm_f16::source(s));
}

TEST(CudaGemm, CompilesPingPongWithResidual)
{
    TW_ONE_DAY_IN(3);
    cuda::gemm_f16::Spec s = gemmSpec(128, 128, 5, 2);
    s.pingPong = s.residual = true;
    s.activation = cuda::kRelu;
    s.bAlongK = false;
    compiles(s.name(), cuda::gemm_f16::source(s));
}

TEST(CudaGemm, CompilesSplit)
{
    TW_ONE_DAY_IN(3);
    cuda::gemm_f16::Spec s = gemmSpec(64, 64, 6, 1);
    s.split = 4;
    s.image = true;
    compiles(s.name(), cuda::gemm_f16::source(s));
}

TEST(CudaGemm, CompilesCopies)
{
    TW_ONE_DAY_IN(3);
    cuda::gemm_f16::Spec s = gemmSpec(128, 256, 3, 2);
    s.residual = s.copies = true;
    s.activation = cuda::kSwish;
    compiles(s.name(), cuda::gemm_f16::source(s));
}

namespace {

cuda::gemm_f16::Spec integerSpec(int tileP, int tileQ, int stages, int groups, DataType store = DataType::kInt8,
                                 bool residual = false)
{
    cuda::gemm_f16::Spec s = gemmSpec(tileP, tileQ, stages, groups);
    cuda::IntegerEnd end;
    end.store = store;
    end.bias = true;
    end.residual = residual;
    end.activation = cuda::kRelu;
    s.integers = end;
    s.bias = false;
    return s;
}

} // namespace

// Sums of i8: whole tiles that leave by TMA, with residual, in halves and floats.
TEST(CudaGemm, CompilesIntegers)
{
    TW_ONE_DAY_IN(3);
    for (DataType store : {DataType::kInt8, DataType::kHalf, DataType::kFloat})
        for (bool residual : {false, true}) {
            cuda::gemm_f16::Spec s = integerSpec(128, store == DataType::kFloat ? 128 : 256, 2, 2, store, residual);
            s.copies = true;
            s.multicast = residual ? 1 : 2;
            ASSERT_EQ(unsupported(s), nullptr) << unsupported(s);
            compiles(s.name(), cuda::gemm_f16::source(s));
            s = integerSpec(128, 256, 3, 2, store, residual);
            s.aligned = residual;
            ASSERT_EQ(unsupported(s), nullptr) << unsupported(s);
            compiles(s.name(), cuda::gemm_f16::source(s));
        }
    cuda::gemm_f16::Spec s = integerSpec(128, 128, 5, 2, DataType::kInt8, true);
    s.pingPong = s.copies = true;
    s.integers->innerScale = s.integers->outputScale = s.integers->table = true;
    for (char const* activation : {cuda::kGeluErf, cuda::kGeluErfToBytes, cuda::kGeluTanhToBytes}) {
        s.integers->activation = activation;
        ASSERT_EQ(unsupported(s), nullptr) << unsupported(s);
        compiles(s.name(), cuda::gemm_f16::source(s));
    }
}

// Steps of 64 bytes, and residuals that come a tile ahead.
TEST(CudaGemm, CompilesIntegersOfFewChannels)
{
    TW_ONE_DAY_IN(3);
    cuda::gemm_f16::Spec s = integerSpec(128, 64, 12, 2);
    s.stepBytes = 64;
    s.pingPong = s.image = true;
    ASSERT_EQ(unsupported(s), nullptr) << unsupported(s);
    compiles(s.name(), cuda::gemm_f16::source(s));
    s = integerSpec(128, 128, 6, 2, DataType::kInt8, true);
    s.stepBytes = 64;
    s.pingPong = s.copies = s.ahead = true;
    ASSERT_EQ(unsupported(s), nullptr) << unsupported(s);
    compiles(s.name(), cuda::gemm_f16::source(s));
    s.pingPong = false;
    EXPECT_NE(unsupported(s), nullptr); // nothing hides the way of the next residual
    s.ahead = false;
    s.stepBytes = 32;
    EXPECT_NE(unsupported(s), nullptr);
    s = gemmSpec(128, 64, 4, 2);
    s.stepBytes = 64;
    EXPECT_NE(unsupported(s), nullptr); // of i8 alone
    // Chosen where rows of 128 bytes would be half empty.
    cuda::gemm_f16::Shape shape;
    shape.m = 100000;
    shape.n = 256;
    for (int64_t k : {64, 128, 192, 320}) {
        shape.k = k;
        s = integerSpec(128, 64, 4, 2, DataType::kInt8, true);
        s.copies = true;
        auto const list = cuda::gemm_f16::candidates(s, shape, 132, 8);
        ASSERT_FALSE(list.empty());
        EXPECT_EQ(list[0].stepBytes, k % 128 && k < 256 ? 64 : 128) << k;
        EXPECT_TRUE(std::any_of(list.begin(), list.end(), [](auto const& c) { return c.ahead; })) << k;
    }
}

// Split, of images, swapped; a residual of another type than y.
TEST(CudaGemm, CompilesIntegersOfFewTiles)
{
    TW_ONE_DAY_IN(3);
    cuda::gemm_f16::Spec s = integerSpec(64, 64, 6, 1);
    s.split = 4;
    s.image = true;
    ASSERT_EQ(unsupported(s), nullptr) << unsupported(s);
    compiles(s.name(), cuda::gemm_f16::source(s));
    s = integerSpec(128, 112, 4, 2, DataType::kInt8, true);
    s.integers->residualType = DataType::kFloat;
    s.swap = true;
    s.aligned = false;
    ASSERT_EQ(unsupported(s), nullptr) << unsupported(s);
    compiles(s.name(), cuda::gemm_f16::source(s));
    s = integerSpec(128, 128, 4, 2, DataType::kHalf, true);
    s.copies = true;
    EXPECT_FALSE(s.bringsResidual()); // i8 beside FP16
    compiles(s.name(), cuda::gemm_f16::source(s));
}

TEST(CudaGemm, IntegerShapes)
{
    cuda::gemm_f16::Spec s = integerSpec(128, 128, 4, 2);
    s.copies = true;
    cuda::gemm_f16::Shape g;
    g.m = 300;
    g.n = 144;
    g.k = 400;
    ASSERT_EQ(unsupported(s, g), nullptr) << unsupported(s, g);
    cuda::gemm_f16::Launch const l = launch(s, g, 132);
    EXPECT_EQ(l.p.type, cuda::gemm_f16::kByteMap);
    EXPECT_EQ(l.p.box[0], 128U);
    EXPECT_EQ(l.p.strides[0], 400U);
    EXPECT_EQ(l.args.steps, 4); // of 128, the last with 16
    EXPECT_EQ(l.y.type, cuda::gemm_f16::kByteMap);
    EXPECT_EQ(l.y.box[0], 128U);
    EXPECT_EQ(l.y.strides[0], 144U);
    g.k = 408; // rows of 25 1/2 times 16 bytes
    EXPECT_NE(unsupported(s, g), nullptr);
    g.k = 400;
    g.n = 136; // y's rows
    EXPECT_NE(unsupported(s, g), nullptr);
    s.tileQ = 40;
    EXPECT_NE(unsupported(s), nullptr);
    s = integerSpec(128, 128, 4, 2);
    s.bAlongK = false;
    EXPECT_NE(unsupported(s), nullptr);
    s = integerSpec(64, 64, 4, 1);
    s.split = 8; // 8 bytes of a row for each block
    EXPECT_NE(unsupported(s), nullptr);
}

TEST(CudaGemm, CompilesSwapped)
{
    TW_ONE_DAY_IN(3);
    cuda::gemm_f16::Spec s = gemmSpec(64, 16, 6, 1);
    s.split = 2;
    s.swap = true;
    s.aligned = false;
    compiles(s.name(), cuda::gemm_f16::source(s));
}

// FP32 by TF32: whole tiles, split and swapped, and an image.
TEST(CudaGemm, CompilesSingle)
{
    TW_ONE_DAY_IN(3);
    for (bool image : {false, true}) {
        cuda::gemm_f16::Spec s = gemmSpec(128, 128, 6, 2);
        s.single = s.residual = true;
        s.image = image;
        s.activation = cuda::kGeluErf;
        compiles(s.name(), cuda::gemm_f16::source(s));
    }
    cuda::gemm_f16::Spec s = gemmSpec(64, 64, 6, 1);
    s.single = s.swap = s.residual = true;
    s.split = 4;
    s.aligned = false;
    compiles(s.name(), cuda::gemm_f16::source(s));
}

// FP32 as two TF32 numbers for each factor.
TEST(CudaGemm, CompilesTf32x3)
{
    TW_ONE_DAY_IN(3);
    cuda::gemm_f16::Spec s = gemmSpec(128, 128, 5, 2);
    s.single = s.tf32x3 = true;
    ASSERT_EQ(unsupported(s), nullptr);
    compiles(s.name(), cuda::gemm_f16::source(s));
    s = gemmSpec(64, 128, 6, 1);
    s.single = s.tf32x3 = s.swap = s.residual = true;
    s.split = 4;
    ASSERT_EQ(unsupported(s), nullptr);
    compiles(s.name(), cuda::gemm_f16::source(s));
    s.tileQ = 256;
    EXPECT_NE(unsupported(s), nullptr); // registers
    s = gemmSpec(128, 128, 5, 2);
    s.single = s.tf32x3 = true;
    cuda::gemm_f16::Shape g;
    g.m = 100;
    g.n = 62;
    g.k = 68;
    EXPECT_EQ(cuda::gemm_f16::splitRow(g.k), 192); // 3 steps of 32, twice
    cuda::gemm_f16::Launch const l = launch(s, g, 132);
    EXPECT_EQ(l.args.stepsC, 3);
    EXPECT_EQ(l.args.steps, 9);
    EXPECT_EQ(l.p.dims[0], 192U);
    EXPECT_EQ(l.p.strides[0], 768U);
}

TEST(CudaGemm, SingleShapes)
{
    cuda::gemm_f16::Spec s = gemmSpec(128, 128, 4, 2);
    s.single = true;
    EXPECT_EQ(unsupported(s), nullptr);
    cuda::gemm_f16::Shape g;
    g.m = 100;
    g.n = 62;
    g.k = 68; // 272 bytes
    EXPECT_EQ(unsupported(s, g), nullptr);
    cuda::gemm_f16::Launch const l = launch(s, g, 132);
    EXPECT_EQ(l.args.steps, 3);
    EXPECT_EQ(l.p.type, cuda::TensorMapSpec::kRoundedFloat32);
    EXPECT_EQ(l.p.box[0], 32U);
    EXPECT_EQ(l.p.strides[0], 272U);
    g.k = 70;
    EXPECT_NE(unsupported(s, g), nullptr); // rows of 280 bytes
    s.bAlongK = false;
    EXPECT_NE(unsupported(s), nullptr);
}

TEST(CudaGemmF32, Compiles)
{
    TW_ONE_DAY_IN(3);
    auto compile = [](cuda::gemm_f32::Spec s, char const* architecture) {
        s.epilogue = "TW_INLINE float epilogue(float v, float r) { return v + r; }\n";
        ASSERT_EQ(unsupported(s), nullptr) << s.name();
        compiles(s.name(), cuda::prelude(false) + cuda::gemm_f32::source(s), architecture);
    };
    cuda::gemm_f32::Spec s;
    compile(s, "sm_80");
    s.tileM = s.tileN = 64;
    s.shareN = 4;
    s.bias = s.residual = true;
    compile(s, "sm_80");
    s.split = 4;
    s.packsA = s.packsB = s.packsY = false;
    compile(s, "sm_90a");
}

TEST(CudaGemmMmaF16, Compiles)
{
    TW_ONE_DAY_IN(3);
    cuda::gemm_mma::Spec s;
    auto set = [&](int tileM, int tileN, int warpsM, int warpsN, int stages) {
        s.tileM = tileM;
        s.tileN = tileN;
        s.warpsM = warpsM;
        s.warpsN = warpsN;
        s.stages = stages;
    };
    auto compile = [&](char const* architecture) {
        ASSERT_EQ(unsupported(s), nullptr) << s.name();
        compiles(s.name(), source(s), architecture, s.sumsInMemory() ? 2 : 1);
    };
    set(128, 256, 2, 4, 3);
    compile("sm_80");
    compile("sm_90a");
    set(128, 128, 2, 2, 3);
    compile("sm_80");
    s.bAlongK = true;
    s.residual = true;
    s.activation = cuda::kGeluErf;
    compile("sm_90a");
    s.vectorA = 2;
    s.vectorB = 4;
    s.aligned = false;
    compile("sm_80");
    s.vectorA = s.vectorB = 1;
    s.aAlongK = false;
    set(128, 128, 2, 4, 3);
    compile("sm_80");
    set(64, 64, 2, 2, 4);
    s.split = 4;
    compile("sm_90a");
    set(16, 128, 1, 4, 5);
    s.vectorA = s.vectorB = 8;
    compile("sm_90a");
    s.clusters = false;
    s.split = 8;
    compile("sm_80");
}

TEST(CudaGemmMmaF16, Refuses)
{
    cuda::gemm_mma::Spec s;
    EXPECT_EQ(unsupported(s), nullptr);
    s.split = 16;
    EXPECT_NE(unsupported(s), nullptr);
    s.split = 1;
    cuda::gemm_mma::Shape g;
    g.m = 5;
    g.n = 24;
    g.k = 64;
    EXPECT_EQ(unsupported(s, g), nullptr);
    g.k = 20;
    EXPECT_NE(unsupported(s, g), nullptr); // rows of 40 bytes
    s.vectorA = cuda::gemm_mma::vectorOf(2, g.k);
    EXPECT_EQ(s.vectorA, 4);
    EXPECT_EQ(unsupported(s, g), nullptr);
    s.vectorA = 1;
    s.stages = 2;
    EXPECT_NE(unsupported(s), nullptr); // through registers: two steps ahead
}

TEST(CudaGemmMmaF32, Compiles)
{
    TW_ONE_DAY_IN(3);
    for (bool tf32x3 : {false, true}) {
        cuda::gemm_f32::Spec s;
        s.shareM = 2;
        s.shareN = 4;
        s.stages = 3;
        s.epilogue = "TW_INLINE float epilogue(float v, float r) { return v + r; }\n";
        s.sums = tf32x3 ? cuda::gemm_f32::Sums::kTf32x3 : cuda::gemm_f32::Sums::kTf32;
        compiles(s.name(), cuda::prelude(false) + source(s), "sm_80");
        s.tileM = s.tileN = 64;
        s.shareN = 2;
        s.split = 4;
        s.aAlongK = s.packsA = s.packsB = s.packsY = false;
        s.bAlongK = tf32x3;
        s.bias = s.residual = true;
        ASSERT_EQ(unsupported(s), nullptr) << s.name();
        compiles(s.name(), cuda::prelude(false) + source(s));
    }
}

TEST(CudaGemmF32, Candidates)
{
    using namespace cuda::gemm_f32;
    Spec s;
    s.shareN = 2;
    EXPECT_NE(unsupported(s), nullptr);
    s = Spec();
    s.tileN = 48;
    EXPECT_NE(unsupported(s), nullptr);
    EXPECT_FALSE(candidates(Spec(), 0, 768, 0, 1, 132, true, 4).empty()); // nothing to do
    for (int64_t m : {1, 128, 4096})
        for (bool clusters : {false, true}) {
            std::vector<Spec> const list = candidates(Spec(), m, 768, 768, 1, 132, clusters, 4);
            ASSERT_EQ(list.size(), 4U);
            for (Spec const& c : list) {
                EXPECT_EQ(unsupported(c), nullptr) << c.name();
                EXPECT_TRUE(clusters || c.split == 1) << c.name();
            }
            EXPECT_EQ(m < 4096 && clusters, list[0].split > 1) << list[0].name(); // else most of the GPU waits
        }
}

TEST(CudaConvolution, Compiles)
{
    TW_ONE_DAY_IN(3);
    cuda::conv_2d::Spec s;
    s.tileM = 128;
    s.vector = 8;
    s.residual = true;
    compiles(s.name(), source(s), "sm_80");
    for (int vector : {2, 1}) {
        s.vector = vector;
        s.aligned = false;
        compiles(s.name(), source(s));
    }
}

TEST(CudaConvolution, CompilesSingle)
{
    TW_ONE_DAY_IN(3);
    for (auto kind : {cuda::conv_2d::Kind::kTf32, cuda::conv_2d::Kind::kFloat})
        for (auto const& [m, n, vector] : {std::array{128, 128, 4}, {64, 64, 4}, {128, 32, 2}, {128, 64, 1}}) {
            cuda::conv_2d::Spec s;
            s.kind = kind;
            s.tileM = m;
            s.tileN = n;
            s.vector = vector;
            s.nchw = vector == 1;
            s.activation = "v < 0 ? 0 : v";
            compiles(s.name(), source(s), vector == 2 ? "sm_80" : "sm_90a");
        }
}

TEST(CudaConvolution, RoundsToTf32)
{
    TW_ONE_DAY_IN(3);
    EXPECT_EQ(roundToTf32(1.0f), 1.0f);
    EXPECT_EQ(roundToTf32(1.0f + 0x1p-11f), 1.0f + 0x1p-10f); // ties away from zero
    EXPECT_EQ(roundToTf32(-1.0f - 0x1p-11f), -1.0f - 0x1p-10f);
    EXPECT_EQ(roundToTf32(1.0f + 0x1p-12f), 1.0f);
    EXPECT_TRUE(std::isinf(roundToTf32(INFINITY)));
    EXPECT_TRUE(std::isnan(roundToTf32(NAN)));
}

TEST(CudaConvolution, ChoosesTiles)
{
    using namespace cuda::conv_2d;
    cuda::ConvShape g; // the third stage of ResNet-50
    g.h = g.w = g.outH = g.outW = 14;
    g.c = g.k = 256;
    g.r = g.s = 3;
    g.padH = g.padW = 1;
    for (Kind kind : {Kind::kTf32, Kind::kFloat}) {
        Spec base;
        base.kind = kind;
        base.vector = vectorOf(g, false, mostVector(kind));
        EXPECT_EQ(base.vector, 4);
        std::vector<Spec> const shared = candidates(base, g, 132, true, 5, 3);
        ASSERT_FALSE(shared.empty());
        EXPECT_LE(shared.size(), 5U);
        EXPECT_GT(shared[0].split, 1); // few tiles for so many multiprocessors
        std::set<std::string> texts;
        for (Spec const& s : shared) {
            EXPECT_EQ(unsupported(s, g), nullptr);
            texts.insert(source(s));
        }
        EXPECT_LE(texts.size(), 3U);
        for (Spec const& s : candidates(base, g, 132, false, 5, 3))
            EXPECT_EQ(s.split, 1);
    }
    Spec s;
    s.kind = Kind::kFloat;
    g.c = 6; // copies of 4 elements would leave the pixel
    EXPECT_NE(unsupported(s, g), nullptr);
    s.vector = vectorOf(g, false, mostVector(s.kind));
    EXPECT_EQ(s.vector, 2);
    EXPECT_EQ(unsupported(s, g), nullptr);
}

TEST(CudaStem, Compiles)
{
    TW_ONE_DAY_IN(3);
    cuda::stem_f16::Spec s;
    compiles(s.name(), cuda::stem_f16::source(s), "sm_80");
    s.single = true;
    compiles(s.name(), cuda::stem_f16::source(s), "sm_80");
}

TEST(CudaAttention, Compiles)
{
    TW_ONE_DAY_IN(3);
    cuda::attention_f16::Spec s;
    s.masks.mask = true;
    s.headDim = s.valueDim = 40;
    compiles(s.name(), cuda::attention_f16::source(s), "sm_80");
    s.integers = true;
    compiles(s.name(), cuda::attention_f16::source(s), "sm_80");
    cuda::attention_f32::Spec f;
    compiles(f.name(), cuda::attention_f32::source(f), "sm_80");
    f.tf32x3 = f.masks.mask = true;
    compiles(f.name(), cuda::attention_f32::source(f), "sm_80");
    cuda::attention_wgmma_f16::Spec w;
    compiles(w.name(), cuda::attention_wgmma_f16::source(w));
    w.masks.keep = w.masks.mask = w.masks.pairs = true;
    w.masks.maskRows = false;
    compiles(w.name(), cuda::attention_wgmma_f16::source(w));
    for (int size : {64, 128}) {
        w.headDim = size;
        w.integers = true;
        compiles(w.name(), cuda::attention_wgmma_f16::source(w));
    }
    // Scores, sums and weights rounded as quantize and dequantize do.
    auto const rounds = [](cuda::AttentionMasks& m) {
        m.mask = m.maskRows = m.scoreSteps = m.sumSteps = m.weightSteps = true;
        m.keep = m.inverted = false;
    };
    rounds(s.masks);
    compiles(s.name(), cuda::attention_f16::source(s), "sm_80");
    rounds(f.masks);
    compiles(f.name(), cuda::attention_f32::source(f), "sm_80");
    f.parts = 2;
    EXPECT_NE(cuda::attention_f32::unsupported(f), nullptr) << "a part does not know the sum of all keys";
    rounds(w.masks);
    compiles(w.name(), cuda::attention_wgmma_f16::source(w));
    w.groups = 1;
    compiles(w.name(), cuda::attention_wgmma_f16::source(w));
}

TEST(CudaGemm, Names)
{
    std::set<std::string> names;
    int count = 0;
    for (int tileP : {64, 128})
        for (int tileQ : {64, 128})
            for (int split : {1, 2})
                for (bool b : {false, true}) {
                    cuda::gemm_f16::Spec s = gemmSpec(tileP, tileQ, 4, 1);
                    s.split = split;
                    s.bAlongK = b;
                    names.insert(s.name());
                    ++count;
                }
    EXPECT_EQ(int(names.size()), count);
}

TEST(CudaGemm, Refusals)
{
    using cuda::gemm_f16::unsupported;
    EXPECT_EQ(unsupported(gemmSpec(128, 256, 4, 2)), nullptr);
    EXPECT_NE(unsupported(gemmSpec(96, 256, 4, 2)), nullptr);  // not steps of 64 rows
    EXPECT_NE(unsupported(gemmSpec(128, 256, 8, 2)), nullptr); // shared memory
    EXPECT_NE(unsupported(gemmSpec(256, 256, 2, 2)), nullptr); // registers
    EXPECT_NE(unsupported(gemmSpec(64, 64, 4, 2)), nullptr);   // half a block of rows for each group
    cuda::gemm_f16::Spec s = gemmSpec(64, 64, 4, 1);
    s.split = 4;
    cuda::gemm_f16::Shape g;
    g.m = 64;
    g.n = 64;
    g.k = 256;
    EXPECT_EQ(unsupported(s, g), nullptr);
    g.k = 192; // 3 steps
    EXPECT_NE(unsupported(s, g), nullptr);
    s.split = 1;
    g.k = 36;
    EXPECT_NE(unsupported(s, g), nullptr); // rows of 72 bytes
    g.k = 40;
    g.n = 60;
    EXPECT_NE(unsupported(s, g), nullptr); // y's rows
    s.aligned = false;
    EXPECT_EQ(unsupported(s, g), nullptr);
}

// Whatever the shape, what is proposed exists, differs, fits, and is in the estimate's order.
TEST(CudaGemm, CandidatesFit)
{
    using namespace cuda::gemm_f16;
    for (int64_t m : {1, 7, 64, 128, 197, 384, 512, 513, 4096, 12608})
        for (int64_t n : {8, 328, 1000, 4096})
            for (int64_t k : {8, 72, 1024})
                for (int flags = 0; flags < 16; ++flags) {
                    Spec base;
                    base.residual = flags & 1;
                    base.copies = flags & 2;
                    base.bAlongK = flags & 4;
                    base.aAlongK = m % 8 != 0 || flags & 8;
                    Shape g;
                    g.m = m;
                    g.n = n;
                    g.k = k;
                    auto const list = candidates(base, g, 132, 8);
                    ASSERT_FALSE(list.empty()) << m << " " << n << " " << k << " " << flags;
                    std::set<std::string> names;
                    double before = 0;
                    for (Spec const& s : list) {
                        EXPECT_EQ(unsupported(s, g), nullptr) << s.name();
                        EXPECT_TRUE(base.copies || !s.copies) << s.name();
                        EXPECT_TRUE(names.insert(s.name()).second) << s.name();
                        EXPECT_GE(estimateUs(s, g, 132), before) << s.name();
                        before = estimateUs(s, g, 132);
                        Launch const l = launch(s, g, 132);
                        EXPECT_GT(l.geometry.grid, 0);
                        EXPECT_EQ(l.geometry.grid % l.geometry.cluster, 0);
                        EXPECT_LE(l.geometry.sharedBytes, 227 * 1024);
                    }
                }
}

TEST(CudaGemm, Launch)
{
    cuda::gemm_f16::Spec s = gemmSpec(128, 256, 4, 2);
    cuda::gemm_f16::Shape g;
    g.m = 1000;
    g.n = 1000;
    g.k = 1000;
    cuda::gemm_f16::Launch l = launch(s, g, 132);
    EXPECT_EQ(l.args.tilesP, 8);
    EXPECT_EQ(l.args.tilesQ, 4);
    EXPECT_EQ(l.args.steps, 16);
    EXPECT_EQ(l.geometry.grid, 32);
    EXPECT_EQ(l.geometry.block, 384); // 4 copying warps, so that registers can move
    EXPECT_EQ(l.p.box[1], 128U);
    EXPECT_EQ(l.q.box[1], 256U);
    s.multicast = 2;
    l = launch(s, g, 132);
    EXPECT_EQ(l.geometry.cluster, 2);
    EXPECT_EQ(l.args.tilesP, 4); // pairs
    EXPECT_EQ(l.q.box[1], 128U); // each copies half
    g.m = g.n = 100000;
    EXPECT_EQ(launch(s, g, 132).geometry.grid, 132);
    EXPECT_EQ(launch(s, g, 131).geometry.grid, 130); // whole clusters
}

TEST(CudaGemm, ImageMap)
{
    cuda::gemm_f16::Spec s = gemmSpec(128, 64, 4, 2);
    s.image = true;
    cuda::gemm_f16::Image i;
    i.n = 2;
    i.h = 19;
    i.w = 20;
    i.c = 72;
    i.r = i.s = 3;
    i.strideH = i.strideW = 2;
    i.padH = i.padW = 1;
    i.outH = 10;
    i.outW = 10;
    cuda::gemm_f16::Shape const g = cuda::gemm_f16::imageShape(i, 96);
    EXPECT_EQ(g.m, 200);
    EXPECT_EQ(g.k, 648);
    ASSERT_EQ(unsupported(s, g), nullptr);
    cuda::gemm_f16::Launch const l = launch(s, g, 132);
    EXPECT_EQ(l.args.stepsC, 2);
    EXPECT_EQ(l.args.steps, 18);
    // The last filter origin: 9 * 2 - 1 = 17 = size - 1 + upper.
    EXPECT_EQ(l.p.upper[0], 17 - 19);
    EXPECT_EQ(l.p.upper[1], 17 - 18);
    EXPECT_EQ(l.p.lower[0], -1);
}

TEST(CudaGemm, Candidates)
{
    cuda::gemm_f16::Shape g;
    g.m = g.n = g.k = 4096;
    std::vector<cuda::gemm_f16::Spec> list = candidates(cuda::gemm_f16::Spec(), g, 132, 3);
    ASSERT_EQ(list.size(), 3U);
    EXPECT_GE(list[0].tileP * list[0].tileQ, 128 * 128); // fewest reads for each product
    EXPECT_EQ(list[0].split, 1);
    for (size_t i = 1; i < list.size(); ++i)
        EXPECT_LE(estimateUs(list[i - 1], g, 132), estimateUs(list[i], g, 132));
    g.m = 128;
    g.n = 768;
    g.k = 3072;
    list = candidates(cuda::gemm_f16::Spec(), g, 132, 1);
    ASSERT_EQ(list.size(), 1U);
    EXPECT_GT(list[0].split, 1); // 24 tiles of 64 x 64
    g.m = 1;
    g.n = 1000;
    g.k = 2048;
    bool swapped = false;
    for (cuda::gemm_f16::Spec const& s : candidates(cuda::gemm_f16::Spec(), g, 132, 100)) {
        EXPECT_EQ(unsupported(s, g), nullptr) << s.name();
        swapped = swapped || s.swap;
    }
    EXPECT_TRUE(swapped);
    g.k = 2047;
    EXPECT_TRUE(candidates(cuda::gemm_f16::Spec(), g, 132, 100).empty());
}

TEST(CudaConvolution, Copies)
{
    cuda::ConvShape g;
    g.c = 24;
    g.k = 8;
    EXPECT_EQ(vectorOf(g, false, 8), 8);
    g.groups = 2;
    EXPECT_EQ(vectorOf(g, false, 8), 4);
    g.c = 3;
    g.groups = 1;
    EXPECT_EQ(vectorOf(g, false, 8), 1);
    g.r = g.s = g.strideH = g.strideW = 16;
    g.w = 224;
    EXPECT_EQ(vectorOf(g, true, 8), 8); // patches
    EXPECT_EQ(paddedK(g), 768);
    g.padW = 1;
    EXPECT_EQ(vectorOf(g, true, 8), 1);
}

TEST(CudaStem, TapsInPairs)
{
    cuda::stem_f16::Spec s;
    EXPECT_EQ(s.shift(), 1);
    EXPECT_EQ(s.paddedK(), 176); // 21 rows of 8 taps, an even number of rows
    EXPECT_EQ(unsupported(s), nullptr);
    s.filterW = 8; // and the tap before
    EXPECT_NE(unsupported(s), nullptr);
    s.padW = 2;
    EXPECT_EQ(unsupported(s), nullptr);
}

TEST(CudaAttention, Packed)
{
    cuda::attention_f16::Spec const s;
    cuda::attention_f16::Shape const g{2, 12, 128, 128};
    std::vector<uint16_t> const token(3 * 768);
    uint16_t const* const none = token.data();
    cuda::attention_f16::Args const a = packed(s, g, none);
    EXPECT_EQ(static_cast<uint16_t const*>(a.v) - none, 2 * 768);
    EXPECT_EQ(a.kStride.row, 3 * 768);
    EXPECT_EQ(a.yStride.batch, 128 * 768);
    EXPECT_EQ(launch(s, g).grid, 2);
    EXPECT_EQ(launch(s, g).gridY, 12);
}

} // namespace tw::test
