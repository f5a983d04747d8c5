// SPDX-License-Identifier: Apache-2.0
// What needs neither GPU nor NVRTC.
#include <gtest/gtest.h>

#include <random>

#include "device/cuda/compiler.h"
#include "device/cuda/device.h"
#include "kernels/cuda/params.h"
#include "kernels/cuda/prelude.h"
#include "ops/registry.h"
#include "ops/tactic.h"

namespace tw::test {

namespace {

// As prelude.cpp writes it for 32-bit indices.
uint32_t divide(uint32_t n, cuda::Div const& v)
{
    uint32_t const high = uint32_t(uint64_t(n) * v.m >> 32);
    return (high + n) >> v.s;
}

} // namespace

TEST(CudaParts, DivisionByNumbersKnownAtLaunch)
{
    std::mt19937 random(1);
    constexpr uint32_t kMost = (uint32_t(1) << 31) - 1;
    for (int i = 0; i < 200000; ++i) {
        uint32_t d = random() >> (1 + random() % 31), n = random() >> 1;
        d = d == 0 ? 1 : d;
        if (i % 4 == 0)
            n = n / d * d - (n >= d ? i / 4 % 2 : 0); // at the borders
        ASSERT_EQ(divide(n, cuda::divBy(d)), n / d) << n << " / " << d;
    }
    for (uint32_t d : {1U, 2U, 3U, 7U, 1U << 30, (1U << 30) + 1, kMost - 1, kMost})
        for (uint32_t n : {0U, 1U, d - 1, d, kMost - 1, kMost})
            EXPECT_EQ(divide(n, cuda::divBy(d)), n / d) << n << " / " << d;
}

TEST(CudaParts, Text)
{
    EXPECT_EQ(cuda::expand("$a$+$b$+$a$ $c$", {{"a", "x"}, {"b", "$a$"}}), "x+$a$+x $c$");
    EXPECT_EQ(cuda::literal(1.0F), "__uint_as_float(1065353216u)");
    EXPECT_STREQ(cuda::storageOf(DataType::kBool), "b8");
    EXPECT_STREQ(cuda::unitOf(16), "unit16");
}

TEST(CudaParts, LibrariesThatAreNotThere)
{
    auto named = cuda::Compiler::open(cuda::SearchPath{{"/nowhere/libnvrtc.so"}, {}, {}});
    ASSERT_FALSE(named.ok());
    EXPECT_NE(named.error().message.find("/nowhere/libnvrtc.so"), std::string::npos);
    auto library = cuda::Library::open("a library", {"libno_such_library_anywhere.so"}, {{}, {"/a"}, {"/b"}});
    ASSERT_FALSE(library.ok());
    EXPECT_NE(library.error().message.find("a library (libno_such_library_anywhere.so) was not found"),
              std::string::npos);
}

TEST(CudaParts, ArchitectureOfKernels)
{
    cuda::DeviceInfo info;
    auto of = [&](int major, int minor) {
        info.major = major;
        info.minor = minor;
        return info.architecture();
    };
    EXPECT_EQ(of(8, 0), "sm_80");
    EXPECT_EQ(of(8, 9), "sm_80");
    EXPECT_EQ(of(9, 0), "sm_90a");
    EXPECT_EQ(of(10, 0), "sm_100");
}

// The plain tactic closes each list; every op that has CPU kernels has CUDA ones.
TEST(CudaParts, EveryOpHasTactics)
{
    for (ir::OpDef const* op : ops::all()) {
        EXPECT_EQ(op->cudaTactics == nullptr, op->cpuTactics == nullptr) << op->name;
        if (!op->cudaTactics)
            continue;
        ASSERT_FALSE(op->cudaTactics().empty()) << op->name;
        for (ops::Tactic const* t : op->cudaTactics())
            EXPECT_EQ(int(t->backend()), int(ops::Backend::kCuda)) << t->name();
        EXPECT_NE(std::string(op->cudaTactics().back()->name()).find("_plain_cuda"), std::string::npos) << op->name;
    }
}

} // namespace tw::test
