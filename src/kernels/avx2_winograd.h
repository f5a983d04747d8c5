// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tw::avx2 {

// u = G g Gt for `filters` filters g of 3 x 3 (at w, w + filterStride, ...), computed in double, stored side by side:
//   u[(i * t + j) * positionStride + filter], i, j < t
// and zeros up to `columns` (a multiple of 8). g: G of [t][3], t = 4 or 6. Strides in floats.
void winogradFilters(double const* g, int t, float const* w, int64_t filterStride, int filters, int columns, float* u,
                     int64_t positionStride);

} // namespace tw::avx2
