// SPDX-License-Identifier: Apache-2.0
// Tensors as parts of wider ones: joins along the channels that copy nothing (runtime/alias.h) let kernels read and
// write channels-last tensors whose pixels lie further apart than their own channels are long. Checks place tensors so,
// too.
#pragma once

#include <algorithm>

#include "base/format.h"
#include "base/tensor.h"
#include "tactic/tactic.h"

namespace tw::ops {

// Whether `t`, a tensor or its description, may be a part.
template <class T>
bool canBePart(T const& t)
{
    return isPixelRows(t.format, t.dims.rank) && t.dims[1] > 0 && t.dims[1] % vectorOf(t.format) == 0;
}

inline bool hasParts(Problem const& p)
{
    return std::any_of(p.inputs.begin(), p.inputs.end(),
                       [](TensorSpec const& t) { return t.present && !t.constant && canBePart(t); }) ||
           std::any_of(p.outputs.begin(), p.outputs.end(), canBePart<TensorSpec>);
}

// Channels of another tensor on either side of a part in a check: a part begins on 16 bytes at least.
inline int64_t neighbours(TensorRef const& t)
{
    return std::max<int64_t>(vectorOf(t.format), 16 / sizeOf(t.type));
}

// `t` with neighbours before and after; a description: the data is not that of `t`.
inline TensorRef widened(TensorRef t)
{
    t.dims[1] += 2 * neighbours(t);
    return t;
}

// `t` as the part of `whole`, its widened form, between the neighbours.
inline TensorRef partOf(TensorRef const& whole, TensorRef t)
{
    t.data = whole.as<char>() + neighbours(t) * sizeOf(t.type);
    t.stride = whole.pixelStride();
    return t;
}

} // namespace tw::ops
