// SPDX-License-Identifier: Apache-2.0
#include "ops/recurrence/op.h"
#include "ops/recurrence/tactics.h"

namespace tw::ops::recurrence {

namespace {

constexpr CpuTactic kProductsAvx512{"recurrence_f32_products_avx512", 1, kernels::jit::Isa::kAvx512, kProducts};
constexpr CpuTactic kProductsAvx2{"recurrence_f32_products_avx2", 1, kernels::jit::Isa::kAvx2, kProducts};
constexpr CpuTactic kAvx512{"recurrence_f32_steps_avx512", 2, kernels::jit::Isa::kAvx512, kSteps};
constexpr CpuTactic kAvx2{"recurrence_f32_steps_avx2", 2, kernels::jit::Isa::kAvx2, kSteps};

} // namespace

extern constinit TacticList const cpuTactics = kTactics<kProductsAvx512, kAvx512, kProductsAvx2, kAvx2, kPlainCpu>;

} // namespace tw::ops::recurrence
