// SPDX-License-Identifier: Apache-2.0
// y = x; each slot keeps the number of the last tuple that names it; that tuple's updates are written. Kernels of whole
// units are made of copy() and write().
//   type Element; int kEach: units of the copy for a thread
#pragma once

#include "ops/scatter/slots.cuh"

namespace tw::ops::scatter {

template <class U>
TW_INLINE void copy(Params const& p)
{
    waitForPrevious();
    releaseDependents();
    idx const begin = idx(blockIdx.x) * 256 * kEach + threadIdx.x;
    U v[kEach];
#pragma unroll
    for (int k = 0; k < kEach; ++k)
        if (begin + k * 256 < p.units)
            v[k] = static_cast<U const*>(p.x)[begin + k * 256];
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
        idx const i = begin + k * 256;
        if (i < p.units)
            static_cast<U*>(p.y)[i] = v[k];
        if (i < p.slots && p.last)
            static_cast<idx*>(p.last)[i] = 0;
    }
    if (begin >= p.tail)
        return;
    idx const i = idx(p.units) * (sizeof(U) / sizeof(Element)) + begin;
    static_cast<Element*>(p.y)[i] = static_cast<Element const*>(p.x)[i];
}
TW_KERNEL __launch_bounds__(256) scatter_choose(const __grid_constant__ Params p)
{
    waitForPrevious();
    releaseDependents();
    idx const t = threadIndex();
    if (t >= p.tuples)
        return;
    i64 const slot = slotOf(p, t);
    if (slot >= 0)
        atomicMax(static_cast<idx*>(p.last) + slot, t + 1);
}
template <class U>
TW_INLINE void write(Params const& p)
{
    waitForPrevious();
    releaseDependents();
    idx const i = threadIndex();
    if (i >= p.count)
        return;
    idx const t = divide(i, p.block), column = i - t * idx(p.block.d);
    i64 const slot = slotOf(p, t);
    if (slot >= 0 && (!p.last || static_cast<idx const*>(p.last)[slot] == t + 1))
        static_cast<U*>(p.y)[idx(slot) * idx(p.block.d) + column] = static_cast<U const*>(p.u)[i];
}

} // namespace tw::ops::scatter
