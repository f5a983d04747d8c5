// SPDX-License-Identifier: Apache-2.0
// How numbers are reduced: FP32 and FP16 in float, where NaN wins in maximum and minimum; integers exactly in 64 bits.
//   type T: of x and y; int KIND: a Kind
#pragma once

#include "kernels/cuda/common/prelude.cuh"
#include "ops/reduce/kind_params.h"

namespace tw::ops::reduce {

template <class Element>
struct NumbersOf
{
    using Read = float;   // what elements are read as
    using Joined = float; // what they are joined in
};
template <>
struct NumbersOf<i8>
{
    using Read = int;
    using Joined = i64;
};
template <>
struct NumbersOf<i32>
{
    using Read = int;
    using Joined = i64;
};
using Number = NumbersOf<T>::Read;
using A = NumbersOf<T>::Joined;
constexpr bool IS_REAL = sizeof(A) == 4, IS_BYTE = sizeof(T) == 1;
constexpr bool IS_PRODUCT = Kind(KIND) == Kind::kProd, IS_MAXIMUM = Kind(KIND) == Kind::kMax,
               IS_MINIMUM = Kind(KIND) == Kind::kMin, IS_AVERAGE = Kind(KIND) == Kind::kAvg;

// Elements, and what was joined of some.
template <class In>
struct Read
{
    static TW_INLINE A from(In v) { return A(load<Number>(v)); }
};
template <>
struct Read<i64>
{
    static TW_INLINE A from(i64 v) { return A(v); }
};

// What joins with v to v.
TW_INLINE A identity()
{
    if constexpr (IS_PRODUCT)
        return 1;
    else if constexpr (IS_MAXIMUM && IS_REAL)
        return -__int_as_float(0x7f800000);
    else if constexpr (IS_MAXIMUM)
        return IS_BYTE ? -128 : -2147483648ll;
    else if constexpr (IS_MINIMUM && IS_REAL)
        return __int_as_float(0x7f800000);
    else if constexpr (IS_MINIMUM)
        return IS_BYTE ? 127 : 2147483647ll;
    else
        return 0;
}
TW_INLINE float join(float a, float b)
{
    if constexpr (IS_PRODUCT)
        return a * b;
    float y = a + b;
    if constexpr (IS_MAXIMUM)
        asm("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
    if constexpr (IS_MINIMUM)
        asm("min.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
    return y;
}
TW_INLINE i64 join(i64 a, i64 b)
{
    if constexpr (IS_PRODUCT) // i32 wraps; i8 saturates: from 128 on it leaves the range for good, unless a 0 follows
        return IS_BYTE ? max(-1000ll, min(1000ll, a * b)) : i64(i32(u32(u64(a) * u64(b))));
    else if constexpr (IS_MAXIMUM)
        return max(a, b);
    else if constexpr (IS_MINIMUM)
        return min(a, b);
    else
        return a + b;
}
// What v, `count` joined numbers, comes to: a number that is stored.
TW_INLINE float result(float v, float count)
{
    return IS_AVERAGE ? v / count : v;
}
TW_INLINE auto result(i64 v, i64 count)
{
    if constexpr (IS_AVERAGE && IS_BYTE)
        return count == 0 ? -128.0 : rint(double(v) / double(count));
    else if constexpr (IS_AVERAGE)
        return count == 0 ? 0 : int(v / count);
    else
        return int(IS_BYTE && !IS_MAXIMUM && !IS_MINIMUM ? max(-128ll, min(127ll, v)) : v);
}

} // namespace tw::ops::reduce
