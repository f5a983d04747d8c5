// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tactic/cpu_tactic.h"

namespace tw::ops::nbit_product {

// Products by kernels/cpu/jit/nbit_kernel.h; variants: jit::Factors.
extern CpuFunctions const kLimbs;

} // namespace tw::ops::nbit_product
