// SPDX-License-Identifier: Apache-2.0
// Gamma or beta of V neighbours of a set that is contiguous.
//   bool kByPlace     element i of every set has the number i
//   bool kSamePerPack packs of V > 1 elements have one number
#pragma once

#include "families/reduction/cuda_row.cuh"
#include "ops/layer_norm/layer_norm_registers.cuh"

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

// Of all packs of a row.
template <class Row>
struct RowWeights
{
    Weights<Row::V> gammas[Row::P], betas[Row::P];

    // `begin`: the element of the set that the row counts from.
    TW_INLINE void fetch(RowParams const& p, Row const& row, idx set, idx begin)
    {
#pragma unroll
        for (int i = 0; i < Row::P; ++i)
            if (row.has(i)) {
                if constexpr (kGamma)
                    gammas[i].fetch(p, p.gamma, set, begin + idx(row.at(i)));
                if constexpr (kBeta)
                    betas[i].fetch(p, p.beta, set, begin + idx(row.at(i)));
            }
    }
    TW_INLINE float gamma(int i, int j) const
    {
        return gammas[i].at(j);
    }
    TW_INLINE float beta(int i, int j) const
    {
        return betas[i].at(j);
    }
};

} // namespace tw::ops::layer_norm
