// SPDX-License-Identifier: Apache-2.0
// Whole products of i8 by emitted kernels, bit for bit: shapes below, at and above tiles and panels, strides, several
// products, blocks of rows (a small L2 makes them short), parts in any order on several workers; guards round c, the
// packed matrices and the scratch memory.
#include <cmath>
#include <cstring>
#include <random>

#include <gtest/gtest.h>

#include "backward_workers.h"
#include "kernels/cpu/gemm_jit.h"
#include "ways.h"

namespace {

using namespace tw;
using kernels::BackwardWorkers;
using kernels::GemmJit;
using kernels::GemmJitOptions;
using kernels::GemmShape;
using kernels::jit::Factors;
using kernels::jit::Isa;
using kernels::jit::Way;
using kernels::jit::ways;

// 64-byte aligned bytes between others that nobody may write.
struct GuardedBytes
{
    static constexpr int64_t kGuards = 64;
    std::vector<uint8_t> storage;
    int8_t* data;
    int64_t count;
    GuardedBytes(int64_t bytes, int64_t shift) : storage(size_t(bytes + 2 * kGuards + 128), 0xa5), count(bytes)
    {
        data = reinterpret_cast<int8_t*>(storage.data()) + kGuards;
        while (reinterpret_cast<uintptr_t>(data) % 64)
            ++data;
        data += shift;
    }
    bool intact() const
    {
        auto const* const first = reinterpret_cast<uint8_t const*>(data);
        for (auto const& e : storage)
            if ((&e < first || &e >= first + count) && e != 0xa5)
                return false;
        return true;
    }
};

void runIntegers(GemmJitOptions const& o, int64_t m, int64_t n, int64_t k, bool transposeA, bool transposeB,
                 std::mt19937& rng)
{
    SCOPED_TRACE(std::string(isaName(o.isa)) + " dots " + std::to_string(int(o.factors)) + ", " +
                 std::to_string(o.vectors) + " vectors, packed before " + std::to_string(int(o.b)) + ", packA " +
                 std::to_string(o.packA) + ", L2 " + std::to_string(o.l2Bytes) + ", threads " +
                 std::to_string(o.threads) + ", " + std::to_string(m) + "x" + std::to_string(n) + "x" +
                 std::to_string(k) + (transposeA ? " t" : " n") + (transposeB ? "t" : "n"));
    constexpr int64_t kProducts = 2;
    auto random = [&](int64_t count) {
        std::vector<int8_t> v(static_cast<size_t>(count));
        for (int8_t& e : v)
            e = int8_t(rng());
        return v;
    };
    std::vector<int8_t> a = random(kProducts * m * k);
    for (int8_t& e : a)
        e = o.factors == kernels::jit::Factors::kBytePairs ? int8_t(e & 127) : e;
    std::vector<int8_t> const b = random(kProducts * k * n), residual = random(kProducts * m * n);
    std::vector<float> scale(static_cast<size_t>(n)), bias(static_cast<size_t>(n));
    for (float& e : scale)
        e = 3e-3F / float(std::sqrt(double(k) + 1)) * float(1 + rng() % 8);
    for (float& e : bias)
        e = float(rng() % 1000) / 10 - 50;
    GemmShape const s{m, n, k, transposeA ? 1 : k, transposeA ? m : 1, transposeB ? 1 : n, transposeB ? k : 1};
    std::vector<kernels::GemmOffsets> offsets{{0, 0}, {m * k, k * n}};
    bool const packedBefore = o.b == GemmJitOptions::kPackedBefore;
    int64_t const each = GemmJit::packedFloats(o, n, k);
    GuardedBytes packed(kProducts * each * 4, 0);
    if (packedBefore) {
        for (int64_t i = 0; i < kProducts; ++i)
            GemmJit::packB(o, s, b.data() + i * k * n, reinterpret_cast<float*>(packed.data) + i * each);
        offsets[1].b = each;
        ASSERT_TRUE(packed.intact());
    }
    auto gemm = GemmJit::make(o, s, offsets);
    ASSERT_TRUE(gemm.ok()) << gemm.error().message;
    int64_t const cBytes = sizeOf(o.integers.store);
    GuardedBytes c(kProducts * m * n * cBytes, 1), scratch(GemmJit::workspaceBytes(o, m, n, k), 0);
    kernels::jit::GemmArgs out;
    out.c = c.data;
    out.scale = scale.data();
    out.bias = o.integers.bias ? bias.data() : nullptr;
    out.residual = o.integers.residual ? residual.data() : nullptr;
    out.numbers.residualScale = 0.3F;
    BackwardWorkers workers(o.threads);
    gemm->run(a.data(), packedBefore ? packed.data : b.data(), out, scratch.data, workers);
    ASSERT_TRUE(c.intact());
    ASSERT_TRUE(packed.intact());
    ASSERT_TRUE(scratch.intact());
    for (int64_t p = 0; p < kProducts; ++p)
        for (int64_t i = 0; i < m; ++i)
            for (int64_t j = 0; j < n; ++j) {
                int64_t sum = 0;
                for (int64_t q = 0; q < k; ++q)
                    sum += a[size_t(p * m * k + i * s.aRow + q * s.aColumn)] *
                           b[size_t(p * k * n + q * s.bRow + j * s.bColumn)];
                int64_t const at = (p * m + i) * n + j;
                float t = float(sum) * scale[o.integers.oneScale ? 0 : size_t(j)];
                if (o.integers.bias)
                    t += bias[size_t(j)];
                if (o.integers.residual)
                    t += float(residual[size_t(at)]) * out.numbers.residualScale;
                if (o.integers.activation)
                    t = std::fmax(t, 0.F);
                if (o.integers.store == DataType::kInt8) {
                    ASSERT_EQ(int(c.data[at]), int(std::nearbyint(std::fmin(127.F, std::fmax(-128.F, t)))))
                        << "product " << p << " row " << i << " column " << j;
                } else {
                    float got;
                    std::memcpy(&got, c.data + 4 * at, 4);
                    ASSERT_EQ(got, t) << "product " << p << " row " << i << " column " << j;
                }
            }
}

TEST(Int8Gemm, shapesAndStrides)
{
    std::mt19937 rng(5);
    auto pick = [&](int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(rng); };
    for (Way const& way : ways())
        for (int trial = 0; trial < 240; ++trial) {
            GemmJitOptions o;
            o.isa = way.isa;
            o.factors = way.factors;
            o.vectors = int(pick(1, 4));
            o.b = pick(0, 1) ? GemmJitOptions::kPackedBefore : GemmJitOptions::kPacked;
            bool const transposeA = pick(0, 2) == 0;
            o.packA = transposeA || pick(0, 2) == 0;
            o.l2Bytes = pick(0, 1) ? 1 << 20 : 4 << 10;
            o.threads = int(pick(1, 3));
            o.integers.oneScale = pick(0, 1);
            o.integers.bias = pick(0, 1);
            if (pick(0, 1))
                o.integers.residual = DataType::kInt8;
            if (pick(0, 1))
                o.integers.activation = kernels::jit::Activation{};
            o.integers.store = pick(0, 1) ? DataType::kInt8 : DataType::kFloat;
            int64_t const m = trial % 8 == 0 ? 1 : pick(1, 70), n = trial % 9 == 0 ? 1 : pick(1, 200);
            int64_t const k = trial % 10 == 0 ? pick(0, 4) : trial % 10 == 1 ? 16 * pick(1, 12) : pick(1, 300);
            runIntegers(o, m, n, k, transposeA, pick(0, 1), rng);
            if (testing::Test::HasFatalFailure())
                return;
        }
}

// The workspace of the largest sizes is enough for all others.
TEST(Int8Gemm, workspaceGrowsWithSizes)
{
    for (Way const& way : ways()) {
        GemmJitOptions o;
        o.isa = way.isa;
        o.factors = way.factors;
        o.packA = true;
        o.threads = 2;
        o.l2Bytes = 64 << 10;
        int64_t last = 0;
        for (int64_t size = 1; size < 3000; size = size * 5 / 4 + 1) {
            int64_t const bytes = GemmJit::workspaceBytes(o, size, size, size);
            EXPECT_GE(bytes, last) << size;
            EXPECT_GE(GemmJit::workspaceBytes(o, size + 1, size, size), bytes) << size;
            EXPECT_GE(GemmJit::workspaceBytes(o, size, size + 1, size), bytes) << size;
            EXPECT_GE(GemmJit::workspaceBytes(o, size, size, size + 1), bytes) << size;
            last = bytes;
        }
    }
}

} // namespace
