// SPDX-License-Identifier: Apache-2.0
// What every piece of device code begins with.
//   TW_NARROW   the type of types.h that `Narrow` is, a float of 16 bits: f16, unless the source's first line defines it. Its
//               name is also PTX's.
#pragma once

#include "kernels/cuda/common/types.h"

#define TW_INLINE __device__ __forceinline__
#define TW_KERNEL extern "C" __global__ void
// The kernel that is a function of one struct: its name, launch bounds before it; the struct; the function.
#define TW_KERNEL_OF(name, Params, ...)                                                                                \
    TW_KERNEL name(const __grid_constant__ Params p)                                                                   \
    {                                                                                                                  \
        __VA_ARGS__(p);                                                                                                \
    }

#ifndef TW_NARROW
#define TW_NARROW f16
#endif
#define TW_TEXT_OF(name) #name
#define TW_TEXT(macro) TW_TEXT_OF(macro)
#define TW_NARROW_PTX TW_TEXT(TW_NARROW)

using namespace tw::cuda;

namespace tw::cuda {

struct bf16
{
    u16 bits;
};
using Narrow = TW_NARROW;

template <bool IS_BYTE>
struct ByteOrHalfOf
{
    using Type = f16;
};
template <>
struct ByteOrHalfOf<true>
{
    using Type = i8;
};
template <bool IS_BYTE>
using ByteOrHalf = typename ByteOrHalfOf<IS_BYTE>::Type;

TW_INLINE float halfToFloat(f16 h)
{
    float f;
    asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h.bits));
    return f;
}
TW_INLINE f16 floatToHalf(float f)
{
    f16 h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h.bits) : "f"(f));
    return h;
}

TW_INLINE float halfToFloat(bf16 h)
{
    return __uint_as_float(u32(h.bits) << 16);
}
TW_INLINE bf16 floatToBf16(float f)
{
    bf16 h;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h.bits) : "f"(f));
    return h;
}
// Of minus infinities.
TW_INLINE constexpr u32 lowestPair(f16)
{
    return 0xFC00FC00u;
}
TW_INLINE constexpr u32 lowestPair(bf16)
{
    return 0xFF80FF80u;
}

} // namespace tw::cuda
