// SPDX-License-Identifier: Apache-2.0
// Numbers begin as x, every update is reduced into its own, by an atomic addition or by compare and swap, and then they are
// stored as y. Where y holds them itself (`last` is null) nothing is stored.
#pragma once

#include "ops/scatter/reduced.cuh"

namespace tw::ops::scatter {

TW_INLINE Number* numbersOf(Params const& p)
{
    return static_cast<Number*>(p.last ? p.last : p.y);
}
TW_KERNEL __launch_bounds__(256) scatter_begin(const __grid_constant__ Params p)
{
    waitForPrevious();
    releaseDependents();
    idx const i = threadIndex();
    if (i < p.units)
        numbersOf(p)[i] = load<Number>(static_cast<Element const*>(p.x)[i]);
}
TW_KERNEL __launch_bounds__(256) scatter_reduce(const __grid_constant__ Params p)
{
    waitForPrevious();
    releaseDependents();
    idx const i = threadIndex();
    if (i >= p.count)
        return;
    idx const t = divide(i, p.block), column = i - t * idx(p.block.d);
    i64 const slot = slotOf(p, t);
    if (slot < 0)
        return;
    Number const update = load<Number>(static_cast<Element const*>(p.u)[i]);
    u32* const at = reinterpret_cast<u32*>(numbersOf(p)) + (idx(slot) * idx(p.block.d) + column);
    if constexpr (kReduction == 1) {
        if constexpr (kIsInteger)
            atomicAdd(at, u32(update));
        else
            atomicAdd(reinterpret_cast<float*>(at), update);
        return;
    }
    u32 seen = *static_cast<u32 volatile*>(at), expected;
    do {
        expected = seen;
        Number const next = reduced(__builtin_bit_cast(Number, expected), update);
        seen = atomicCAS(at, expected, __builtin_bit_cast(u32, next));
    } while (seen != expected);
}
TW_KERNEL __launch_bounds__(256) scatter_end(const __grid_constant__ Params p)
{
    waitForPrevious();
    releaseDependents();
    idx const i = threadIndex();
    if (i < p.units)
        static_cast<Element*>(p.y)[i] = store<Element>(numbersOf(p)[i]);
}

} // namespace tw::ops::scatter
