// SPDX-License-Identifier: Apache-2.0
#include "ops/reformat/cuda_pixels.h"

#include <algorithm>

namespace tw::ops::reformat {

namespace {

constexpr int kThreads = 256;

struct Params
{
    void const* x = nullptr;
    void* y = nullptr;
    cuda::Div blocksAlong, blocksAcross;         // of a plane's squares: along what is read, and what is written
    int64_t along = 0, across = 0;               // squares
    int64_t channels = 0, pixels = 0, pixel = 0; // pixel: elements from one to the next
    int32_t laneShift = 0, blockShift = 0;       // 2^shift squares across for a warp, a block
};

// `left`: elements of the row that there are; a multiple of W.
constexpr char const* kText = R"(
struct Params {
    void const* x; void* y; Div blocksAlong, blocksAcross; i64 along, across, channels, pixels, pixel; i32 laneShift, blockShift;
};
typedef Pack<u32, 4> Halves;
template <int W> TW_INLINE Halves loadRow(unit2 const* row, i64 left)
{
    Halves v = {};
    if constexpr (W == 8) {
        if (left > 0) v = *reinterpret_cast<Halves const*>(row);
    } else if constexpr (W == 1) {
#pragma unroll
        for (int i = 0; i < 8; ++i)
            if (i < left) v.v[i / 2] |= u32(row[i].v) << (i % 2 * 16);
    } else {
#pragma unroll
        for (int i = 0; i < 8 / W; ++i)
            if (i * W < left) {
                Pack<u32, W / 2> const part = *reinterpret_cast<Pack<u32, W / 2> const*>(row + i * W);
#pragma unroll
                for (int e = 0; e < W / 2; ++e) v.v[i * (W / 2) + e] = part.v[e];
            }
    }
    return v;
}
template <int W> TW_INLINE void storeRow(unit2* row, i64 left, Halves const& v)
{
    if constexpr (W == 8) {
        if (left > 0) *reinterpret_cast<Halves*>(row) = v;
    } else if constexpr (W == 1) {
#pragma unroll
        for (int i = 0; i < 8; ++i)
            if (i < left) row[i].v = (unsigned short)(v.v[i / 2] >> (i % 2 * 16));
    } else {
#pragma unroll
        for (int i = 0; i < 8 / W; ++i)
            if (i * W < left) {
                Pack<u32, W / 2> part;
#pragma unroll
                for (int e = 0; e < W / 2; ++e) part.v[e] = v.v[i * (W / 2) + e];
                *reinterpret_cast<Pack<u32, W / 2>*>(row + i * W) = part;
            }
    }
}
// Row j of the square turned: element j of each row.
TW_INLINE Halves turned(Halves const (&rows)[8], int j)
{
    Halves v;
#pragma unroll
    for (int k = 0; k < 4; ++k) v.v[k] = __byte_perm(rows[k * 2].v[j / 2], rows[k * 2 + 1].v[j / 2], j % 2 ? 0x7632 : 0x5410);
    return v;
}
// The square of this thread: [along, across, image].
TW_INLINE bool squareOf(Params const& p, i64& along, i64& across, i64& image)
{
    // Blocks of one stretch along what is read, all that lie across it, run together: they write whole rows.
    idx const q = divide(blockIdx.x, p.blocksAcross), n = divide(q, p.blocksAlong);
    int const lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = p.blockShift - p.laneShift;
    int const ownAcross = ((warp & ((1 << warps) - 1)) << p.laneShift) + (lane & ((1 << p.laneShift) - 1));
    int const ownAlong = ((warp >> warps) << (5 - p.laneShift)) + (lane >> p.laneShift);
    along = (i64(q - n * idx(p.blocksAlong.d)) << (8 - p.blockShift)) + ownAlong;
    across = (i64(blockIdx.x - q * idx(p.blocksAcross.d)) << p.blockShift) + ownAcross;
    image = n;
    return along < p.along && across < p.across;
}
template <int W> TW_INLINE void toPixels(Params const& p)
{
    waitForPrevious();
    releaseDependents();
    i64 pixel, c, image;
    if (!squareOf(p, pixel, c, image)) return;
    pixel *= 8;
    c *= 8;
    unit2 const* const x = static_cast<unit2 const*>(p.x) + (image * p.channels + c) * p.pixels + pixel;
    unit2* const y = static_cast<unit2*>(p.y) + (image * p.pixels + pixel) * p.pixel + c;
    Halves rows[8];
#pragma unroll
    for (int k = 0; k < 8; ++k) rows[k] = loadRow<W>(x + k * p.pixels, c + k < p.channels ? p.pixels - pixel : 0);
#pragma unroll
    for (int j = 0; j < 8; ++j)
        if (pixel + j < p.pixels) *reinterpret_cast<Halves*>(y + j * p.pixel) = turned(rows, j);
}
template <int W> TW_INLINE void toPlanes(Params const& p)
{
    waitForPrevious();
    releaseDependents();
    i64 pixel, c, image;
    if (!squareOf(p, c, pixel, image)) return;
    pixel *= 8;
    c *= 8;
    unit2 const* const x = static_cast<unit2 const*>(p.x) + (image * p.pixels + pixel) * p.pixel + c;
    unit2* const y = static_cast<unit2*>(p.y) + (image * p.channels + c) * p.pixels + pixel;
    Halves rows[8];
#pragma unroll
    for (int j = 0; j < 8; ++j) {
        rows[j] = Halves{};
        if (pixel + j < p.pixels) rows[j] = *reinterpret_cast<Halves const*>(x + j * p.pixel);
    }
#pragma unroll
    for (int k = 0; k < 8; ++k)
        if (c + k < p.channels) storeRow<W>(y + k * p.pixels, p.pixels - pixel, turned(rows, k));
}
TW_KERNEL to_pixels_1(const __grid_constant__ Params p) { toPixels<1>(p); }
TW_KERNEL to_pixels_2(const __grid_constant__ Params p) { toPixels<2>(p); }
TW_KERNEL to_pixels_4(const __grid_constant__ Params p) { toPixels<4>(p); }
TW_KERNEL to_pixels_8(const __grid_constant__ Params p) { toPixels<8>(p); }
TW_KERNEL to_planes_1(const __grid_constant__ Params p) { toPlanes<1>(p); }
TW_KERNEL to_planes_2(const __grid_constant__ Params p) { toPlanes<2>(p); }
TW_KERNEL to_planes_4(const __grid_constant__ Params p) { toPlanes<4>(p); }
TW_KERNEL to_planes_8(const __grid_constant__ Params p) { toPlanes<8>(p); }
)";

constexpr int kKernels = 4; // of each direction: rows in steps of 1, 2, 4 or 8 elements

Result<void> run(int laneShift, int blockShift, CudaLaunch const& launch, RunArgs& args)
{
    TensorRef const &x = args.inputs[0], &y = args.outputs[0];
    bool const toPixels = isByPixel(y.format);
    int const axis = x.dims.rank - 3;
    Params p;
    p.x = x.data;
    p.y = y.data;
    p.channels = x.dims[axis];
    p.pixels = x.dims[axis + 1] * x.dims[axis + 2];
    p.pixel = toPixels ? y.pixelStride() : x.pixelStride();
    int64_t const images = x.dims.volume(0, axis), squaresC = (p.channels + 7) / 8, squaresP = (p.pixels + 7) / 8;
    p.along = toPixels ? squaresP : squaresC;
    p.across = toPixels ? squaresC : squaresP;
    auto least = [](int64_t count, int shift) {
        while (shift > 0 && (int64_t(1) << (shift - 1)) >= count)
            --shift;
        return shift;
    };
    p.blockShift = least(p.across, blockShift);
    p.laneShift = std::min(laneShift, p.blockShift);
    int64_t const alongOfBlock = kThreads >> p.blockShift, acrossOfBlock = int64_t(1) << p.blockShift;
    int64_t const blocksAlong = (p.along + alongOfBlock - 1) / alongOfBlock,
                  blocksAcross = (p.across + acrossOfBlock - 1) / acrossOfBlock;
    p.blocksAlong = cuda::divBy(blocksAlong);
    p.blocksAcross = cuda::divBy(blocksAcross);
    int step = kKernels - 1;
    while (p.pixels % (int64_t(1) << step) != 0)
        --step;
    return launch((toPixels ? 0 : kKernels) + step, images * blocksAlong * blocksAcross, kThreads, p);
}

} // namespace

Support supportsPixels(Problem const& p)
{
    if (sizeOf(p.outputs[0].type) != 2)
        return Support::no("takes types of 2 bytes");
    return Support::yes();
}

std::vector<Formats> formatsOfPixels(Problem const& p)
{
    if (p.inputs[0].dims.rank < 3)
        return {};
    return {Formats{{Format::kLinear}, {Format::kHWC8}}, Formats{{Format::kHWC8}, {Format::kLinear}}};
}

std::vector<Config> configsOfPixels(Problem const&)
{
    return {{3, 3}, {3, 5}};
}

CudaKernels generatePixels(Problem const& p, Config const& config)
{
    bool const isKnown = config.size() == 2 && config[0] >= 0 && config[0] <= config[1] && config[0] <= 5 &&
                         config[1] <= 8 && config[1] - config[0] <= 3;
    int const laneShift = isKnown ? int(config[0]) : 2, blockShift = isKnown ? int(config[1]) : 3;
    CudaKernels out;
    out.wide = isWide(p);
    out.isDependent = true;
    out.alignment = 16;
    for (char const* direction : {"to_pixels_", "to_planes_"})
        for (int step = 0; step < kKernels; ++step)
            out.names.push_back(direction + std::to_string(1 << step));
    out.source = kText + cuda::sizeCheck<Params>();
    out.run = [laneShift, blockShift](CudaLaunch const& launch, RunArgs& args) {
        return run(laneShift, blockShift, launch, args);
    };
    return out;
}

} // namespace tw::ops::reformat
