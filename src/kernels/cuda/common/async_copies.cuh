// SPDX-License-Identifier: Apache-2.0
// Copies to shared memory that a thread does not wait for (sm_80).
#pragma once

#include "kernels/cuda/common/device.cuh"

namespace tw::cuda {

TW_INLINE u32 sharedAddress(void const* p)
{
    return u32(__cvta_generic_to_shared(p));
}
// 16 (8, 4) bytes, zeros where !valid; the address must be readable only when valid.
TW_INLINE void copyAsync16(u32 to, void const* from, bool valid)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(valid ? 16 : 0) : "memory");
}
TW_INLINE void copyAsync8(u32 to, void const* from, bool valid)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(to), "l"(from), "r"(valid ? 8 : 0) : "memory");
}
TW_INLINE void copyAsync4(u32 to, void const* from, bool valid)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(valid ? 4 : 0) : "memory");
}
TW_INLINE void copyCommit()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int N>
TW_INLINE void copyWait()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

} // namespace tw::cuda
