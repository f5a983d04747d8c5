// SPDX-License-Identifier: Apache-2.0
// Gamma and beta of the packs of a set that is contiguous.
//   bool kByPlace     element i of every set has the number i
//   bool kSamePerPack packs of V > 1 elements have one number
#pragma once

#include "families/reduction/cuda_row.cuh"
#include "ops/layer_norm/layer_norm_registers.cuh"

namespace tw::ops::layer_norm {

template <class Row>
struct RowWeights
{
    static constexpr int V = Row::V;
    static constexpr bool SAME = !kByPlace && kSamePerPack;
    using Packed = Pack<T, SAME ? 1 : V>;
    Packed gammas[Row::P], betas[Row::P];

    // `first`: of the elements in the set.
    static TW_INLINE void fetch(RowParams const& p, void const* from, idx set, idx first, Packed& to)
    {
        T const* const weights = static_cast<T const*>(from);
        if constexpr (kByPlace) {
            to = *reinterpret_cast<Packed const*>(weights + first);
        } else {
            idx const element = set * idx(p.n) + first;
#pragma unroll
            for (int j = 0; j < (SAME ? 1 : V); ++j) {
                idx const at = divide(element + j, p.tail);
                to.v[j] = weights[at - divide(at, p.count) * idx(p.count.d)];
            }
        }
    }
    // `begin`: the element of the set that the row counts from.
    TW_INLINE void fetch(RowParams const& p, Row const& row, idx set, idx begin)
    {
#pragma unroll
        for (int i = 0; i < Row::P; ++i)
            if (row.has(i)) {
                if constexpr (kGamma)
                    fetch(p, p.gamma, set, begin + idx(row.at(i)), gammas[i]);
                if constexpr (kBeta)
                    fetch(p, p.beta, set, begin + idx(row.at(i)), betas[i]);
            }
    }
    TW_INLINE float gamma(int i, int j) const
    {
        return load<float>(gammas[i].v[SAME ? 0 : j]);
    }
    TW_INLINE float beta(int i, int j) const
    {
        return load<float>(betas[i].v[SAME ? 0 : j]);
    }
};

} // namespace tw::ops::layer_norm
