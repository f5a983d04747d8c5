// SPDX-License-Identifier: Apache-2.0
// y = alpha + sum of beta[d] i_d, or random numbers; an element a thread.
//   type T, Number: what is computed in, double, or u32, which wraps; Loaded: what elements are read as, double or int
//   bool kIsLinspace, kIsUniform: neither, random numbers are normal
#pragma once

#include "kernels/cuda/common/prelude.cuh"
#include "ops/fill/fill_params.h"

namespace tw::ops::fill {

TW_INLINE Number number(T v)
{
    return Number(load<Loaded>(v));
}
TW_INLINE double fromDouble(double v, double)
{
    return v;
}
TW_INLINE u32 fromDouble(double v, u32)
{
    return u32(u64(i64(v)));
}
TW_INLINE Number alphaOf(Params const& p)
{
    return p.alphaInput ? number(*static_cast<T const*>(p.alphaInput)) : fromDouble(p.alpha, Number());
}
TW_INLINE Number betaOf(Params const& p, int d)
{
    return p.betaInput ? number(static_cast<T const*>(p.betaInput)[d]) : fromDouble(p.beta, Number());
}
TW_INLINE u64 randomBits(u64 counter)
{
    u64 z = (counter + 1) * 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}
TW_INLINE double uniformAt(u64 counter)
{
    return double(randomBits(counter) >> 40) * 0x1p-24;
}
TW_INLINE double positiveAt(u64 counter)
{
    return double((randomBits(counter) >> 11) + 1) * 0x1p-53;
}
TW_KERNEL fill(const __grid_constant__ Params p)
{
    idx const i = threadIndex();
    if (i >= p.count)
        return;
    Number v = alphaOf(p);
    if constexpr (kIsLinspace) {
        idx rest = i;
        for (int d = p.rank - 1; d >= 0; --d) {
            Div const& size = p.dim[8 - p.rank + d];
            idx const q = divide(rest, size);
            v += betaOf(p, d) * Number(rest - q * idx(size.d));
            rest = q;
        }
    } else if constexpr (kIsUniform) {
        v = v + uniformAt(p.state + i) * (betaOf(p, 0) - v);
    } else {
        u64 const k = p.state + 2 * u64(i);
        v = v + betaOf(p, 0) * sqrt(-2 * log(positiveAt(k))) * cospi(2 * uniformAt(k + 1));
    }
    static_cast<T*>(p.y)[i] = store<T>(Loaded(v));
}

} // namespace tw::ops::fill
