// SPDX-License-Identifier: Apache-2.0
// Blocks: plain element-wise kernels compute in float, int32 or bytes on runs of at most kBlock elements; other types
// and broadcast scalars are brought into a buffer on the stack first. One loop for each operation then serves every
// type. (Half-precision elements are uint16_t bits throughout.)
#pragma once

#include <cmath>
#include <cstdint>

#include "base/types.h"

namespace tw::ops {

inline constexpr int64_t kBlock = 256;

// Elements [offset, offset + n) of a tensor, or n copies of element `offset` when stride is 0. Returns `buffer` (kBlock
// elements), or the tensor's own memory where no conversion is needed. n <= kBlock.
float const* loadFloats(DataType type, void const* data, int64_t offset, int64_t stride, int64_t n, float* buffer);
int32_t const* loadInts(DataType type, void const* data, int64_t offset, int64_t stride, int64_t n, int32_t* buffer);
// Bytes as they are (bool, i8, u8).
uint8_t const* loadBytes(void const* data, int64_t offset, int64_t stride, int64_t n, uint8_t* buffer);

// Where to compute n results of a float kernel: the output itself for f32, else `buffer`; storeFloats then converts
// (i8: rounded half to even and saturated) and does nothing when they are already in place.
float* floatsAt(DataType type, void* data, int64_t offset, float* buffer);
void storeFloats(DataType type, void* data, int64_t offset, int64_t n, float const* from);
// i32: as they are; i8: saturated.
int32_t* intsAt(DataType type, void* data, int64_t offset, int32_t* buffer);
void storeInts(DataType type, void* data, int64_t offset, int64_t n, int32_t const* from);

// Rounded half to even and saturated; NaN gives 0.
inline int8_t saturateToInt8(double v)
{
    if (v != v)
        return 0;
    double const r = std::nearbyint(v);
    return int8_t(r < -128 ? -128 : r > 127 ? 127 : r);
}

// y = f(x) of `count` bytes of i8, by a table of what compute(from, to, 256) makes of all of them in double.
template <class Compute>
void applyToBytes(int8_t const* x, int8_t* y, int64_t count, Compute const& compute)
{
    double from[256], to[256];
    int8_t table[256]; // by the byte of x
    for (int i = 0; i < 256; ++i)
        from[i] = int8_t(uint8_t(i));
    compute(from, to, 256);
    for (int i = 0; i < 256; ++i)
        table[i] = saturateToInt8(to[i]);
    for (int64_t i = 0; i < count; ++i)
        y[i] = table[uint8_t(x[i])];
}

} // namespace tw::ops
