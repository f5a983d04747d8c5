// SPDX-License-Identifier: Apache-2.0
// Vectors of floats and of as many int32_t, for the kernels of *_vectors.h alone, behind TW_ISA and TW_FLOATS. Each
// source has its own copy, so that none for one instruction set is linked for another.
#pragma once

#include <cstdint>

#include <immintrin.h>

namespace tw::TW_ISA {

namespace {

constexpr int64_t kFloats = TW_FLOATS;
using V [[gnu::vector_size(TW_FLOATS * 4)]] = float;
using I [[gnu::vector_size(TW_FLOATS * 4)]] = int32_t;

// Vectors are aligned where they are variables, nowhere else.
template <class T = V>
inline T load(float const* p)
{
    T v;
    __builtin_memcpy(&v, p, sizeof(T));
    return v;
}
inline void store(float* p, V v)
{
    __builtin_memcpy(p, &v, sizeof(V));
}

} // namespace

} // namespace tw::TW_ISA
