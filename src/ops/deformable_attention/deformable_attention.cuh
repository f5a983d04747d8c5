// SPDX-License-Identifier: Apache-2.0
// A pack of V numbers of a head a thread: neighbours read neighbouring packs of the same pixels.
//   type T; int WIDTH: V where packs are aligned
#pragma once

#include "kernels/cuda/common/prelude.cuh"
#include "ops/deformable_attention/deformable_attention_params.h"

namespace tw::ops::deformable_attention {

template <int V>
TW_INLINE void attend(Params const& p)
{
    idx const i = threadIndex();
    if (i >= p.count)
        return;
    idx const head = divide(i, p.packs), pack = i - head * idx(p.packs.d), query = divide(head, p.heads),
              image = divide(query, p.queries);
    i64 const size = i64(p.packs.d) * V, pitch = i64(p.heads.d) * size;
    T const* const value = static_cast<T const*>(p.value) + i64(image) * p.rows * pitch +
                           i64(head - query * idx(p.heads.d)) * size + i64(pack) * V;
    T const* location = static_cast<T const*>(p.locations) + 2 * i64(head) * p.levels * p.points;
    T const* weight = static_cast<T const*>(p.weights) + i64(head) * p.levels * p.points;
    float sum[V] = {};
    for (int l = 0; l < p.levels; ++l) {
        int const h = p.shapes[2 * l], w = p.shapes[2 * l + 1];
        i64 const start = p.starts[l];
        for (int j = 0; j < p.points; ++j, location += 2, ++weight) {
            float const x = fmaf(load<float>(location[0]), float(w), -0.5f);
            float const v = fmaf(load<float>(location[1]), float(h), -0.5f);
            if (!(x > -1 && v > -1 && x < float(w) && v < float(h)))
                continue;
            float const column = floorf(x), line = floorf(v), right = x - column, low = v - line;
            float const share = load<float>(*weight);
#pragma unroll
            for (int k = 0; k < 4; ++k) {
                i64 const c = i64(column) + k % 2, r = i64(line) + k / 2, row = start + r * w + c;
                if (c < 0 || r < 0 || c >= w || r >= h || row < 0 || row >= p.rows)
                    continue;
                float const part = share * (k % 2 ? right : 1 - right) * (k / 2 ? low : 1 - low);
                Pack<T, V> const pixel = *reinterpret_cast<Pack<T, V> const*>(value + row * pitch);
#pragma unroll
                for (int d = 0; d < V; ++d)
                    sum[d] += part * load<float>(pixel.v[d]);
            }
        }
    }
    Pack<T, V> y;
#pragma unroll
    for (int d = 0; d < V; ++d)
        y.v[d] = store<T>(sum[d]);
    static_cast<Pack<T, V>*>(p.y)[i] = y;
}
TW_KERNEL deformable_attention(const __grid_constant__ Params p)
{
    attend<WIDTH>(p);
}
TW_KERNEL deformable_attention_single(const __grid_constant__ Params p)
{
    attend<1>(p);
}

} // namespace tw::ops::deformable_attention
