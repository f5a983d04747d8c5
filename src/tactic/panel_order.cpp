// SPDX-License-Identifier: Apache-2.0
#include "tactic/panel_order.h"

#include <algorithm>
#include <numeric>

#include "kernels/cpu/gemm_parts.h"

namespace tw::ops {

namespace {

// [D] the row of a panel for each product, in plain order.
std::vector<int64_t> placesOf(PanelOrder const& o)
{
    std::vector<int64_t> places;
    places.reserve(size_t(o.depth()));
    int64_t const s = o.taps, u = o.together, whole = o.channels / u * u;
    for (int64_t c = 0; c < o.channels; ++c)
        for (int64_t i = 0; i < o.rows; ++i)
            for (int64_t j = 0; j < s; ++j) {
                int64_t const row = i * o.channels * s;
                places.push_back(c < whole ? row + (c / u * s + j) * u + c % u : row + c * s + j);
            }
    return places;
}

} // namespace

int64_t PanelOrder::outputs() const
{
    return std::accumulate(panels.begin(), panels.end(), int64_t(0));
}

bool PanelOrder::fits(int64_t count) const
{
    constexpr int64_t kMost = int64_t(1) << 31; // elements of a tensor
    auto positive = [](int32_t n) { return n > 0; };
    if (!std::all_of(panels.begin(), panels.end(), positive) || !positive(channels) || !positive(rows) ||
        !positive(taps) || !positive(together) || (outputsLast && (rows != 1 || taps != 1 || together != 1)))
        return false;
    int64_t const image = int64_t(rows) * taps, k = outputs();
    return image < kMost && image * channels < kMost && k > 0 && k < kMost && k <= count && depth() * k == count;
}

std::vector<int32_t> panelsOf(int64_t outputs, int64_t most)
{
    std::vector<int32_t> panels;
    for (int64_t k = 0; k < outputs; k += most)
        panels.push_back(int32_t(std::min(most, outputs - k)));
    return panels;
}

void toPanels(PanelOrder const& o, float const* plain, float* panels)
{
    int64_t const depth = o.depth(), all = o.outputs();
    std::vector<int64_t> const places = placesOf(o);
    int64_t k = 0;
    for (int32_t n : o.panels) {
        if (o.outputsLast)
            kernels::copyMatrix(panels + k * depth, n, n, plain + k, depth, n, all, 1);
        else
            kernels::copyTransposed(panels + k * depth, n, places.data(), plain + k * depth, depth, n, depth);
        k += n;
    }
}

void fromPanels(PanelOrder const& o, float const* panels, float* plain)
{
    int64_t const depth = o.depth(), all = o.outputs();
    std::vector<int64_t> const places = placesOf(o);
    constexpr int64_t kAtOnce = 64; // rows of a panel that stay in L1
    int64_t k = 0;
    for (int32_t n : o.panels) {
        float const* from = panels + k * depth;
        if (o.outputsLast)
            kernels::copyMatrix(plain + k, all, n, from, depth, n, n, 1);
        for (int64_t first = 0; first < depth && !o.outputsLast; first += kAtOnce)
            for (int32_t q = 0; q < n; ++q)
                for (int64_t d = first; d < std::min(first + kAtOnce, depth); ++d)
                    plain[(k + q) * depth + d] = from[places[size_t(d)] * n + q];
        k += n;
    }
}

} // namespace tw::ops
