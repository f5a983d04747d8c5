// SPDX-License-Identifier: Apache-2.0
#include "ops/recurrence/op.h"
#include "ops/recurrence/tactics.h"

namespace tw::ops::recurrence {

extern constinit TacticList const cudaTactics =
    kTactics<registers::kF16, persistent::kF16, persistent::kF32, kPlainCuda>;

} // namespace tw::ops::recurrence
