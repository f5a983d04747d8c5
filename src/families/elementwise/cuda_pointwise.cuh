// SPDX-License-Identifier: Apache-2.0
// y[i] = apply(x0[i], x1[i], ...), V elements of Y a thread. Kernels are made of compute() and computePixels(), which get an
// Operand for each x.
//   int RANK: dimensions that compute() walks, at the most; type ByteNumber: what i8 is computed in; apply(), in the types
//   that ComputeOf names
#pragma once

#include "families/elementwise/cuda_pointwise_params.h"
#include "kernels/cuda/common/prelude.cuh"

namespace tw::ops {

// What elements are computed in.
template <class T, bool Float = kIsFloat<T>>
struct ComputeOf
{
    using Type = int;
};
template <class T>
struct ComputeOf<T, true>
{
    using Type = float;
};
template <>
struct ComputeOf<i8, false>
{
    using Type = ByteNumber;
};

template <class T, int V, class C, class O>
TW_INLINE void fetch(void const* base, O at, int unit, C (&v)[V])
{
    T const* x = static_cast<T const*>(base) + at;
    if (unit) {
        Pack<T, V> const pack = *reinterpret_cast<Pack<T, V> const*>(x);
#pragma unroll
        for (int j = 0; j < V; ++j)
            v[j] = load<C>(pack.v[j]);
    } else {
        C const one = load<C>(*x);
#pragma unroll
        for (int j = 0; j < V; ++j)
            v[j] = one;
    }
}
// Operand k, of elements of type T: what a pack of y is made of.
template <int k, class T, int V>
struct Operand
{
    using Element = T;
    using Number = typename ComputeOf<T>::Type;
    static constexpr int K = k;

    Number v[V];

    TW_INLINE Operand() {}
    // Number j of a pack that is not taken.
    static TW_INLINE Number element(PointwiseParams const& p, off const (&at)[kMaxCudaOperands], int j)
    {
        return load<Number>(static_cast<T const*>(p.in[k])[at[k] + j * p.unit[k]]);
    }
};
template <int V, class Y, class... X>
TW_INLINE void compute(PointwiseParams const& p, X... x)
{
    waitForPrevious();
    releaseDependents();
    idx const i = threadIndex();
    if (i >= p.packs)
        return;
    off at[kMaxCudaOperands];
    locate<RANK>(p.loop, i, at);
    Y* const y = static_cast<Y*>(p.out) + i * V;
    if (V > 1 && p.tail && i == p.packs - 1) {
        for (int j = 0; j < p.tail; ++j)
            y[j] = store<Y>(apply(X::element(p, at, j)...));
        return;
    }
    (fetch<typename X::Element>(p.in[X::K], at[X::K], p.unit[X::K], x.v), ...);
    Pack<Y, V> pack;
#pragma unroll
    for (int j = 0; j < V; ++j)
        pack.v[j] = store<Y>(apply(x.v[j]...));
    *reinterpret_cast<Pack<Y, V>*>(y) = pack;
}
// Images by pixels, packs of channels.
template <int V, class Y, class... X>
TW_INLINE void computePixels(PointwiseParams const& p, X... x)
{
    waitForPrevious();
    releaseDependents();
    idx const i = threadIndex();
    if (i >= p.packs)
        return;
    idx const q = divide(i, p.loop.dim[7]), image = divide(q, p.loop.dim[6]);
    i64 const n = image, pixel = q - image * idx(p.loop.dim[6].d), c = i - q * idx(p.loop.dim[7].d);
    i64 at[kMaxCudaOperands];
#pragma unroll
    for (int k = 0; k < kMaxCudaOperands; ++k)
        at[k] = n * p.loop.stride[k][5] + pixel * p.loop.stride[k][6] + c * p.loop.stride[k][7];
    Y* const y = static_cast<Y*>(p.out) + n * p.yImage + pixel * p.yPixel + c * V;
    (fetch<typename X::Element>(p.in[X::K], at[X::K], p.unit[X::K], x.v), ...);
    Pack<Y, V> pack;
#pragma unroll
    for (int j = 0; j < V; ++j)
        pack.v[j] = store<Y>(apply(x.v[j]...));
    *reinterpret_cast<Pack<Y, V>*>(y) = pack;
}

} // namespace tw::ops
