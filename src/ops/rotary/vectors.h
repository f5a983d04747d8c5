// SPDX-License-Identifier: Apache-2.0
// The kernels of kernels.h, written once for both instruction sets. For the ISA files alone, which define TW_ISA, the
// namespace.
#include "ops/rotary/kernels.h"

namespace tw::TW_ISA {

namespace {

using ops::rotary::Row;

// The compiler makes vectors of these loops.
template <bool kByPair>
void halves(Row const& row)
{
    int64_t const half = row.size / 2, behind = kByPair ? 0 : half;
    float const* __restrict x = row.x, * __restrict c = row.c, * __restrict s = row.s;
    float* __restrict y = row.y;
    for (int64_t d = 0; d < half; ++d) {
        float const a = x[d], b = x[d + half];
        y[d] = a * c[d] - b * s[d];
        y[d + half] = b * c[d + behind] + a * s[d + behind];
    }
    for (int64_t d = row.size; d < row.n; ++d)
        y[d] = x[d];
}

template <bool kByPair>
void neighbours(Row const& row)
{
    int64_t const half = row.size / 2;
    float const* __restrict x = row.x, * __restrict c = row.c, * __restrict s = row.s;
    float* __restrict y = row.y;
    for (int64_t d = 0; d < half; ++d) {
        float const a = x[2 * d], b = x[2 * d + 1];
        y[2 * d] = a * c[kByPair ? d : 2 * d] - b * s[kByPair ? d : 2 * d];
        y[2 * d + 1] = b * c[kByPair ? d : 2 * d + 1] + a * s[kByPair ? d : 2 * d + 1];
    }
    for (int64_t d = row.size; d < row.n; ++d)
        y[d] = x[d];
}

} // namespace

constinit ops::rotary::Kernels const kRotary{halves<false>, halves<true>, neighbours<false>, neighbours<true>};

} // namespace tw::TW_ISA
