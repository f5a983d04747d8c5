// SPDX-License-Identifier: Apache-2.0
// V neighbours of a row for each thread, which lie within one half, or are whole pairs of neighbours.
//   type T; int kSize, kWidth; bool kInterleaved, kCosinesByPair, kSinesByPair, kPacked
#pragma once

#include "kernels/cuda/common/prelude.cuh"
#include "ops/rotary/rotary_params.h"

namespace tw::ops::rotary {

constexpr int kHalf = kSize / 2;

template <bool ByPair>
TW_INLINE float weight(T const* row, int d)
{
    return load<float>(row[!ByPair ? d : kInterleaved ? d / 2 : d < kHalf ? d : d - kHalf]);
}
template <int V>
TW_INLINE void turn(Params const& p)
{
    waitForPrevious();
    releaseDependents();
    idx const i = threadIndex();
    if (i >= p.packs)
        return;
    idx const row = divide(i, p.packsOfRow);
    int const d = int(i - row * idx(p.packsOfRow.d)) * V;
    off at[2];
    locate<8>(p.rows, row, at);
    i64 from = i64(i) * V;
    if constexpr (kPacked) {
        idx const token = divide(row, p.heads);
        from = i64(token) * i64(p.width) + i64(row - token * idx(p.heads.d)) * i64(p.row) + d;
    }
    T const* const x = static_cast<T const*>(p.x) + from;
    T const *const c = static_cast<T const*>(p.c) + at[0], *const s = static_cast<T const*>(p.s) + at[1];
    Pack<T, V> const own = *reinterpret_cast<Pack<T, V> const*>(x);
    Pack<T, V> y = own;
    if (d < kSize) {
        if constexpr (kInterleaved) {
#pragma unroll
            for (int j = 0; j < V; ++j) {
                bool const isFirst = V > 1 ? j % 2 == 0 : d % 2 == 0;
                float const other = V > 1 ? load<float>(own.v[j ^ (V > 1)]) : load<float>(x[isFirst ? 1 : -1]);
                y.v[j] = store<T>(load<float>(own.v[j]) * weight<kCosinesByPair>(c, d + j) +
                                  (isFirst ? -other : other) * weight<kSinesByPair>(s, d + j));
            }
        } else {
            bool const isFirst = d < kHalf;
            Pack<T, V> const other = *reinterpret_cast<Pack<T, V> const*>(isFirst ? x + kHalf : x - kHalf);
#pragma unroll
            for (int j = 0; j < V; ++j) {
                float const turned = load<float>(other.v[j]);
                y.v[j] = store<T>(load<float>(own.v[j]) * weight<kCosinesByPair>(c, d + j) +
                                  (isFirst ? -turned : turned) * weight<kSinesByPair>(s, d + j));
            }
        }
    }
    reinterpret_cast<Pack<T, V>*>(p.y)[i] = y;
}
TW_KERNEL_OF(__launch_bounds__(256) rotary_packs, Params, turn<kWidth>)
TW_KERNEL_OF(__launch_bounds__(256) rotary_elements, Params, turn<1>)

} // namespace tw::ops::rotary
