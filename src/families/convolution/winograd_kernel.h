// SPDX-License-Identifier: Apache-2.0
// The kernel behind the Winograd tactics.
#pragma once

#include <optional>

#include "kernels/cpu/jit/emitter.h"
#include "kernels/cpu/jit/sum_end.h"
#include "tactic/packed_constants.h"
#include "tactic/panel_order.h"
#include "tactic/tactic.h"

namespace tw::ops {

// A window over three axes sums over its planes as over further channels: those of the input planes that it meets, planes
// outside being zeros.
struct WinogradDepth
{
    int64_t window = 1, stride = 1, dilation = 1, before = 0;
};

struct WinogradSpec : kernels::jit::SumEnd
{
    kernels::jit::Isa isa = kernels::jit::Isa::kAvx2;
    int m = 4;
    bool shared = false;            // all workers transform the tiles of one block, then take blocks of columns
    bool inPlace = false;           // weights are transformed as they are used
    int64_t tiles = 1, columns = 1; // of a block
    int64_t piece = 64;             // input channels that are summed up at a time
    int threads = 1;
    int64_t c = 1, k = 1;       // c: channels of x times the planes of the window
    int64_t before[2] = {0, 0}; // padding above and to the left
    WinogradDepth depth;

    int64_t positions() const { return int64_t(m + 2) * (m + 2); }
};

// [n d, c, h, w] of a tensor [n, c, d, h, w]; others as they are.
Extents winogradPlanes(Extents const& dims);
// Tiles of an output of this shape [n, k, (d,) h, w].
int64_t winogradTiles(int m, Extents const& y);

// The order in which filters [k, c, 3, 3] are read in place, by kernels of `columns` a block; null where zeros stand
// between.
std::optional<PanelOrder> winogradPanels(kernels::jit::Isa isa, int64_t k, int64_t c, int64_t columns);

// w: [k, c, (d,) 3, 3], not read when `panels` has them in that order, for a spec in place; else copies come from `packed`.
// bias: [k] or null. Inputs of the kernel: x, w, bias, residual (the last three may be absent).
Result<std::unique_ptr<Kernel>> makeWinogradKernel(WinogradSpec const& spec, Blob const& w, float const* bias,
                                                   BlobPtr const& panels, PackedConstants* packed);

} // namespace tw::ops
