// SPDX-License-Identifier: Apache-2.0
// How states go from block to block: to another block's shared memory, counted by its barrier, or through memory, word by
// word, where kEmpty stands before.
#pragma once

#include "kernels/cuda/common/matrix.cuh"

namespace tw::ops::recurrence {

constexpr u32 kEmpty = 0xFFFFFFFF; // a NaN that no conversion gives

// Counted by the barrier, of the same block.
TW_INLINE void storeCounted(u32 to, u32 barrier, Unit const& u)
{
    asm volatile(
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(to),
        "r"(u.v[0]), "r"(u.v[1]), "r"(u.v[2]), "r"(u.v[3]), "r"(barrier)
        : "memory");
}
TW_INLINE void storeWord(u32 to, f16 v)
{
    asm volatile("st.shared.b16 [%0], %1;" ::"r"(to), "h"(v.bits) : "memory");
}
// For other multiprocessors; see readAgain().
TW_INLINE void storeUnit(char* to, Unit const& u)
{
    asm volatile("st.relaxed.gpu.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(u.v[0]), "r"(u.v[1]),
                 "r"(u.v[2]), "r"(u.v[3])
                 : "memory");
}
// Nothing where !wanted. Each word is whole; the four need not be of one time.
TW_INLINE void readAgain(Unit& u, char const* at, bool wanted)
{
    asm volatile("{\n.reg .pred p;\nsetp.ne.u32 p, %5, 0;\n@p ld.relaxed.gpu.global.v4.u32 {%0, %1, %2, %3}, [%4];\n}"
                 : "+r"(u.v[0]), "+r"(u.v[1]), "+r"(u.v[2]), "+r"(u.v[3])
                 : "l"(at), "r"(u32(wanted))
                 : "memory");
}
TW_INLINE bool isMissing(Unit const& u)
{
    return u.v[0] == kEmpty || u.v[1] == kEmpty || u.v[2] == kEmpty || u.v[3] == kEmpty;
}

} // namespace tw::ops::recurrence
