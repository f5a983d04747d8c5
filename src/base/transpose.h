// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

namespace tw {

// x[i * fromI + j] -> y[i + j * toJ] for [rows i, columns j] in square tiles, so that both sides stay in cache.
template <class T>
void transposePlane(T const* x, int64_t fromI, T* y, int64_t toJ, int64_t rows, int64_t columns)
{
    constexpr int64_t kTile = 32;
    for (int64_t i0 = 0; i0 < rows; i0 += kTile)
        for (int64_t j0 = 0; j0 < columns; j0 += kTile)
            for (int64_t j = j0; j < std::min(j0 + kTile, columns); ++j)
                for (int64_t i = i0; i < std::min(i0 + kTile, rows); ++i)
                    y[i + j * toJ] = x[i * fromI + j];
}

} // namespace tw
