// SPDX-License-Identifier: Apache-2.0
// Floats to i8 and back.
#pragma once

#include "kernels/cuda/common/device.cuh"

namespace tw::cuda {

// Half to even, clamped to [-128, 127]; NaN gives 0, as in every such conversion of a float.
TW_INLINE i32 toByte(float t)
{
    i32 y;
    asm("cvt.rni.sat.s8.f32 %0, %1;" : "=r"(y) : "f"(t));
    return y;
}
// Two of them, the first in the lower byte. One rounding instruction each, of those that run at a quarter of others'
// rate; it gives 0 for NaN.
TW_INLINE u32 toBytes(float t0, float t1)
{
    u32 y;
    asm("{\n.reg .s32 a, b;\ncvt.rni.s32.f32 a, %1;\ncvt.rni.s32.f32 b, %2;\ncvt.pack.sat.s8.s32.b32 %0, b, a, 0;\n}"
        : "=r"(y)
        : "f"(t0), "f"(t1));
    return y;
}
// Two bytes, the first the lower one, as floats: 2^23 + 128 + byte is put together of bits, which is faster than to
// convert.
TW_INLINE void bytesToFloats(u32 bytes, float& v0, float& v1)
{
    u32 const raised = bytes ^ 0x8080;
    v0 = __fsub_rn(__uint_as_float(__byte_perm(raised, 0x4b000000, 0x7540)), 8388736.0f);
    v1 = __fsub_rn(__uint_as_float(__byte_perm(raised, 0x4b000000, 0x7541)), 8388736.0f);
}
// Four of them, the first in the lowest byte.
TW_INLINE u32 packBytes(i32 b0, i32 b1, i32 b2, i32 b3)
{
    return __byte_perm(__byte_perm(b0, b1, 0x0040), __byte_perm(b2, b3, 0x0040), 0x5410);
}

} // namespace tw::cuda
