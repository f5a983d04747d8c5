// SPDX-License-Identifier: Apache-2.0
// What both kernels read and write.
//   type Element; int kCell; float kClip (0: none)
#pragma once

#include "kernels/cuda/common/prelude.cuh"

namespace tw::ops::recurrence {

constexpr int kRnn = 0, kLstm = 1, kGates = kCell == kLstm ? 4 : kCell == kRnn ? 1 : 3;

TW_INLINE float at(void const* t, i64 i)
{
    return load<float>(static_cast<Element const*>(t)[i]);
}
TW_INLINE void put(void* t, i64 i, float v)
{
    static_cast<Element*>(t)[i] = store<Element>(v);
}
TW_INLINE float clipped(float x)
{
    return kClip > 0 && x == x ? fminf(fmaxf(x, -kClip), kClip) : x;
}

} // namespace tw::ops::recurrence
