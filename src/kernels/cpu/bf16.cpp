// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <vector>

#include "kernels/cpu/casts.h"
#include "kernels/cpu/gemm_parts.h"

namespace tw::kernels {

void roundPairs(jit::Isa isa, float* to, int64_t ld, int64_t width, float const* from, int64_t rows, int64_t columns,
                int64_t rowStride, int64_t columnStride)
{
    auto const round = castsOf(isa).floatToBfloat16;
    constexpr int64_t kAtOnce = 256; // elements that are brought together first
    float together[kAtOnce];
    for (int64_t i = 0; i < rows; ++i, to += ld, from += rowStride) {
        auto* const row = reinterpret_cast<uint16_t*>(to);
        if (columnStride == 1)
            round(from, row, columns);
        for (int64_t j = 0; columnStride != 1 && j < columns; j += kAtOnce) {
            int64_t const count = std::min(kAtOnce, columns - j);
            for (int64_t k = 0; k < count; ++k)
                together[k] = from[(j + k) * columnStride];
            round(together, row + j, count);
        }
        std::memset(row + columns, 0, size_t(2 * width - columns) * sizeof(uint16_t));
    }
}

void roundColumnPairs(jit::Isa isa, float* to, int64_t ld, int64_t width, int64_t depth, float const* from,
                      int64_t rows, int64_t columns, int64_t rowStride, int64_t columnStride)
{
    std::vector<float> pairs(size_t(columns * depth)); // of each column
    roundPairs(isa, pairs.data(), depth, depth, from, columns, rows, columnStride, rowStride);
    copyMatrix(to, ld, width, pairs.data(), depth, columns, 1, depth);
}

} // namespace tw::kernels
