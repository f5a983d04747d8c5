// SPDX-License-Identifier: Apache-2.0
// Filters of a convolution, which the network computes, in the order of its products.
//   int FILTER_BYTES: 2 or 4, of an element
#pragma once

#include "families/convolution/pack_filters_params.h"
#include "kernels/cuda/common/dependence.cuh"
#include "kernels/cuda/common/tf32.cuh"

namespace tw::ops {

template <int bytes>
struct FilterElement
{
    using Type = cuda::u32;
};
template <>
struct FilterElement<2>
{
    using Type = unsigned short;
};

TW_KERNEL __launch_bounds__(256) pack_filters(const __grid_constant__ FilterParams p)
{
    using Element = FilterElement<FILTER_BYTES>::Type;
    cuda::waitForPrevious();
    cuda::releaseDependents();
    cuda::i64 const i = cuda::i64(blockIdx.x) * 256 + threadIdx.x;
    if (i >= p.count)
        return;
    cuda::u32 const k = cuda::u32(i / p.each), at = cuda::u32(i - cuda::i64(k) * p.each),
                    position = at / cuda::u32(p.channels), c = at - position * cuda::u32(p.channels);
    Element v = 0;
    if (k < cuda::u32(p.filters) && c < cuda::u32(p.ofFilter) && position < cuda::u32(p.positions))
        v = static_cast<Element const*>(p.from)[(cuda::i64(k) * p.ofFilter + c) * p.positions + position];
    if (FILTER_BYTES == 4 && p.toTf32)
        v = Element(cuda::toTf32(__uint_as_float(v)));
    static_cast<Element*>(p.to)[i] = v;
}

} // namespace tw::ops
