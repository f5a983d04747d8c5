// SPDX-License-Identifier: Apache-2.0
#include "ops/recurrence/op.h"
#include "ops/recurrence/tactics.h"

namespace tw::ops::recurrence {

std::span<Tactic const* const> cudaTactics()
{
    static constexpr Tactic const* kList[] = {&registers::kF16, &persistent::kF16, &persistent::kF32, &kPlainCuda};
    return kList;
}

} // namespace tw::ops::recurrence
