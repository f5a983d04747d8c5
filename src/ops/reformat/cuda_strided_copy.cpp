// SPDX-License-Identifier: Apache-2.0
// Between any two formats as a transposed box, where vectors are full.
#include "families/copy/cuda_strided_copy.h"

#include <algorithm>
#include <array>

#include "ops/reformat/op.h"
#include "ops/reformat/tactics.h"

namespace tw::ops::reformat {

namespace {

// Channels that lie together in planes of vectors; 1 where all of a pixel do.
int64_t planeVector(Format f)
{
    return isByPixel(f) ? 1 : vectorOf(f);
}

// Zeros lie after the channels of pixels.
bool hasZeros(Format x, Format y)
{
    return y != Format::kChannelsLast && isByPixel(y) && planeVector(x) == 1;
}

int axisOf(Format x, Format y, int rank)
{
    Format const packed = x != Format::kLinear ? x : y;
    return packed == Format::kLinear ? 0 : channelAxis(packed, rank);
}

CudaSource sourceOf(Problem const& problem, TileShape const& shape)
{
    CudaSource out = stridedCopySource(sizeOf(problem.outputs[0].type), StridedCopies::kTiledBordered, shape);
    out.wide = isWide(problem);
    for (TensorSpec const* t : {&problem.inputs[0], &problem.outputs[0]})
        out.wide = out.wide || storageCount(t->format, t->type, t->maxDims) >= INT32_MAX;
    return out;
}

Support supportsStridedCopy(Problem const& p)
{
    Format const x = p.inputs[0].format, y = p.outputs[0].format;
    int64_t vector = std::max(planeVector(x), planeVector(y));
    if (y != Format::kChannelsLast && isByPixel(y) && !hasZeros(x, y))
        vector = std::max<int64_t>(vector, vectorOf(y));
    if (vector == 1)
        return Support::yes();
    ir::Dim const& channels = p.node->inputs[0]->shape[size_t(axisOf(x, y, p.inputs[0].dims.rank))];
    if (!channels.isConst() || channels.value() % vector != 0)
        return Support::no("takes channels that fill vectors of " + std::to_string(vector));
    return Support::yes();
}

std::unique_ptr<CudaKernels> generateStridedCopy(Problem const& problem, Config const& config)
{
    TileShape const shape = tileShapeOf(config);
    return kernelsOf(sourceOf(problem, shape), [shape](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        TensorRef const &x = args.inputs[0], &y = args.outputs[0];
        Box box;
        box.elementBytes = sizeOf(x.type);
        box.x = x.data;
        box.y = y.data;
        if (x.format == Format::kLinear && y.format == Format::kLinear) {
            box.add(x.count(), 1, 1);
            return stridedCopy(launch, box, &shape);
        }
        int const rank = x.dims.rank, axis = axisOf(x.format, y.format, rank);
        int64_t const channels = x.dims[axis], pixels = x.dims.volume(axis + 1, rank), images = x.dims.volume(0, axis);
        // From channel to channel `unit` further, a multiple of the vector or a divisor of it.
        auto channelStep = [pixels](TensorRef const& t, int64_t unit) {
            return isByPixel(t.format) || unit < vectorOf(t.format) ? unit : unit * pixels;
        };
        auto pixelStep = [](TensorRef const& t) { return isByPixel(t.format) ? t.pixelStride() : vectorOf(t.format); };
        auto imageStep = [&](TensorRef const& t) {
            return pixels * (isByPixel(t.format) ? t.pixelStride() : channels);
        };
        int64_t const vx = planeVector(x.format), vy = planeVector(y.format), small = std::min(vx, vy),
                      large = std::max(vx, vy);
        struct Dim
        {
            int64_t n, x, y, present;
        };
        std::array<Dim, 5> dims{{{images, imageStep(x), imageStep(y), images},
                                 {channels / large, channelStep(x, large), channelStep(y, large), channels / large},
                                 {large / small, channelStep(x, small), channelStep(y, small), large / small},
                                 {small, channelStep(x, 1), channelStep(y, 1), small},
                                 {pixels, pixelStep(x), pixelStep(y), pixels}}};
        if (large == 1 && hasZeros(x.format, y.format) && y.stride == 0)
            dims[1].n = y.pixelStride();
        std::stable_sort(dims.begin() + 1, dims.end(), [](Dim const& a, Dim const& b) { return a.y > b.y; });
        for (Dim const& d : dims) {
            box.add(d.n, d.x, d.y);
            box.low.push(0);
            box.high.push(d.present);
        }
        return stridedCopy(launch, box, &shape);
    });
}

} // namespace

constinit CudaTactic const kStridedCopy{
    "reformat_any_strided_copy_cuda", 4, generateStridedCopy, supportsStridedCopy, configsOfTiles, formatPairs};

} // namespace tw::ops::reformat
