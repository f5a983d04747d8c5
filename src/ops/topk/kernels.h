// SPDX-License-Identifier: Apache-2.0
// What selections are made of, one table for each instruction set and type. All compare elements as floats.
#pragma once

#include <cstdint>

namespace tw::ops::topk {

// Which elements x pass a threshold t.
enum class Pass
{
    kNotBelow, // x >= t, or either is NaN
    kAbove,    // x > t, or either is NaN
    kNotAbove, // x <= t, no NaN
    kBelow,    // x < t, no NaN
};

constexpr int64_t fewOf(int64_t width)
{
    return width * 3 / 4;
}

struct Kernels
{
    int64_t width; // floats of a vector
    // lane[l] = the largest (smallest) of x[l], x[l + lanes], ... or a number not beyond it: NaN may hide others, and
    // the last elements may be left out. lanes: a multiple of the width, up to n.
    void (*extremes)(void const* x, int64_t n, bool smallest, float* lane, int64_t lanes);
    // A number that k elements at least are not worse than, few more for random elements; NaN does not count. k up to
    // fewOf(width), n at least a vector.
    float (*thresholdOfFew)(void const* x, int64_t n, bool smallest, int64_t k);
    // Writes the indices of the elements from `begin` on that pass, in order, up to `room` (at least a vector's width);
    // *end: the first one that was not looked at, n when all were. Returns how many.
    int64_t (*collect)(void const* x, int64_t begin, int64_t n, Pass pass, float t, int32_t* to, int64_t room,
                       int64_t* end);
    // index[i] = where the first of the best of x[i], x[i + step], ... (n of them) is, for `columns` columns. NaN is
    // the largest.
    void (*bestOfColumns)(void const* x, int64_t n, int64_t step, int64_t columns, bool smallest, int32_t* index);
};

} // namespace tw::ops::topk

namespace tw::avx2 {
extern ops::topk::Kernels const kTopkFloat, kTopkHalf, kTopkInt8;
}
namespace tw::avx512 {
extern ops::topk::Kernels const kTopkFloat, kTopkHalf, kTopkInt8;
}
