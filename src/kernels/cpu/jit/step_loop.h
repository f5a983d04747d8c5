// SPDX-License-Identifier: Apache-2.0
// The loops that gemm_kernel.h describes: steps over elements of A and packed rows of B.
#pragma once

#include <cstdint>
#include <vector>

namespace tw::kernels::jit {

struct Step
{
    int32_t aBytes = 0; // from the row's position
    int32_t bBytes = 0; // from the loop's position in B
    int rowBegin = 0, rowEnd = 1 << 10;
    int bytes = 4; // of A that exist, 1 .. 4; of i8 alone
};

struct StepLoop
{
    std::vector<Step> steps;
    int32_t aAdvance = 0, bAdvance = 0; // bytes per run of the loop
};

// `unroll` steps, each so many bytes of A and of B behind the one before.
inline StepLoop evenSteps(int unroll, int64_t aBytes, int64_t bBytes)
{
    StepLoop l;
    for (int u = 0; u < unroll; ++u)
        l.steps.push_back({int32_t(u * aBytes), int32_t(u * bBytes)});
    l.aAdvance = int32_t(unroll * aBytes);
    l.bAdvance = int32_t(unroll * bBytes);
    return l;
}

} // namespace tw::kernels::jit
