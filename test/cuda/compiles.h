// SPDX-License-Identifier: Apache-2.0
// Whether NVRTC makes device code of a source, without spilled registers.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

#include "device/cuda/compiler.h"
#include "kernels/cuda/common/source.h"

namespace tw::test {

inline Result<std::unique_ptr<cuda::Compiler>> openCompiler()
{
    cuda::SearchPath path;
    if (char const* given = std::getenv("TENSORWRIGHT_NVRTC"))
        path.given = {given};
    path.after = {"/usr/local/cuda/lib64", "/usr/local/cuda/lib"};
    return cuda::Compiler::open(path);
}

inline void compiles(std::string const& name, std::string const& source, char const* architecture = "sm_90a",
                     size_t kernels = 1)
{
    auto compiler = openCompiler();
    if (!compiler.ok())
        GTEST_SKIP() << compiler.error().message;
    auto made = (*compiler)->compile(name, cuda::withIncludes(source), architecture);
    ASSERT_TRUE(made.ok()) << made.error().message;
    ASSERT_EQ((*made)->kernels.size(), kernels);
    for (cuda::KernelResources const& r : (*made)->kernels) {
        EXPECT_EQ(r.spillBytes, 0) << name;
        EXPECT_GT(r.registers, 0);
        std::printf("%-60s %3d registers, %.2f s\n", name.c_str(), r.registers, (*made)->seconds);
    }
}

} // namespace tw::test
