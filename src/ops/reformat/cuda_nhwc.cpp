// SPDX-License-Identifier: Apache-2.0
// Between linear and kHWC8 for types of 2 bytes: squares of 8 channels by 8 pixels, turned in registers.
#include <algorithm>

#include "ops/reformat/reformat_params.h"
#include "ops/reformat/tactics.h"

namespace tw::ops::reformat {

namespace {

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
                   .sharedBytes = byPlanes ? kMostBytes : kTileBytes};
    for (std::string const to : {"Nhwc", "Planes"})
        for (int step = 0; step < kSteps; ++step) {
            std::string const each = std::to_string(1 << step);
            out.add((to == "Nhwc" ? "to_pixels_" : "to_planes_") + each,
                    "tw::ops::reformat::to" + to + "<" + each + ">", "tw::ops::reformat::PixelParams");
        }
    out.names.insert(out.names.end(), {"to_pixels_planes", "to_planes_planes"});
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
        if (int const shift = byPlanes ? planesShift(p.channels, p.pixels) : -1; shift >= 0) {
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
        int step = kSteps - 1;
        while (p.pixels % (int64_t(1) << step) != 0)
            --step;
        return launch((toNhwc ? 0 : kSteps) + step, images * blocksC * blocksP, kPixelThreads, p, kTileBytes);
    });
}

} // namespace

constinit CudaTactic const kNhwc{"reformat_f16_nhwc_cuda", 3, generateNhwc, supportsNhwc, configsOfNhwc, formatsOfNhwc};

} // namespace tw::ops::reformat
