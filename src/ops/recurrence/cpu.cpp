// SPDX-License-Identifier: Apache-2.0
#include "ops/recurrence/cpu_plain.h"
#include "ops/recurrence/cpu_products.h"
#include "ops/recurrence/cpu_steps.h"
#include "ops/recurrence/op.h"

namespace tw::ops::recurrence {

namespace {

constexpr ProductsTactic kProductsAvx512{"recurrence_f32_products_avx512", 1, kernels::jit::Isa::kAvx512};
constexpr ProductsTactic kProductsAvx2{"recurrence_f32_products_avx2", 1, kernels::jit::Isa::kAvx2};
constexpr StepsTactic kAvx512{"recurrence_f32_steps_avx512", 2, kernels::jit::Isa::kAvx512};
constexpr StepsTactic kAvx2{"recurrence_f32_steps_avx2", 2, kernels::jit::Isa::kAvx2};

} // namespace

std::span<Tactic const* const> cpuTactics()
{
    static constexpr Tactic const* kList[] = {&kProductsAvx512, &kAvx512, &kProductsAvx2, &kAvx2, &kPlainCpu};
    return kList;
}

} // namespace tw::ops::recurrence
