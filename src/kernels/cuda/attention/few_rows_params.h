// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/attention/masks_params.h"

namespace tw::cuda {

// Rows that the kernel itself writes into the caches k and v, from row index[image] on. In `turned` kernels queries and new keys are pairs
// that are turned by angles.
template <class Key, class Element>
struct NewRowsOf
{
    Key const *k = nullptr, *v = nullptr;
    AttentionStrides kStride, vStride;
    i32 const* index = nullptr; // of images
    Element const *cosines = nullptr, *sines = nullptr;
    i64 cosineBatch = 0, cosineRow = 0, sineBatch = 0, sineRow = 0; // strides
    i32 rows = 0;
};

template <class Key, class Element>
struct AppendingArgsOf : AttentionArgsOf<Element>
{
    NewRowsOf<Key, Element> fresh;
};

} // namespace tw::cuda
