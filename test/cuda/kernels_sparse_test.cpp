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
#include "support/share_of_the_day.h"

namespace tw::test {

namespace {

using namespace cuda::gemm_sparse;

template <class T>
T elementOf(std::string const& block, int64_t instruction, int64_t row, int64_t i)
{
    T v;
    int64_t const byte = i * int64_t(sizeof(T)); // of 32
    std::memcpy(&v, block.data() + instruction * 2048 + byte / 16 * 1024 + row * 16 + byte % 16, sizeof v);
    return v;
}
uint32_t wordOf(std::string const& block, int64_t i)
{
    uint32_t v;
    std::memcpy(&v, block.data() + kElementBytes + i * 4, sizeof v);
    return v;
}

// Puts two elements of a group of four where `places` say.
template <class T>
void spread(T* to, uint32_t places, T first, T second)
{
    EXPECT_LT(places & 3, places >> 2 & 3) << "what the instruction takes";
    to[places & 3] = first;
    to[places >> 2 & 3] = second;
}

// What the instructions would make dense of a block: lane by lane, as PTX distributes places.
void unpack(std::string const& block, uint16_t* dense)
{
    for (int64_t instruction = 0; instruction < 2; ++instruction)
        for (int64_t thread = 0; thread < 128; ++thread) {
            int64_t const lane = thread % 32, inFour = lane % 4;
            if (inFour / 2 != instruction) // the selector
                continue;
            for (int64_t high : {0, 1})
                for (int64_t group = 0; group < 4; ++group) {
                    int64_t const row = thread / 32 * 16 + lane / 4 + high * 8, k = inFour % 2 * 16 + group * 4;
                    spread(dense + row * 64 + instruction * 32 + k, wordOf(block, thread) >> (high * 16 + group * 4),
                           elementOf<uint16_t>(block, instruction, row, k / 2),
                           elementOf<uint16_t>(block, instruction, row, k / 2 + 1));
                }
        }
}
// Of i8, with rows in the order of filters.
void unpack(std::string const& block, int8_t* dense)
{
    for (int64_t instruction = 0; instruction < 2; ++instruction)
        for (int64_t thread = 0; thread < 128; ++thread)
            for (int64_t group = 0; group < 8; ++group) {
                int64_t const lane = thread % 32, high = lane % 2, row = thread / 32 * 16 + lane / 4 + high * 8,
                              k = lane % 4 / 2 * 32 + group * 4, filter = thread / 32 * 16 + lane / 4 * 2 + high;
                spread(dense + filter * 128 + instruction * 64 + k,
                       wordOf(block, instruction * 128 + thread) >> (group * 4),
                       elementOf<int8_t>(block, instruction, row, k / 2),
                       elementOf<int8_t>(block, instruction, row, k / 2 + 1));
            }
}

// Up to two elements of each four; few are other than zero where `density` is small.
template <class T>
std::vector<T> twoOfFour(int64_t rows, int64_t k, double density, uint32_t seed)
{
    std::mt19937 random(seed);
    std::vector<T> v(size_t(rows * k), 0);
    for (int64_t at = 0; at < rows * k; at += 4)
        for (int n = 0; n < 2; ++n)
            if (std::uniform_real_distribution<double>()(random) < density)
                v[size_t(at + random() % 4)] = T(random() | 1);
    return v;
}

template <class T>
void packAndUnpack(int64_t rows, int64_t k, double density)
{
    constexpr int64_t kStep = stepOf(sizeof(T)), kBytes = blockBytes(sizeof(T));
    std::vector<T> const dense = twoOfFour<T>(rows, k, density, uint32_t(rows + k));
    auto const packed = packSparse(dense.data(), rows, k);
    ASSERT_TRUE(packed);
    int64_t const steps = k / kStep, blocks = (rows + kBlockRows - 1) / kBlockRows;
    ASSERT_EQ(int64_t(packed->size()), blocks * steps * kBytes);
    for (int64_t b = 0; b < blocks; ++b)
        for (int64_t s = 0; s < steps; ++s) {
            std::vector<T> got(size_t(kBlockRows * kStep), T(0));
            unpack(packed->substr(size_t((b * steps + s) * kBytes), size_t(kBytes)), got.data());
            for (int64_t r = 0; r < kBlockRows; ++r)
                for (int64_t i = 0; i < kStep; ++i) {
                    int64_t const row = b * kBlockRows + r;
                    T const want = row < rows ? dense[size_t(row * k + s * kStep + i)] : T(0);
                    ASSERT_EQ(got[size_t(r * kStep + i)], want) << row << ", " << s * kStep + i;
                }
        }
}

} // namespace

TEST(SparseWeights, PackedAndBack)
{
    for (double density : {1.0, 0.5, 0.05, 0.0})
        for (auto const& [rows, k] : {std::pair<int64_t, int64_t>{64, 128}, {1, 128}, {65, 384}, {200, 256}}) {
            packAndUnpack<uint16_t>(rows, k, density);
            packAndUnpack<uint16_t>(rows, k / 2, density);
            packAndUnpack<int8_t>(rows, k, density);
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
    int8_t const bytes[128] = {1, -128, 0, 0, 0, 3, 3, 0};
    EXPECT_TRUE(packSparse(bytes, 1, 128));
    int8_t const more[128] = {1, -128, 0, 1};
    EXPECT_FALSE(packSparse(more, 1, 128));
}

TEST(CudaGemmSparse, Compiles)
{
    TW_ONE_DAY_IN(3);
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
            ASSERT_EQ(unsupported(s), nullptr) << s.name();
            compiles(s.name(), source(s));
        }
}

TEST(CudaGemmSparse, CompilesIntegers)
{
    TW_ONE_DAY_IN(3);
    for (bool residual : {false, true})
        for (int tileP : {128, 256}) {
            cuda::IntegerEnd end;
            end.bias = true;
            end.residual = end.outputScale = end.innerScale = residual;
            Spec s;
            s.integers = end;
            s.bias = false;
            s.tileP = tileP;
            s.tileQ = tileP == 256 || residual ? 128 : 256;
            s.image = residual;
            s.multicast = tileP / 128;
            ASSERT_EQ(unsupported(s), nullptr) << s.name();
            compiles(s.name(), source(s));
            s.integers->table = true;
            EXPECT_NE(unsupported(s), nullptr);
            s.integers = end;
            s.integers->store = DataType::kHalf;
            EXPECT_NE(unsupported(s), nullptr);
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
