// SPDX-License-Identifier: Apache-2.0
#include "kernels/avx2_winograd.h"

namespace tw::avx2 {

namespace {

constexpr int kLanes = 8; // filters at a time

template <int T>
void eightFilters(double const* g, float const* w, int64_t filterStride, int filters, float* u, int64_t positionStride)
{
    alignas(32) double tap[9][kLanes] = {}, half[T][3][kLanes];
    for (int f = 0; f < filters; ++f)
        for (int i = 0; i < 9; ++i)
            tap[i][f] = double(w[f * filterStride + i]);
    for (int i = 0; i < T; ++i)
        for (int s = 0; s < 3; ++s)
            for (int f = 0; f < kLanes; ++f)
                half[i][s][f] = g[i * 3] * tap[s][f] + g[i * 3 + 1] * tap[3 + s][f] + g[i * 3 + 2] * tap[6 + s][f];
    for (int i = 0; i < T; ++i)
        for (int j = 0; j < T; ++j) {
            float* const to = u + (i * T + j) * positionStride;
            for (int f = 0; f < kLanes; ++f)
                to[f] = float(g[j * 3] * half[i][0][f] + g[j * 3 + 1] * half[i][1][f] + g[j * 3 + 2] * half[i][2][f]);
        }
}

} // namespace

void winogradFilters(double const* g, int t, float const* w, int64_t filterStride, int filters, int columns, float* u,
                     int64_t positionStride)
{
    for (int f = 0; f < columns; f += kLanes) {
        int const left = filters - f, n = left < 0 ? 0 : left < kLanes ? left : kLanes;
        float const* const from = n > 0 ? w + f * filterStride : w;
        if (t == 6)
            eightFilters<6>(g, from, filterStride, n, u + f, positionStride);
        else
            eightFilters<4>(g, from, filterStride, n, u + f, positionStride);
    }
}

} // namespace tw::avx2
