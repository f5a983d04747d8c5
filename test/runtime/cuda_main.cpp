// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include <gtest/gtest.h>

#include "cuda_run.h"

bool const tw::test::kOnGpu = true;

int main(int argc, char** argv)
{
    testing::InitGoogleTest(&argc, argv);
    auto const gpu = tw::test::testGpu();
    if (!gpu.ok()) {
        std::printf("skipped: %s\n", gpu.error().message.c_str());
        return 77;
    }
    return RUN_ALL_TESTS();
}
