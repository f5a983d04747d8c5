// SPDX-License-Identifier: Apache-2.0
// Whole matrix products by emitted kernels: shapes below, at and above tiles and panels, strides, several products,
// blocks of k (a small L2 makes them short), parts in any order on several workers; guards round c and the scratch
// memory.
#include "kernels/cpu/gemm_jit.h"

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "backward_workers.h"
#include "device/cpu.h"
#include "kernels/cpu/casts.h"

namespace {

using namespace tw;
using kernels::BackwardWorkers;
using kernels::GemmJit;
using kernels::GemmJitOptions;
using kernels::GemmOffsets;
using kernels::GemmShape;
using kernels::jit::Factors;
using kernels::jit::Isa;

constexpr float kGuard = -12345.5f;
constexpr int64_t kGuards = 64;

struct GuardedFloats
{
    std::vector<float> storage;
    float* data;
    int64_t count;
    GuardedFloats(int64_t n, int64_t shift)
        : storage(size_t(n + 2 * kGuards + 32), kGuard), data(storage.data() + kGuards), count(n)
    {
        while (reinterpret_cast<uintptr_t>(data) % 64)
            ++data;
        data += shift;
    }
    bool intact() const
    {
        for (size_t i = 0; i < storage.size(); ++i)
            if ((storage.data() + i < data || storage.data() + i >= data + count) && storage[i] != kGuard)
                return false;
        return true;
    }
};

// The nearest number with 8 bits of mantissa, of two the even one, by what floats mean: no bits are looked at.
float toBfloat16(float x)
{
    if (!std::isfinite(x) || x == 0)
        return x;
    int exponent = 0;
    double const fraction = std::frexp(double(x), &exponent); // [0.5, 1)
    double const scaled = std::ldexp(fraction, 8), nearest = std::nearbyint(scaled);
    return float(std::ldexp(nearest, exponent - 8));
}

void runProduct(GemmJitOptions const& o, int64_t m, int64_t n, int64_t k, bool transposeA, bool transposeB,
                std::mt19937& rng)
{
    SCOPED_TRACE(std::string(isaName(o.isa)) + " factors " + std::to_string(int(o.factors)) + ", " +
                 std::to_string(o.vectors) + " vectors, b " + std::to_string(o.b) + ", packA " +
                 std::to_string(o.packA) + ", L2 " + std::to_string(o.l2Bytes) + ", threads " +
                 std::to_string(o.threads) + ", " + std::to_string(m) + "x" + std::to_string(n) + "x" +
                 std::to_string(k) + (transposeA ? " t" : " n") + (transposeB ? "t" : "n"));
    auto random = [&](std::vector<float>& v) {
        for (float& e : v)
            e = std::uniform_real_distribution<float>(-1, 1)(rng);
    };
    constexpr int64_t kProducts = 2;
    std::vector<float> a(size_t(kProducts * m * k)), b(size_t(kProducts * k * n)), bias((size_t(n))),
        residual(size_t(kProducts * m * n));
    random(a);
    random(b);
    random(bias);
    random(residual);
    kernels::CastKernels const& casts = kernels::castsOf(o.isa);
    auto const narrow = o.bfloat16 ? casts.floatToBfloat16 : casts.floatToHalf;
    bool const isNarrow = o.b == GemmJitOptions::kNarrowBefore;
    if (isNarrow) { // numbers of 16 bits
        std::vector<uint16_t> bits(b.size());
        narrow(b.data(), bits.data(), int64_t(b.size()));
        (o.bfloat16 ? casts.bfloat16ToFloat : casts.halfToFloat)(bits.data(), b.data(), int64_t(b.size()));
    }
    GemmShape const s{m, n, k, transposeA ? 1 : k, transposeA ? m : 1, transposeB ? 1 : n, transposeB ? k : 1};
    std::vector<GemmOffsets> offsets{{0, 0}, {m * k, k * n}};
    GuardedFloats packed(kProducts * GemmJit::packedFloats(o, n, k), 0);
    float const* from = b.data();
    std::vector<uint16_t> bits(size_t(kProducts * GemmJit::packedFloats(o, n, k)) + 1);
    if (o.b == GemmJitOptions::kPackedBefore || isNarrow) {
        for (int64_t i = 0; i < kProducts; ++i)
            GemmJit::packB(o, s, b.data() + i * k * n, packed.data + i * GemmJit::packedFloats(o, n, k));
        offsets[1].b = GemmJit::packedFloats(o, n, k);
        from = packed.data;
        ASSERT_TRUE(packed.intact());
        if (isNarrow) {
            narrow(packed.data, bits.data(), int64_t(bits.size()) - 1);
            from = reinterpret_cast<float const*>(bits.data());
        }
    }
    auto gemm = GemmJit::make(o, s, offsets);
    ASSERT_TRUE(gemm.ok()) << gemm.error().message;
    GuardedFloats c(kProducts * m * n, 1), scratch(GemmJit::workspaceBytes(o, m, n, k) / 4, 0);
    BackwardWorkers workers(o.threads);
    gemm->run(a.data(), from, o.bias ? bias.data() : nullptr, o.residual ? residual.data() : nullptr, c.data,
              scratch.data, workers);
    ASSERT_TRUE(c.intact());
    ASSERT_TRUE(scratch.intact());
    for (int64_t p = 0; p < kProducts; ++p)
        for (int64_t i = 0; i < m; ++i)
            for (int64_t j = 0; j < n; ++j) {
                double want = 0;
                for (int64_t q = 0; q < k; ++q) {
                    float x = a[size_t(p * m * k + i * s.aRow + q * s.aColumn)];
                    float y = b[size_t(p * k * n + q * s.bRow + j * s.bColumn)];
                    if (isPairs(o.factors)) {
                        x = toBfloat16(x);
                        y = toBfloat16(y);
                    }
                    want += double(x) * y;
                }
                int64_t const at = (p * m + i) * n + j;
                want += o.bias ? bias[size_t(j)] : 0;
                want += o.residual ? residual[size_t(at)] : 0;
                if (o.activation)
                    want = std::fmax(want, 0);
                ASSERT_NEAR(c.data[at], want, 2e-6 * (4 + std::sqrt(double(k))))
                    << "product " << p << " at " << i << ", " << j;
            }
}

TEST(GemmJit, agreesWithSumsInDouble)
{
    uint32_t const seed = 11;
    std::mt19937 rng(seed);
    SCOPED_TRACE("seed " + std::to_string(seed));
    auto pick = [&](int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(rng); };
    device::CpuInfo const cpu = device::probeCpu();
    for (Isa isa : {Isa::kAvx2, Isa::kAvx512}) {
        if (kernels::jit::isaOf(cpu, isa) != isa)
            continue;
        int64_t const width = kernels::jit::vectorWidth(isa);
        for (int trial = 0; trial < 400 && !testing::Test::HasFatalFailure(); ++trial) {
            GemmJitOptions o;
            o.isa = isa;
            o.vectors = int(pick(1, 4));
            o.b = GemmJitOptions::B(pick(GemmJitOptions::kPackedBefore, GemmJitOptions::kDirect));
            o.bfloat16 = trial % 2;
            o.packA = pick(0, 1);
            o.l2Bytes = trial % 3 ? 1 << 20 : 24 << 10;
            o.threads = int(pick(1, 3));
            o.bias = pick(0, 1);
            o.residual = pick(0, 1);
            if (pick(0, 1))
                o.activation = kernels::jit::Activation{ActivationKind::kRelu};
            int64_t const rows = kernels::jit::gemmMaxRows(isa, o.vectors), panel = o.vectors * width;
            int64_t const m = std::max<int64_t>(pick(0, 3) * rows + pick(-1, 1), 0);
            int64_t const n = std::max<int64_t>(pick(0, 3) * panel + pick(-1, 1), 0);
            int64_t const k = trial % 3 ? pick(0, 9) : pick(0, 120);
            runProduct(o, m, n, k, pick(0, 1), o.b != GemmJitOptions::kDirect && pick(0, 1), rng);
        }
    }
}

void runPairs(Isa isa, Factors factors)
{
    device::CpuInfo const cpu = device::probeCpu();
    if (kernels::jit::isaOf(cpu, isa) != isa || !kernels::jit::hasFactors(cpu, isa, factors))
        GTEST_SKIP() << "this CPU lacks the instructions";
    uint32_t const seed = 23;
    std::mt19937 rng(seed);
    SCOPED_TRACE("seed " + std::to_string(seed));
    auto pick = [&](int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(rng); };
    int64_t const width = kernels::jit::vectorWidth(isa);
    for (int trial = 0; trial < 400 && !testing::Test::HasFatalFailure(); ++trial) {
        GemmJitOptions o;
        o.isa = isa;
        o.factors = factors;
        o.vectors = int(pick(1, 4));
        o.b = GemmJitOptions::kPackedBefore;
        o.packA = pick(0, 1);
        o.l2Bytes = trial % 3 ? 1 << 20 : 24 << 10;
        o.threads = int(pick(1, 3));
        o.bias = pick(0, 1);
        o.residual = pick(0, 1);
        if (pick(0, 1))
            o.activation = kernels::jit::Activation{ActivationKind::kRelu};
        int64_t const rows = kernels::jit::gemmMaxRows(isa, o.vectors, factors), panel = o.vectors * width;
        int64_t const m = std::max<int64_t>(pick(0, 3) * rows + pick(-1, 1), 0);
        int64_t const n = std::max<int64_t>(pick(0, 3) * panel + pick(-1, 1), 0);
        int64_t const k = trial % 3 ? pick(0, 40) : pick(0, 400);
        runProduct(o, m, n, k, pick(0, 1), pick(0, 1), rng);
    }
}

TEST(GemmJit, pairsByShiftsOnAvx2)
{
    runPairs(Isa::kAvx2, Factors::kBf16Shifts);
}
TEST(GemmJit, pairsByShiftsOnAvx512)
{
    runPairs(Isa::kAvx512, Factors::kBf16Shifts);
}
TEST(GemmJit, pairsByDots)
{
    runPairs(Isa::kAvx512, Factors::kBf16Dots);
}
TEST(GemmJit, pairsByTiles)
{
    runPairs(Isa::kAvx512, Factors::kBf16Tiles);
}

TEST(GemmJit, pairsNeedPackedWeights)
{
    GemmJitOptions o;
    o.factors = Factors::kBf16Shifts;
    o.b = GemmJitOptions::kDirect;
    EXPECT_FALSE(GemmJit::make(o, {4, 4, 4, 4, 1, 4, 1}, {{}}).ok());
}

TEST(Bf16, roundsHalfToEvenAndKeepsWhatIsNotFinite)
{
    constexpr float kInf = std::numeric_limits<float>::infinity();
    float const nan = std::bit_cast<float>(0x7f800001u); // its upper half alone would be an infinity
    std::vector<float> x{0.F,           -0.F,   1.F,   -1.F, 1.00390625F,
                         1.01171875F,   kInf,   -kInf, nan,  std::bit_cast<float>(0xff80ffffu),
                         3.4028235e38F, 1e-39F, -2.5F};
    std::mt19937 rng(5);
    while (x.size() < 1000)
        x.push_back(std::bit_cast<float>(uint32_t(rng())));
    device::CpuInfo const cpu = device::probeCpu();
    for (Isa isa : {Isa::kAvx2, Isa::kAvx512}) {
        if (kernels::jit::isaOf(cpu, isa) != isa)
            continue;
        int64_t const n = int64_t(x.size()), width = n / 2 + 3;
        std::vector<float> pairs(size_t(width), kGuard), apart(size_t(width), kGuard), twice(size_t(2 * n));
        kernels::roundPairs(isa, pairs.data(), width, width, x.data(), 1, n - 1, n, 1);
        for (int64_t i = 0; i < n; ++i)
            twice[size_t(2 * i)] = x[size_t(i)];
        kernels::roundPairs(isa, apart.data(), width, width, twice.data(), 1, n - 1, n, 2);
        for (int64_t i = 0; i < 2 * width; ++i) {
            auto at = [&](std::vector<float> const& v) {
                uint32_t const pair = std::bit_cast<uint32_t>(v[size_t(i / 2)]);
                return std::bit_cast<float>(i % 2 ? pair & 0xffff0000u : pair << 16);
            };
            float const want = i < n - 1 ? x[size_t(i)] : 0;
            for (float const got : {at(pairs), at(apart)}) {
                if (std::isnan(want)) {
                    EXPECT_TRUE(std::isnan(got)) << i;
                    continue;
                }
                bool const isTiny = want != 0 && std::fabs(want) < std::numeric_limits<float>::min();
                if (isTiny) // fewer bits than 8
                    EXPECT_NEAR(got, want, 1e-40) << want;
                else
                    EXPECT_EQ(got, toBfloat16(want)) << want;
                EXPECT_EQ(std::signbit(got), std::signbit(want)) << want;
            }
        }
    }
}

TEST(GemmJit, rowStridesThatThrash)
{
    constexpr int64_t kL1 = 32 << 10; // 8 ways
    EXPECT_TRUE(kernels::thrashesL1(4096, 14, kL1));
    EXPECT_TRUE(kernels::thrashesL1(12288, 14, kL1));
    EXPECT_FALSE(kernels::thrashesL1(4096, 9, kL1));
    EXPECT_FALSE(kernels::thrashesL1(4096 + 64, 14, kL1));
    EXPECT_FALSE(kernels::thrashesL1(3072, 14, kL1));      // four sets for 14 rows
    EXPECT_FALSE(kernels::thrashesL1(4096, 13, 48 << 10)); // 12 ways
}

} // namespace
