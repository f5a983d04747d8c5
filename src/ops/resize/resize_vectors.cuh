// SPDX-License-Identifier: Apache-2.0
// 16 bytes of channels.
//   type T: f16, f32, i8
#pragma once

#include "kernels/cuda/common/prelude.cuh"

namespace tw::ops::resize {

typedef Pack<u32, 4> Unit;
constexpr int V = 16 / sizeof(T);
TW_INLINE float valueOf(Unit const& u, int i)
{
    if constexpr (V == 4)
        return __uint_as_float(u.v[i]);
    if constexpr (V == 16)
        return i8(u.v[i / 4] >> (i % 4 * 8));
    Narrow one;
    one.bits = (unsigned short)(i % 2 ? u.v[i / 2] >> 16 : u.v[i / 2]);
    return halfToFloat(one);
}

} // namespace tw::ops::resize
