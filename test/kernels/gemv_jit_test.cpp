// SPDX-License-Identifier: Apache-2.0
// Products of few rows by emitted kernels: one block of rows and several, panels packed and in place, strides, several
// products, parts in any order; guards round c.
#include "kernels/cpu/gemv_jit.h"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "device/cpu.h"
#include "device/large_pages.h"
#include "device/thread_pool.h"

namespace {

using namespace tw;
using kernels::GemmJit;
using kernels::GemmJitOptions;
using kernels::GemmOffsets;
using kernels::GemmShape;
using kernels::GemvJit;
using kernels::GemvJitOptions;
using kernels::jit::GemvWeights;
using kernels::jit::Isa;

void runProduct(GemvJitOptions const& o, int64_t m, int64_t n, int64_t k, bool transposeA, std::mt19937& rng)
{
    SCOPED_TRACE(std::string(isaName(o.isa)) + " " + std::to_string(o.vectors) + " vectors, b " + std::to_string(o.b) +
                 ", " + std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k) +
                 (transposeA ? " t" : " n"));
    constexpr int64_t kProducts = 2, kGuards = 16;
    constexpr float kGuard = -12345.5f;
    auto random = [&](int64_t count) {
        std::vector<float> v(size_t(count), 0.f);
        for (float& e : v)
            e = std::uniform_real_distribution<float>(-1, 1)(rng);
        return v;
    };
    auto const a = random(kProducts * m * k), bias = random(n), residual = random(kProducts * m * n);
    auto b = random(kProducts * k * n);
    bool const narrow = o.weights != GemvWeights::kFloat;
    for (float& e : b) // values that 8 bits of mantissa hold
        e = narrow ? std::nearbyint(e * 127) / 128 : e;
    bool const columns = o.b == GemvJitOptions::kColumns;
    GemmShape const s{m, n, k, transposeA ? 1 : k, transposeA ? m : 1, columns ? 1 : n, columns ? k : 1};
    std::vector<GemmOffsets> offsets{{0, 0}, {m * k, k * n}};
    GemmJitOptions layout;
    layout.isa = o.isa;
    layout.vectors = o.vectors;
    device::PackedFloats packed(kProducts * GemmJit::packedFloats(layout, n, k));
    void const* from = b.data();
    std::vector<uint16_t> halves;
    if (o.b == GemvJitOptions::kPacked) {
        offsets[1].b = GemmJit::packedFloats(layout, n, k);
        for (int64_t i = 0; i < kProducts; ++i)
            GemmJit::packB(layout, s, b.data() + i * k * n, packed.data() + i * offsets[1].b);
        from = packed.data();
        if (narrow) {
            halves.resize(size_t(kProducts * offsets[1].b));
            GemvJit::narrow(o, packed.data(), int64_t(halves.size()), halves.data());
            from = halves.data();
        }
    }
    auto gemv = GemvJit::make(o, s, offsets);
    ASSERT_TRUE(gemv.ok()) << gemv.error().message;
    int64_t const count = kProducts * m * n;
    std::vector<float> c(size_t(count + 2 * kGuards), kGuard);
    device::ThreadPool pool(o.threads);
    gemv->run(a.data(), from, o.bias ? bias.data() : nullptr, o.residual ? residual.data() : nullptr,
              c.data() + kGuards, pool.workers());
    for (int64_t i = 0; i < kGuards; ++i) {
        ASSERT_EQ(c[size_t(i)], kGuard);
        ASSERT_EQ(c[size_t(kGuards + count + i)], kGuard);
    }
    for (int64_t at = 0; at < count; ++at) {
        int64_t const p = at / (m * n), i = at / n % m, j = at % n;
        double want = (o.bias ? bias[size_t(j)] : 0.) + (o.residual ? residual[size_t(at)] : 0.);
        for (int64_t q = 0; q < k; ++q)
            want += double(a[size_t(p * m * k + i * s.aRow + q * s.aColumn)]) *
                    b[size_t(p * k * n + q * s.bRow + j * s.bColumn)];
        if (o.activation)
            want = std::tanh(want);
        ASSERT_NEAR(c[size_t(kGuards + at)], want, 2e-6 * (4 + std::sqrt(double(k))))
            << "product " << p << " at " << i << ", " << j;
    }
}

TEST(GemvJit, agreesWithSumsInDouble)
{
    uint32_t const seed = 17;
    std::mt19937 rng(seed);
    SCOPED_TRACE("seed " + std::to_string(seed));
    auto pick = [&](int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(rng); };
    device::CpuInfo const cpu = device::probeCpu();
    for (Isa isa : {Isa::kAvx2, Isa::kAvx512}) {
        if (kernels::jit::isaOf(cpu, isa) != isa)
            continue;
        for (int trial = 0; trial < 300 && !testing::Test::HasFatalFailure(); ++trial) {
            GemvJitOptions o;
            o.isa = isa;
            o.b = GemvJitOptions::B(pick(0, 2));
            o.vectors = int(o.b == GemvJitOptions::kRows ? pick(1, 8) : pick(1, 4));
            if (o.b == GemvJitOptions::kPacked)
                o.weights = GemvWeights(pick(0, 2));
            o.threads = int(pick(1, 3));
            o.bias = pick(0, 1) == 1;
            o.residual = pick(0, 1) == 1;
            if (pick(0, 2) == 0)
                o.activation = kernels::jit::Activation{ActivationKind::kTanh, 0, 0};
            runProduct(o, pick(1, 11), pick(1, 9 * kernels::jit::vectorWidth(isa)), pick(0, 40), pick(0, 1) == 1, rng);
        }
        GemvJitOptions shared;
        shared.isa = isa;
        shared.threads = 3;
        for (auto b : {GemvJitOptions::kPacked, GemvJitOptions::kRows, GemvJitOptions::kColumns}) {
            shared.b = b;
            runProduct(shared, 3, 900, 310, false, rng);
        }
    }
}

TEST(GemvJit, narrowWeightsArePacked)
{
    GemvJitOptions o;
    o.b = GemvJitOptions::kRows;
    o.weights = GemvWeights::kHalf;
    EXPECT_FALSE(GemvJit::make(o, {1, 8, 4, 4, 1, 8, 1}, {{}}).ok());
}

} // namespace
