// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "families/copy/cuda_strided_copy.h"
#include "ops/reformat/op.h"
#include "ops/reformat/reformat_params.h"
#include "ops/reformat/tactics.h"

namespace tw::ops::reformat {

namespace {

constexpr int kThreads = 256;
constexpr int64_t kPackBytes = 16;

std::unique_ptr<CudaKernels> plainKernels(Problem const& problem, Config const&)
{
    CudaSource source = {.text = cuda::type("Element", cuda::unitOf(sizeOf(problem.outputs[0].type))) +
                                 cuda::include("ops/reformat/reformat.cuh"),
                         .names = {"reformat", "copy_pixels"},
                         .wide = isWide(problem)};
    return kernelsOf(std::move(source), [](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        constexpr int64_t kTile = 32;
        TensorRef const &x = args.inputs[0], &y = args.outputs[0];
        Format const packed = x.format != Format::kLinear ? x.format : y.format;
        int const rank = x.dims.rank, axis = packed == Format::kLinear ? 0 : channelAxis(packed, rank);
        Params p{.x = x.data, .y = y.data, .channels = rank > 0 ? x.dims[axis] : 1};
        int64_t const images = x.dims.volume(0, axis);
        p.pixels = rank > 0 ? x.dims.volume(axis + 1, rank) : 1;
        auto lay = [&](TensorRef const& t, cuda::Div& vector, int64_t& vectors) {
            bool const isWhole = isByPixel(t.format);
            int64_t const v = isWhole ? t.pixelStride() : vectorOf(t.format);
            vector = cuda::divBy(v);
            vectors = isWhole ? 1 : (p.channels + v - 1) / v;
        };
        lay(x, p.xVector, p.xVectors);
        lay(y, p.yVector, p.yVectors);
        // A public format; the gaps of others belong to nobody, or to the tensor that y is a part of.
        bool const isWhole = y.format != Format::kChannelsLast && y.stride == 0;
        int64_t const pixelBytes = y.pixelStride() * sizeOf(y.type);
        if (isWhole && x.format == y.format && isByPixel(y.format) && x.pixelStride() == y.pixelStride() &&
            (pixelBytes | int64_t(cuda::addressOf(x.data)) | int64_t(cuda::addressOf(y.data))) % kPackBytes == 0) {
            p.xVector = cuda::divBy(pixelBytes / kPackBytes);
            p.pixels *= images * pixelBytes / kPackBytes;
            return launch(1, blocksFor(p.pixels, kThreads), kThreads, p);
        }
        p.yChannels = isWhole ? p.yVectors * int64_t(p.yVector.d) : p.channels;
        int64_t const tilesC = blocksFor(std::max(p.channels, p.yChannels), kTile), tilesP = blocksFor(p.pixels, kTile);
        p.tilesC = cuda::divBy(tilesC);
        p.tilesP = cuda::divBy(tilesP);
        return launch(0, images * tilesC * tilesP, kThreads, p);
    });
}

constexpr CudaTactic kPlain{"reformat_any_plain_cuda", 4, plainKernels, nullptr, nullptr, formatPairs};

} // namespace

extern constinit TacticList const cudaTactics = kTactics<kNhwc, kStridedCopy, kPlain>;

} // namespace tw::ops::reformat
