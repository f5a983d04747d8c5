// SPDX-License-Identifier: Apache-2.0
// How kernels of depthwise convolutions cut a row of outputs into tiles.
#pragma once

#include <cstdint>
#include <vector>

namespace tw::kernels::jit {

// A run of equal tiles without taps that fall off, or one tile with some.
struct DepthwiseRun
{
    int64_t first = 0; // output column
    int width = 0;     // outputs of each tile
    int64_t tiles = 1;
    bool inside = true;
};

// Tiles of `most` outputs at most, of a DepthwiseSpec or Int8DepthwiseSpec.
template <class Spec>
std::vector<DepthwiseRun> depthwiseRuns(int64_t most, Spec const& s)
{
    std::vector<DepthwiseRun> runs;
    int64_t const tiles = (s.outWidth + most - 1) / most;
    int64_t at = 0;
    for (int64_t t = 0; t < tiles; ++t) {
        int const width = int(s.outWidth / tiles + (t < s.outWidth % tiles ? 1 : 0)); // as even as can be
        int64_t const begin = at * s.stride - s.before;
        int64_t const end = (at + width - 1) * s.stride - s.before + (s.taps - 1) * s.dilation;
        bool const inside = begin >= 0 && end < s.inWidth;
        if (inside && !runs.empty() && runs.back().inside && runs.back().width == width)
            ++runs.back().tiles;
        else
            runs.push_back({at, width, 1, inside});
        at += width;
    }
    return runs;
}

} // namespace tw::kernels::jit
