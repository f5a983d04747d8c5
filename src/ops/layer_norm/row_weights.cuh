// SPDX-License-Identifier: Apache-2.0
// Gamma or beta of V neighbours of a set that is contiguous.
//   bool kByPlace     element i of every set has the number i
//   bool kSamePerPack packs of V > 1 elements have one number
#pragma once

#include "ops/layer_norm/layer_norm.cuh"

namespace tw::ops::layer_norm {

TW_INLINE idx weightOf(RowParams const& p, idx element)
{
    idx const at = divide(element, p.tail);
    return at - divide(at, p.count) * idx(p.count.d);
}

template <int V>
struct Weights
{
    static constexpr bool SAME = !kByPlace && kSamePerPack;
    Pack<T, SAME ? 1 : V> pack;

    // `first`: of the elements in the set.
    TW_INLINE void fetch(RowParams const& p, void const* from, idx set, idx first)
    {
        T const* const weights = static_cast<T const*>(from);
        if constexpr (kByPlace) {
            pack = *reinterpret_cast<Pack<T, V> const*>(weights + first);
        } else {
            idx const element = set * idx(p.n) + first;
#pragma unroll
            for (int j = 0; j < (SAME ? 1 : V); ++j)
                pack.v[j] = weights[weightOf(p, element + j)];
        }
    }
    TW_INLINE float at(int j) const
    {
        return load<float>(pack.v[SAME ? 0 : j]);
    }
};

} // namespace tw::ops::layer_norm
