// SPDX-License-Identifier: Apache-2.0
// More threads than one NVRTC serves: copies of it give the same code.
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "compiles.h"

namespace tw::test {

namespace {

std::string kernelOf(int number)
{
    return fmt::format("extern \"C\" __global__ void times{0}(float* x) {{ x[threadIdx.x] *= {0}; }}\n", number);
}

} // namespace

TEST(CudaNvrtc, CopiesGiveTheSameCode)
{
    constexpr int kThreads = 6, kSources = 18;
    auto many = openCompiler(), one = openCompiler();
    if (!many.ok())
        GTEST_SKIP() << many.error().message;
    ASSERT_TRUE(one.ok());
    std::vector<std::string> cubins(kSources);
    auto const work = [&](int thread) {
        for (int i = thread; i < kSources; i += kThreads)
            if (auto made = (*many)->compile("times", kernelOf(i), "sm_90a"); made.ok())
                cubins[size_t(i)] = (*made)->cubin;
    };
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t)
        threads.emplace_back(work, t);
    for (std::thread& t : threads)
        t.join();
    for (int i = 0; i < kSources; ++i) {
        auto const made = (*one)->compile("times", kernelOf(i), "sm_90a");
        ASSERT_TRUE(made.ok()) << made.error().message;
        EXPECT_EQ(cubins[size_t(i)], (*made)->cubin) << i;
    }
    if ((*many)->libraries() == 1)
        GTEST_SKIP() << "this machine lets no process run a library from a file in memory";
}

} // namespace tw::test
