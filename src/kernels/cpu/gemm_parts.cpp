// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/gemm_parts.h"

#include "base/round.h"

namespace tw::kernels {

void GemmParts::cut(int64_t m, int64_t tallest, int64_t columns, int64_t panelColumns)
{
    panel = panelColumns;
    panels = divideUp(columns, panel);
    hasTail = columns % panel != 0;
    tiles = divideUp(m, tallest);
    height = m / tiles;
    tallTiles = m % tiles;
}

void GemmParts::share(int64_t blockBytes, int64_t tileBytes, double operations, double least, int threads)
{
    tilesPerBlock = std::clamp<int64_t>(blockBytes / std::max<int64_t>(tileBytes, 1), 1, tiles);
    int64_t const most = threads == 1 ? 1 : int64_t(std::clamp(operations / least, 1., threads * 4.));
    int64_t const blocks = divideUp(most, products * panels);
    tilesPerBlock = std::min(tilesPerBlock, divideUp(tiles, std::min(blocks, tiles)));
    rowBlocks = divideUp(tiles, tilesPerBlock);
    tilesPerBlock = divideUp(tiles, rowBlocks);
    rowBlocks = divideUp(tiles, tilesPerBlock);
    int64_t const mostGroups = std::min(panels, divideUp(most, products * rowBlocks));
    int64_t best = INT64_MAX;
    for (int64_t n = mostGroups; n >= 1; --n) {
        int64_t const span = divideUp(products * rowBlocks * n, threads) * divideUp(panels, n);
        if (span < best) {
            best = span;
            groups = n;
        }
    }
}

GemmParts::Part GemmParts::part(int64_t i) const
{
    int64_t const group = i % groups, block = i / groups % rowBlocks;
    Part p{.product = i / groups / rowBlocks,
           .firstTile = block * tilesPerBlock,
           .firstPanel = panels * group / groups,
           .lastPanel = panels * (group + 1) / groups};
    p.lastTile = std::min(p.firstTile + tilesPerBlock, tiles);
    p.firstRow = rowOf(p.firstTile);
    p.rows = rowOf(p.lastTile) - p.firstRow;
    return p;
}

} // namespace tw::kernels
