// SPDX-License-Identifier: Apache-2.0
#include "ops/recurrence/cuda_persistent.h"
#include "ops/recurrence/cuda_registers.h"

namespace tw::ops::recurrence {

std::span<Tactic const* const> cudaTactics()
{
    static constexpr Tactic const* kList[] = {&kRegistersF16, &kPersistentF16, &kPersistentF32, &kPlainCuda};
    return kList;
}

} // namespace tw::ops::recurrence
