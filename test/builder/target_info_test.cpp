// SPDX-License-Identifier: Apache-2.0
// Machines as passes see them.
#include <gtest/gtest.h>

#include "builder/types.h"
#include "device/cpu.h"
#include "device/cuda/target.h"

namespace tw::test {

using Isa = passes::TargetInfo::Isa;

TEST(TargetInfo, Cpus)
{
    device::CpuInfo cpu;
    cpu.l2Bytes = 3 << 20;
    auto isa = [&] { return builder::describe({.cpu = &cpu}).cpu()->isa; };
    EXPECT_EQ(isa(), Isa::kBaseline);
    cpu.avx2 = true;
    EXPECT_EQ(isa(), Isa::kBaseline); // without FMA nothing is emitted
    cpu.fma = true;
    EXPECT_EQ(isa(), Isa::kAvx2);
    cpu.avx512f = cpu.avx512bw = cpu.avx512vl = cpu.avx512dq = true;
    EXPECT_EQ(isa(), Isa::kAvx512);
    passes::TargetInfo const t = builder::describe({.cpu = &cpu});
    EXPECT_EQ(t.cpu()->l2Bytes, 3 << 20);
    EXPECT_EQ(t.gpu(), nullptr);
    EXPECT_FALSE(t.computesHalf());
}

TEST(TargetInfo, AGpuThatIsNotThere)
{
    cuda::Target target;
    target.capability = 90;
    target.multiprocessors = 132;
    passes::TargetInfo const t = builder::describe({.cuda = &target});
    ASSERT_NE(t.gpu(), nullptr);
    EXPECT_EQ(t.cpu(), nullptr);
    EXPECT_EQ(t.gpu()->capability, 90);
    EXPECT_EQ(t.gpu()->multiprocessors, 132);
    EXPECT_EQ(t.gpu()->l2Bytes, 0);
    EXPECT_TRUE(t.computesHalf());
}

} // namespace tw::test
