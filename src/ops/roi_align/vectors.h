// SPDX-License-Identifier: Apache-2.0
// The kernels of kernels.h, written once for both instruction sets. For the ISA files alone, which define TW_ISA, the
// namespace, and TW_FLOATS, of a vector.
#include "kernels/cpu/float_vectors.h"
#include "ops/roi_align/kernels.h"

namespace tw::TW_ISA {

namespace {

using ops::roi_align::PixelBin;
using ops::roi_align::Tap;

template <int Vectors>
inline void mixVectors(PixelBin const& bin, int64_t first, float* y)
{
    V sum[Vectors] = {};
    for (int64_t r = 0; r < bin.rowCount; ++r) {
        float const* const row = bin.x + bin.rows[r].at * bin.width * bin.step + first;
        for (int64_t s = 0; s < bin.columnCount; ++s) {
            float const* const pixel = row + bin.columns[s].at * bin.step;
            V const weight = V{} + bin.rows[r].weight * bin.columns[s].weight;
            for (int k = 0; k < Vectors; ++k)
                sum[k] += weight * load(pixel + k * kFloats);
        }
    }
    for (int k = 0; k < Vectors; ++k)
        store(y + first + k * kFloats, sum[k]);
}

void mix(PixelBin const& bin, int64_t channels, float* y)
{
    constexpr int kLine = 16 / TW_FLOATS; // vectors of a cache line
    int64_t c = 0;
    for (; c + 64 <= channels; c += 64)
        mixVectors<4 * kLine>(bin, c, y);
    for (; c < channels; c += 16)
        mixVectors<kLine>(bin, c, y);
}

} // namespace

constinit ops::roi_align::Kernels const kRoiAlign{mix};

} // namespace tw::TW_ISA
