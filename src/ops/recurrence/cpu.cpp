// SPDX-License-Identifier: Apache-2.0
#include "ops/recurrence/cpu_plain.h"
#include "ops/recurrence/cpu_steps.h"
#include "ops/recurrence/op.h"

namespace tw::ops::recurrence {

namespace {

constexpr StepsTactic kAvx512{"recurrence_f32_steps_avx512", 2, kernels::jit::Isa::kAvx512};
constexpr StepsTactic kAvx2{"recurrence_f32_steps_avx2", 2, kernels::jit::Isa::kAvx2};

} // namespace

std::span<Tactic const* const> cpuTactics()
{
    static constexpr Tactic const* kList[] = {&kAvx512, &kAvx2, &kPlainCpu};
    return kList;
}

} // namespace tw::ops::recurrence
