// SPDX-License-Identifier: Apache-2.0
#include "ops/recurrence/cuda_plain.h"

namespace tw::ops::recurrence {

std::span<Tactic const* const> cudaTactics()
{
    static constexpr Tactic const* kList[] = {&kPlainCuda};
    return kList;
}

} // namespace tw::ops::recurrence
