// SPDX-License-Identifier: Apache-2.0
// A function of one number that kernels can end with.
#pragma once

#include "base/step_code.h"

namespace tw::kernels::jit {

struct Activation
{
    ActivationKind kind = ActivationKind::kRelu;
    float alpha = 0, beta = 0;
};

} // namespace tw::kernels::jit
