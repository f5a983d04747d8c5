// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <cstring>

#include <gtest/gtest.h>

#include "plan/network.h"

int main(int argc, char** argv)
{
    constexpr char const* kWrite = "--write-saved=";
    if (argc == 2 && std::strncmp(argv[1], kWrite, std::strlen(kWrite)) == 0) {
        auto written = tw::test::writeSaved(argv[1] + std::strlen(kWrite));
        if (!written.ok())
            std::fprintf(stderr, "%s\n", written.error().message.c_str());
        return written.ok() ? 0 : 1;
    }
    testing::InitGoogleTest(&argc, argv);
    return RUN_ALL_TESTS();
}
