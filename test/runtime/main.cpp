// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "cuda_run.h"

bool const tw::test::kOnGpu = false;

int main(int argc, char** argv)
{
    testing::InitGoogleTest(&argc, argv);
    return RUN_ALL_TESTS();
}
