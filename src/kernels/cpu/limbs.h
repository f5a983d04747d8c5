// SPDX-License-Identifier: Apache-2.0
// Numbers in limbs, for kernels/cpu/jit/nbit_kernel.h. One table for each instruction set.
#pragma once

#include <cstdint>

namespace tw::kernels {

struct LimbKernels
{
    // x[0 .. n) = scale a, scale (a 2^8 + b), or scale (a 2^16 + b 2^8 + c): limb l of number i to `to[l * n + i]`. Gives pair[0] =
    // scale and pair[1] = -factor * scale * the sum of the integers; both NaN where a number is none or infinite.
    // n: a multiple of 16, up to 256.
    void (*split)(float const* x, int64_t n, int limbs, float factor, int8_t* to, float* pair);
};

} // namespace tw::kernels

namespace tw::avx2 {
extern kernels::LimbKernels const kLimbs;
}
namespace tw::avx512 {
extern kernels::LimbKernels const kLimbs;
}
