// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "families/copy/cuda_strided_copy.h"
#include "ops/reformat/op.h"
#include "ops/reformat/reformat_params.h"
#include "tactic/cuda_tactic.h"

namespace tw::ops::reformat {

namespace {

// ---- Between any two formats as a transposed box, where vectors are full.

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

CudaSource stridedSourceOf(Problem const& problem)
{
    CudaSource out = stridedCopySource(sizeOf(problem.outputs[0].type), StridedCopies::kTiledBordered);
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
        return Support::no(fmt::format("takes channels that fill vectors of {}", vector));
    return Support::yes();
}

std::unique_ptr<CudaKernels> generateStridedCopy(Problem const& problem, Config const& config)
{
    TileShape const shape = tileShapeOf(config);
    return kernelsOf(stridedSourceOf(problem), [shape](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
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

constexpr CudaTactic kStridedCopy{
    "reformat_any_strided_copy_cuda", 4, generateStridedCopy, supportsStridedCopy, configsOfTiles, formatPairs};

// ---- Between linear and kHWC8 for types of 2 bytes: squares of 8 channels by 8 pixels, turned in registers.

constexpr int kPixelThreads = 256;
constexpr int64_t kTileBytes = 32 << 10;   // of a block that goes by squares
constexpr int64_t kMostBytes = 48 << 10;   // of one that holds whole planes
constexpr int64_t kMostGroups = 8;         // of 8 channels, in a block that goes by squares: 128 bytes of a pixel
constexpr int64_t kPlanesBytes = 16 << 10; // about, of the planes that a block holds: several fit a multiprocessor

constexpr int kSteps = 4; // kernels of each direction: rows in steps of 1, 2, 4 or 8 elements
constexpr int kPlanesKernel = 2 * kSteps;

// Groups of 8 channels whose planes a block holds, as a power of 2; nothing: they do not fit, or begin anywhere.
int planesShift(int64_t channels, int64_t pixels)
{
    int64_t const groups = (channels + 7) / 8;
    if (channels * pixels % 8 != 0 || (pixels + 1) * 16 > kMostBytes)
        return -1;
    int shift = 0;
    while ((int64_t(1) << shift) < groups && ((pixels + 1) * 16 << (shift + 1)) <= kPlanesBytes)
        ++shift;
    while ((int64_t(1) << shift) < std::min<int64_t>(groups, 4) && ((pixels + 1) * 16 << (shift + 1)) <= kMostBytes)
        ++shift; // 64 bytes of a pixel at least, where that fits
    return shift;
}

CudaSource sourceOf(Problem const& problem, bool byPlanes)
{
    CudaSource out{.text = cuda::include("ops/reformat/reformat_pixels.cuh"),
                   .names = {},
                   .wide = isWide(problem),
                   .isDependent = true,
                   .alignment = 16,
                   .sharedBytes = byPlanes ? kMostBytes : kTileBytes,
                   .general = isByPixel(problem.outputs[0].format) ? 0 : kSteps};
    for (std::string const to : {"Nhwc", "Planes"})
        for (int step = 0; step < kSteps; ++step) {
            std::string const each = std::to_string(1 << step);
            out.add((to == "Nhwc" ? "to_pixels_" : "to_planes_") + each,
                    "tw::ops::reformat::to" + to + "<" + each + ">", "tw::ops::reformat::PixelParams");
        }
    out.add("to_pixels_planes", "tw::ops::reformat::toNhwcByPlanes", "tw::ops::reformat::PixelParams");
    out.add("to_planes_planes", "tw::ops::reformat::toPlanesByPlanes", "tw::ops::reformat::PixelParams");
    return out;
}

Support supportsNhwc(Problem const& p)
{
    if (sizeOf(p.outputs[0].type) != 2)
        return Support::no("takes types of 2 bytes");
    return Support::yes();
}

std::vector<Formats> formatsOfNhwc(Problem const& p)
{
    if (p.inputs[0].dims.rank < 3)
        return {};
    return {Formats{{Format::kLinear}, {Format::kHWC8}}, Formats{{Format::kHWC8}, {Format::kLinear}}};
}

// By squares, or by whole planes where those are small.
std::vector<Config> configsOfNhwc(Problem const& p)
{
    Extents const& d = p.inputs[0].dims;
    if (planesShift(d[d.rank - 3], d[d.rank - 2] * d[d.rank - 1]) < 0)
        return {{0}};
    return {{0}, {1}};
}

std::unique_ptr<CudaKernels> generateNhwc(Problem const& problem, Config const& config)
{
    bool const byPlanes = config == Config{1};
    return kernelsOf(sourceOf(problem, byPlanes), [byPlanes](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        TensorRef const &x = args.inputs[0], &y = args.outputs[0];
        bool const toNhwc = isByPixel(y.format);
        int const axis = x.dims.rank - 3;
        PixelParams p{.x = x.data,
                      .y = y.data,
                      .channels = x.dims[axis],
                      .pixels = x.dims[axis + 1] * x.dims[axis + 2],
                      .pixel = toNhwc ? y.pixelStride() : x.pixelStride()};
        p.plane = cuda::divBy(std::max<int64_t>(p.pixels, 1));
        int64_t const images = x.dims.volume(0, axis), groups = (p.channels + 7) / 8;
        auto blocksOf = [](int64_t count, int64_t each) { return (count + each - 1) / each; };
        if (int const shift = byPlanes && !launch.isGeneral() ? planesShift(p.channels, p.pixels) : -1; shift >= 0) {
            p.groupShift = shift;
            int64_t const blocks = blocksOf(groups, int64_t(1) << shift);
            p.blocksC = cuda::divBy(std::max<int64_t>(blocks, 1));
            return launch(kPlanesKernel + (toNhwc ? 0 : 1), images * blocks, kPixelThreads, p,
                          (p.pixels + 1) * 16 << shift);
        }
        while ((int64_t(1) << p.groupShift) < std::min(groups, kMostGroups))
            ++p.groupShift;
        int64_t const blocksC = blocksOf(groups, int64_t(1) << p.groupShift),
                      blocksP = blocksOf(p.pixels, 2048 >> p.groupShift);
        p.blocksC = cuda::divBy(std::max<int64_t>(blocksC, 1));
        p.blocksP = cuda::divBy(std::max<int64_t>(blocksP, 1));
        int step = launch.isGeneral() ? 0 : kSteps - 1;
        while (p.pixels % (int64_t(1) << step) != 0)
            --step;
        return launch((toNhwc ? 0 : kSteps) + step, images * blocksC * blocksP, kPixelThreads, p, kTileBytes);
    });
}

constexpr CudaTactic kNhwc{"reformat_f16_nhwc_cuda", 3, generateNhwc, supportsNhwc, configsOfNhwc, formatsOfNhwc};

// ---- Everything else.

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
