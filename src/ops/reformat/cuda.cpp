// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "families/copy/cuda_move.h"
#include "ops/reformat/cuda_move.h"
#include "ops/reformat/cuda_pixels.h"
#include "ops/reformat/op.h"

namespace tw::ops::reformat {

namespace {

constexpr int kThreads = 256;
constexpr int64_t kPackBytes = 16;

struct Params
{
    void const* x = nullptr;
    void* y = nullptr;
    int64_t channels = 0, pixels = 0;
    cuda::Div xVector, yVector; // channels that lie together: 1 in planes, the pixel stride where all do
    int64_t xVectors = 1, yVectors = 1;
    int64_t yChannels = 0; // those of y's storage that are written: zeros behind the channels
    cuda::Div tilesC, tilesP;
};

// Squares of 32 channels by 32 pixels through shared memory; each side is walked along what it is dense in.
constexpr char const* kText = R"(
struct Params { void const* x; void* y; i64 channels, pixels; Div xVector, yVector; i64 xVectors, yVectors, yChannels; Div tilesC, tilesP; };
TW_INLINE i64 place(Params const& p, Div const& vector, i64 vectors, i64 image, i64 c, i64 pixel)
{
    i64 const v = divide(idx(c), vector);
    return ((image * vectors + v) * p.pixels + pixel) * vector.d + (c - v * vector.d);
}
TW_KERNEL reformat(const __grid_constant__ Params p)
{
    __shared__ $unit$ tile[32][33]; // [channel, pixel]
    idx const rest = divide(blockIdx.x, p.tilesP), image = divide(rest, p.tilesC);
    i64 const c0 = i64(rest - image * idx(p.tilesC.d)) * 32, p0 = i64(blockIdx.x - rest * idx(p.tilesP.d)) * 32;
    int const tx = threadIdx.x % 32, ty = threadIdx.x / 32;
#pragma unroll
    for (int r = ty; r < 32; r += 8) {
        int const c = p.xVector.d > 1 ? tx : r, pixel = p.xVector.d > 1 ? r : tx;
        if (c0 + c < p.channels && p0 + pixel < p.pixels)
            tile[c][pixel] = static_cast<$unit$ const*>(p.x)[place(p, p.xVector, p.xVectors, image, c0 + c, p0 + pixel)];
    }
    __syncthreads();
#pragma unroll
    for (int r = ty; r < 32; r += 8) {
        int const c = p.yVector.d > 1 ? tx : r, pixel = p.yVector.d > 1 ? r : tx;
        if (c0 + c < p.yChannels && p0 + pixel < p.pixels)
            static_cast<$unit$*>(p.y)[place(p, p.yVector, p.yVectors, image, c0 + c, p0 + pixel)] =
                c0 + c < p.channels ? tile[c][pixel] : $unit${};
    }
}
// Pixels of whole packs of 16 bytes, the same on both sides; what lies behind the channels becomes zero. `pixels`
// counts packs, xVector those of a pixel.
TW_KERNEL copy_pixels(const __grid_constant__ Params p)
{
    constexpr int kPack = 16 / sizeof($unit$);
    idx const i = threadIndex();
    if (i >= p.pixels) return;
    int const left = int(p.channels) - int(i - divide(i, p.xVector) * idx(p.xVector.d)) * kPack;
    Pack<$unit$, kPack> v = static_cast<Pack<$unit$, kPack> const*>(p.x)[i];
    if (left < kPack)
#pragma unroll
        for (int k = 0; k < kPack; ++k)
            if (k >= left) v.v[k] = $unit${};
    static_cast<Pack<$unit$, kPack>*>(p.y)[i] = v;
}
)";

CudaKernels generate(Problem const& problem, Config const&)
{
    CudaKernels out;
    out.wide = isWide(problem);
    out.names = {"reformat", "copy_pixels"};
    out.source =
        cuda::expand(kText, {{"unit", cuda::unitOf(sizeOf(problem.outputs[0].type))}}) + cuda::sizeCheck<Params>();
    out.run = [](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        constexpr int64_t kTile = 32;
        TensorRef const &x = args.inputs[0], &y = args.outputs[0];
        Format const packed = x.format != Format::kLinear ? x.format : y.format;
        int const rank = x.dims.rank, axis = packed == Format::kLinear ? 0 : channelAxis(packed, rank);
        Params p;
        p.x = x.data;
        p.y = y.data;
        p.channels = rank > 0 ? x.dims[axis] : 1;
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
    };
    return out;
}

constexpr CudaTactic kPixels{"reformat_2_pixels", 3, generatePixels, supportsPixels, configsOfPixels, formatsOfPixels};
constexpr CudaTactic kMove{"reformat_move_cuda", 4, generateMove, supportsMove, configsOfTiles, formatPairs};
constexpr CudaTactic kPlain{"reformat_plain_cuda", 4, generate, nullptr, nullptr, formatPairs};

} // namespace

std::span<Tactic const* const> cudaTactics()
{
    static constexpr Tactic const* kList[] = {&kPixels, &kMove, &kPlain};
    return kList;
}

} // namespace tw::ops::reformat
