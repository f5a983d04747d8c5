// SPDX-License-Identifier: Apache-2.0
// The kernels of nbit_kernel.h that take x as floats. Includes Xbyak: for .cpp files only.
#pragma once

#include "kernels/cpu/jit/nbit_kernel.h"
#include "kernels/cpu/jit/vector_code.h"

namespace tw::kernels::jit {

constexpr int kMostRowsOfFloats = 16; // so that a block's floats are worth their making, and the code stays small

void emitNbitFloats(VectorCode& code, NbitForm const& form, int rows);

} // namespace tw::kernels::jit
