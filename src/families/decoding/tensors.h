// SPDX-License-Identifier: Apache-2.0
// Rows of the tensors that ops of decoding share, on the host's side.
#pragma once

#include <algorithm>
#include <span>

#include "base/tensor.h"
#include "families/decoding/row_params.h"

namespace tw::ops::decoding {

// Rows that a CPU works on at a time: each has memory for all tokens.
inline int64_t slotsOf(int64_t rows)
{
    constexpr int64_t kRowsAtOnce = 32;
    return std::min(rows, kRowsAtOnce);
}

inline Request requestAt(TensorRef const& floats, TensorRef const& ints, int64_t row)
{
    int64_t const f = floats.dims[1], i = ints.dims[1];
    return requestOf(floats.as<float>() + row * f, int32_t(f), ints.as<int32_t>() + row * i, int32_t(i));
}
inline bool isGiven(std::span<TensorRef const> in, int i)
{
    return size_t(i) < in.size() && in[size_t(i)].data;
}
inline Ends endsAt(std::span<TensorRef const> in, int i)
{
    return isGiven(in, i) ? Ends{in[size_t(i)].as<int32_t>(), int32_t(in[size_t(i)].count())} : Ends{};
}
inline Words wordsAt(std::span<TensorRef const> in, int i)
{
    return isGiven(in, i) ? Words{in[size_t(i)].as<int32_t>(), int32_t(in[size_t(i)].dims[2])} : Words{};
}

} // namespace tw::ops::decoding
