// SPDX-License-Identifier: Apache-2.0
// Elements of keys and values as few_rows.cuh loads them, halves or bytes.
//   int D, DV, ROTARY; bool BYTES
#pragma once

#include "kernels/cuda/attention/masks.cuh"
#include "kernels/cuda/common/matrix.cuh"

namespace tw::cuda::attention_few_rows {

constexpr int WIDE = DV % 64 == 0 ? 8 : 4; // neighbouring columns of values that a thread has
constexpr bool LARGE = D > 128 || DV > 128;
constexpr int PITCH = D + 8; // of queries in shared memory
using Key = ByteOrHalf<BYTES>;
constexpr bool TURNS = ROTARY > 0;

// 8 and WIDE neighbours as they lie in memory.
struct RawUnit
{
    u32 v[BYTES ? 2 : 4];
};
struct RawPart
{
    u32 v[BYTES ? WIDE / 4 : WIDE / 2];
};
struct Part // of a row of values
{
    u32 v[WIDE / 2];
};
TW_INLINE Unit loadUnit(f16 const* at, bool valid)
{
    return valid ? *reinterpret_cast<Unit const*>(at) : Unit{};
}
template <class Raw>
TW_INLINE Raw loadRaw(Key const* at, bool valid)
{
    Raw raw = {};
    if (!valid)
        return raw;
    if constexpr (sizeof(Raw) == 16) {
        Unit const u = *reinterpret_cast<Unit const*>(at);
        for (int i = 0; i < 4; ++i)
            raw.v[i] = u.v[i];
    } else if constexpr (sizeof(Raw) == 8) {
        uint2 const u = *reinterpret_cast<uint2 const*>(at);
        raw.v[0] = u.x;
        raw.v[1] = u.y;
    } else {
        raw.v[0] = *reinterpret_cast<u32 const*>(at);
    }
    return raw;
}
// Two halves of two bytes whose signs are turned: 0x6400 + u is 1024 + u.
TW_INLINE u32 halvesOf(u32 bytes, u32 which)
{
    u32 y;
    asm("sub.f16x2 %0, %1, %2;" : "=r"(y) : "r"(__byte_perm(bytes, 0x64646464, which)), "r"(0x64806480));
    return y;
}
template <class Wide, class Raw>
TW_INLINE Wide widened(Raw const& raw)
{
    Wide w;
    constexpr int COUNT = sizeof(Raw) / 4;
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
        if constexpr (BYTES) {
            w.v[2 * i] = halvesOf(raw.v[i] ^ 0x80808080, 0x4140);
            w.v[2 * i + 1] = halvesOf(raw.v[i] ^ 0x80808080, 0x4342);
        } else {
            w.v[i] = raw.v[i];
        }
    }
    return w;
}
} // namespace tw::cuda::attention_few_rows
