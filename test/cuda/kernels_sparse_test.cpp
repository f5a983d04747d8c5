// SPDX-License-Identifier: Apache-2.0
// Kernels for weights that follow 2:4: that they compile, and how their weights are packed.
#include <algorithm>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "compiles.h"
#include "kernels/cuda/common/hopper.h"
#include "kernels/cuda/gemm/wgmma_sparse.h"

namespace tw::test {

namespace {

using namespace cuda::gemm_sparse;

uint16_t elementOf(std::string const& block, int64_t instruction, int64_t row, int64_t i)
{
    uint16_t v;
    int64_t const half = i / 8; // 16 bytes
    std::memcpy(&v, block.data() + instruction * 2048 + half * 1024 + row * 16 + i % 8 * 2, sizeof v);
    return v;
}

// What the instructions would make dense of a block: lane by lane, as PTX distributes places.
std::vector<uint16_t> unpacked(std::string const& block)
{
    std::vector<uint16_t> dense(size_t(kBlockRows * kStepK), 0);
    for (int64_t instruction = 0; instruction < 2; ++instruction)
        for (int64_t thread = 0; thread < 128; ++thread) {
            int64_t const lane = thread % 32, inFour = lane % 4;
            if (inFour / 2 != instruction) // the selector
                continue;
            uint32_t word;
            std::memcpy(&word, block.data() + kElementBytes + thread * 4, sizeof word);
            for (int64_t high : {0, 1}) {
                int64_t const row = thread / 32 * 16 + lane / 4 + high * 8;
                for (int64_t group = 0; group < 4; ++group) {
                    uint32_t const places = word >> (high * 16 + group * 4) & 15;
                    int64_t const first = places & 3, second = places >> 2;
                    EXPECT_LT(first, second) << "what the instruction takes";
                    int64_t const k = inFour % 2 * 16 + group * 4; // of the instruction
                    uint16_t* const to = &dense[size_t(row * kStepK + instruction * 32 + k)];
                    to[first] = elementOf(block, instruction, row, k / 2);
                    to[second] = elementOf(block, instruction, row, k / 2 + 1);
                }
            }
        }
    return dense;
}

// Up to two elements of each four; few are other than zero where `density` is small.
std::vector<uint16_t> twoOfFour(int64_t rows, int64_t k, double density, uint32_t seed)
{
    std::mt19937 random(seed);
    std::vector<uint16_t> v(size_t(rows * k), 0);
    for (int64_t at = 0; at < rows * k; at += 4)
        for (int n = 0; n < 2; ++n)
            if (std::uniform_real_distribution<double>()(random) < density)
                v[size_t(at + random() % 4)] = uint16_t(random() | 1);
    return v;
}

} // namespace

TEST(SparseWeights, PackedAndBack)
{
    for (auto const& [rows, k] : {std::pair<int64_t, int64_t>{64, 64}, {1, 64}, {65, 192}, {200, 128}})
        for (double density : {1.0, 0.5, 0.05, 0.0}) {
            std::vector<uint16_t> const dense = twoOfFour(rows, k, density, uint32_t(rows + k));
            auto const packed = packSparse(dense.data(), rows, k);
            ASSERT_TRUE(packed);
            int64_t const steps = k / kStepK, blocks = (rows + kBlockRows - 1) / kBlockRows;
            ASSERT_EQ(int64_t(packed->size()), blocks * steps * kBlockBytes);
            for (int64_t b = 0; b < blocks; ++b)
                for (int64_t s = 0; s < steps; ++s) {
                    auto const got =
                        unpacked(packed->substr(size_t((b * steps + s) * kBlockBytes), size_t(kBlockBytes)));
                    for (int64_t r = 0; r < kBlockRows; ++r)
                        for (int64_t i = 0; i < kStepK; ++i) {
                            int64_t const row = b * kBlockRows + r;
                            uint16_t const want = row < rows ? dense[size_t(row * k + s * kStepK + i)] : 0;
                            ASSERT_EQ(got[size_t(r * kStepK + i)], want) << row << ", " << s * kStepK + i;
                        }
                }
        }
}

TEST(SparseWeights, RefusesThreeOfFour)
{
    std::vector<uint16_t> dense(3 * 128, 0);
    uint16_t* const last = &dense[2 * 128 + 124];
    last[0] = last[3] = 0x3c00;
    last[1] = 0x8000; // -0 is zero
    EXPECT_TRUE(packSparse(dense.data(), 3, 128));
    last[1] = 0x7e00; // NaN is not
    EXPECT_FALSE(packSparse(dense.data(), 3, 128));
    EXPECT_TRUE(packSparse(dense.data(), 2, 128));
}

TEST(CudaGemmSparse, Compiles)
{
    struct Tile
    {
        int p, q, stages, multicast;
    };
    for (Tile const& t : {Tile{128, 256, 3, 1}, Tile{128, 256, 3, 2}, Tile{256, 128, 4, 1}, Tile{128, 128, 3, 1},
                          Tile{64, 256, 2, 1}, Tile{128, 240, 3, 2}})
        for (bool image : {false, true}) {
            Spec s;
            s.tileP = t.p;
            s.tileQ = t.q;
            s.stages = t.stages;
            s.multicast = t.multicast;
            s.image = image;
            s.residual = t.multicast == 2 || t.p == 64;
            s.activation = cuda::kRelu;
            s.activateLast = image;
            ASSERT_EQ(unsupported(s), nullptr) << s.name();
            compiles(s.name(), source(s));
        }
}

TEST(CudaGemmSparse, Refuses)
{
    Spec s;
    EXPECT_EQ(unsupported(s), nullptr);
    for (int tileQ : {0, 8, 264, 257}) {
        s.tileQ = tileQ;
        EXPECT_NE(unsupported(s), nullptr) << tileQ;
    }
    s = Spec();
    for (int tileP : {0, 32, 192, 512}) {
        s.tileP = tileP;
        EXPECT_NE(unsupported(s), nullptr) << tileP;
    }
    s = Spec();
    s.stages = 4; // 4 times 41 KiB, and 64 KiB of results
    EXPECT_NE(unsupported(s), nullptr);
    s = Spec();
    Shape g;
    g.m = 100;
    g.n = 40;
    g.k = 72;
    EXPECT_EQ(unsupported(s, g), nullptr);
    g.n = 41; // rows of y
    EXPECT_NE(unsupported(s, g), nullptr);
    g.n = 40;
    g.k = 76; // rows of a
    EXPECT_NE(unsupported(s, g), nullptr);
    g.lda = 80;
    EXPECT_EQ(unsupported(s, g), nullptr);
    g.batch = 2;
    EXPECT_NE(unsupported(s, g), nullptr);
}

TEST(CudaGemmSparse, Candidates)
{
    for (auto const& [m, n] :
         {std::pair<int64_t, int64_t>{4096, 4096}, {50176, 256}, {802816, 64}, {7, 1000}, {1, 8}}) {
        Shape g;
        g.m = m;
        g.n = n;
        g.k = 576;
        std::vector<Spec> const list = candidates(Spec(), g, 132, 6);
        ASSERT_FALSE(list.empty());
        EXPECT_LE(list.size(), 6U);
        for (Spec const& s : list) {
            EXPECT_EQ(unsupported(s, g), nullptr) << s.name();
            Launch const l = launch(s, g, 132);
            EXPECT_EQ(l.geometry.grid % s.multicast, 0);
            EXPECT_GE(int64_t(l.args.tilesP) * s.multicast * s.tileP, n);
            EXPECT_GE(int64_t(l.args.tilesQ) * s.tileQ, m);
            EXPECT_EQ(int64_t(l.q.box[1]) * s.multicast, s.tileQ);
            EXPECT_GT(estimateUs(s, g, 132), 0);
        }
    }
}

} // namespace tw::test
