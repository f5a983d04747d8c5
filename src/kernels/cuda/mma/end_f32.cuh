// SPDX-License-Identifier: Apache-2.0
// Sums to rows of FP32, groups of a thread's columns at once. After sums_f32.cuh or sums_tf32.cuh.
//   int SPLIT; bool CLUSTERS, PACKS_Y, BIAS, RESIDUAL; float epilogue(float v, float r)
#pragma once

#include "kernels/cuda/common/clusters.cuh"

namespace tw::cuda::product {

struct End
{
    static constexpr int EACH = Sums::EACH, APART = Sums::APART;
    struct alignas(EACH * 4) Group
    {
        float v[EACH];
    };
    u32 base;
    TW_INLINE explicit End(u32 base) : base(base) {}
    TW_INLINE void begin(Args const&, Matrices const&) const {}
    TW_INLINE void put() const {}
    static TW_INLINE void writeGroup(Args const& a, int batch, int row, int column, Group v)
    {
        if (row >= int(a.m) || column >= int(a.n))
            return;
        constexpr bool PACKS = PACKS_Y && APART == 1;
        i64 const at = (i64(batch) * a.m + row) * int(a.n) + column;
        Group residual = {};
        if constexpr (RESIDUAL && PACKS)
            residual = *reinterpret_cast<Group const*>(a.residual + at);
#pragma unroll
        for (int e = 0; e < EACH; ++e) {
            if (!PACKS && column + e * APART >= int(a.n))
                break;
            if constexpr (BIAS)
                v.v[e] += a.bias[column + e * APART];
            float r = 0;
            if constexpr (RESIDUAL)
                r = PACKS ? residual.v[e] : a.residual[at + e * APART];
            v.v[e] = epilogue(v.v[e], r);
            if constexpr (!PACKS)
                a.y[at + e * APART] = v.v[e];
        }
        if constexpr (PACKS)
            *reinterpret_cast<Group*>(a.y + at) = v;
    }
    TW_INLINE void write(Args const& a, Matrices const& source, Sums const& sums, Sums::Values const& values) const
    {
        auto const [batch, m0, n0] = source.tile;
        constexpr int ROWS = sizeof(Sums::Values) / 4 / EACH / Sums::GROUPS; // of a thread
        if constexpr (CLUSTERS) {
            // Each block of the cluster gets everybody's sums of its rows and adds up.
            constexpr int PART = TILE_M / SPLIT, ACROSS = TILE_N / EACH;
            clusterSync(); // all stages are read
#pragma unroll
            for (int i = 0; i < ROWS; ++i) {
                int const row = sums.rowOf(i);
                u32 const to = addressAt(base + (source.rank * PART + row % PART) * (TILE_N * 4), row / PART);
#pragma unroll
                for (int j = 0; j < Sums::GROUPS; ++j) {
                    float const* const v = Sums::group(values, i, j);
                    if constexpr (EACH == 4)
                        storeCluster(to + sums.groupOf(j) * 16, v[0], v[1], v[2], v[3]);
                    else
                        storeCluster(to + sums.groupOf(j) * 8, v[0], v[1]);
                }
            }
            clusterSync();
            for (int s = threadIdx.x; s < PART * ACROSS; s += THREADS) {
                Group v = {};
#pragma unroll
                for (int o = 0; o < SPLIT; ++o) {
                    Group const part = reinterpret_cast<Group const*>(sums.tiles)[o * PART * ACROSS + s];
#pragma unroll
                    for (int e = 0; e < EACH; ++e)
                        v.v[e] += part.v[e];
                }
                writeGroup(a, batch, m0 + source.rank * PART + s / ACROSS, n0 + Sums::columnOf(s % ACROSS), v);
            }
        } else {
#pragma unroll
            for (int i = 0; i < ROWS; ++i)
#pragma unroll
                for (int j = 0; j < Sums::GROUPS; ++j)
                    writeGroup(a, batch, m0 + sums.rowOf(i), n0 + Sums::columnOf(sums.groupOf(j)),
                               *reinterpret_cast<Group const*>(Sums::group(values, i, j)));
        }
    }
};

} // namespace tw::cuda::product
