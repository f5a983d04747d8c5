// SPDX-License-Identifier: Apache-2.0
// What depthwise convolutions of floats and of i8 share: a row of outputs, and how [batch, rows of all planes, blocks of
// channels] are shared out.
#pragma once

#include "base/round.h"
#include "families/convolution/tactics.h"
#include "kernels/cpu/jit/depthwise.h"

namespace tw::ops {

// Parts enough for the threads to end at about the same time: channels first, then rows.
struct DepthwiseBands
{
    int64_t batch = 0, rows = 0, blocks = 0;
    int64_t bandRows = 1, bands = 1, blocksAtOnce = 1, blockParts = 1;

    DepthwiseBands() = default;
    DepthwiseBands(convolution::Geometry const& g, int64_t blockCount, int threads)
        : batch(g.batch), rows(g.out[0] * g.out[1]), blocks(blockCount)
    {
        int64_t const wanted = threads > 1 ? kPartsPerThread * threads : 1;
        blocksAtOnce = divideUp(blocks, std::min(blocks, divideUp(wanted, batch)));
        blockParts = divideUp(blocks, blocksAtOnce);
        bandRows = divideUp(rows, std::min(rows, divideUp(wanted, batch * blockParts)));
        bands = divideUp(rows, bandRows);
    }
    // Calls run(n, first row, last row, first block, last block), the last ones excluded.
    template <class Run>
    void share(Workers& workers, Run const& run) const
    {
        workers.run(batch * bands * blockParts, [&](int64_t part, int) {
            int64_t const block = part % blockParts * blocksAtOnce, row = part / blockParts % bands * bandRows;
            run(part / blockParts / bands, row, std::min(row + bandRows, rows), block,
                std::min(block + blocksAtOnce, blocks));
        });
    }
};

struct DepthwiseShapes : Prepared
{
    convolution::Geometry g;
    int64_t xPixel = 0, yPixel = 0, residualPixel = 0; // bytes
    DepthwiseBands bands;
};

inline kernels::jit::DepthwiseRow rowOf(DepthwiseShapes const& p, bool prefetch)
{
    convolution::Geometry const& g = p.g;
    return {int(g.window[2]), g.in[2],  g.out[2], g.stride[2],     g.dilation[2],
            g.before[2],      p.xPixel, p.yPixel, p.residualPixel, prefetch};
}

} // namespace tw::ops
