// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions of large images, FP16 and FP32: tiles of x with their borders in shared memory, each read
// from memory once.
#include <algorithm>

#include "families/convolution/cuda_conv_depthwise_tile_params.h"
#include "families/convolution/cuda_conv_f16.h"
#include "kernels/cuda/common/generate.h"
#include "kernels/cuda/common/hopper.h"

namespace tw::ops::conv_f16 {

namespace depthwise_tile {
namespace {

using cuda::ceilDiv;

constexpr int64_t kStrips = 16; // of 4 columns each, that a warp has side by side: rows of a matrix product
constexpr int64_t kRegisters = 65536, kMostRegisters = 255, kMostWarps = 64; // of a multiprocessor, a thread
constexpr int64_t kMostShared = 224 * 1024;
constexpr int64_t kMostHeld = 9; // positions of a window that a thread keeps in registers, FP32
constexpr int64_t kMostTaps = 49, kMostStep = 4;

// A config's numbers.
enum ConfigField
{
    kAcross,  // strips side by side; the others lie below
    kRows,    // outputs of a strip, one below the other
    kVectors, // of 16 bytes of channels: warps
    kBlocks,  // of a multiprocessor, at least
    kConfigFields,
};

// What a config's tile is.
struct Shape
{
    int64_t tileW, tileH, inW, inH, groups;
    bool isPair; // a lane has two strips side by side, so that it reads most columns once
    int64_t rowX, rowY, sharedBytes;
};

Shape shapeOf(Geometry const& g, Config const& c, bool isHalf)
{
    Shape s;
    int64_t const reach = (g.window[2] - 1) * g.dilation[2];
    s.tileW = c[kAcross] * 4;
    s.tileH = kStrips / c[kAcross] * c[kRows];
    s.groups = (3 * g.stride[2] + reach + 4) / 4;
    // Even, and all that lanes read, used or not.
    s.inW =
        ceilDiv(std::max((s.tileW - 4) * g.stride[2] + s.groups * 4, (s.tileW - 1) * g.stride[2] + reach + 1), 4) * 4;
    s.inH = (s.tileH - 1) * g.stride[1] + (g.window[1] - 1) * g.dilation[1] + 1;
    s.isPair = isHalf && c[kAcross] >= 4;
    // As placeOf() in the kernel has it.
    auto row = [&](int64_t columns, int64_t step) {
        int64_t const v = c[kVectors], far = (step >= 4 ? 4 : step >= 2 ? 3 : 2) + (s.isPair ? 1 : 0);
        bool const isPower = v == 2 || v == 4 || v == 8;
        return (columns * (isPower ? v : v | 1) + (s.isPair && !isPower ? (columns >> far) * 4 : 0)) * 16;
    };
    s.rowX = row(s.inW, g.stride[2]);
    s.rowY = row(s.tileW, 1);
    s.sharedBytes = 2 * s.inH * s.rowX + s.tileH * s.rowY;
    return s;
}

// Registers that a thread needs, about.
int64_t registersOf(Geometry const& g, Shape const& s, int64_t rows, bool isHalf)
{
    int64_t const window = g.window[1] * g.window[2],
                  column = (rows * 2 - 1) * g.stride[1] + (g.window[1] - 1) * g.dilation[1] + 1;
    return (isHalf ? 56 + rows * 16 + g.window[1] * s.groups * 4 + s.groups * 8
                   : 24 + rows * 8 + column * 4 + (window <= kMostHeld ? window * 4 : 8));
}

// Why a config does not fit; null when it does.
char const* misfit(Geometry const& g, Config const& c, bool isHalf)
{
    auto isPower = [](int64_t v, int64_t most) { return v <= most && (v & (v - 1)) == 0; };
    if (!isConfig(c, kConfigFields, 1, 16) || !isPower(c[kAcross], 8) || c[kAcross] < 2 || c[kVectors] > 12 ||
        c[kRows] > 4)
        return "a config has other numbers";
    Shape const s = shapeOf(g, c, isHalf);
    if (s.inW > 64 || s.sharedBytes * c[kBlocks] > kMostShared)
        return "the tile is too large";
    if (registersOf(g, s, c[kRows], isHalf) > kMostRegisters || c[kBlocks] * c[kVectors] > kMostWarps)
        return "a thread has too few registers";
    return nullptr;
}

std::vector<Config> configs(Problem const& p, Arithmetic arithmetic)
{
    bool const isHalf = arithmetic == Arithmetic::kHalf;
    Geometry const g = geometryOf(p, false), largest = geometryOf(p, true);
    int64_t const capability = p.target.cuda ? p.target.cuda->capability : 90;
    int64_t const shared = capability >= 90 ? kMostShared : (capability == 80 ? 160 : 96) * 1024;
    int64_t const multiprocessors = p.target.cuda ? p.target.cuda->multiprocessors : 1;
    int64_t const all = roundUp8(g.c) / (isHalf ? 8 : 4);
    std::vector<Config> list;
    auto add = [&](int64_t across, int64_t rows, int64_t vectors, int64_t blocks) {
        Config c{across, rows, vectors, 1};
        Shape const s = shapeOf(largest, c, isHalf);
        // Each of 4 schedulers has a quarter of the registers.
        int64_t const warps = 4 * (kRegisters / 128 / (ceilDiv(registersOf(largest, s, rows, isHalf), 8) * 8));
        c[kBlocks] = std::min({blocks, warps / vectors, shared / s.sharedBytes});
        // Slices of channels that leave a third of a block idle are no good.
        if (vectors > 4 && ceilDiv(all, vectors) * vectors * 3 > all * 4)
            return;
        if (!misfit(largest, c, isHalf) && std::find(list.begin(), list.end(), c) == list.end())
            list.push_back(c);
    };
    int64_t const tiles = g.batch * ceilDiv(g.out[1], 16) * ceilDiv(g.out[2], 16) * ceilDiv(all, 4);
    // Few blocks with many bytes of neighbours each keep memory busier than many.
    if (g.out[2] <= 8)
        add(2, 1, 4, 4);
    if (tiles < 2 * multiprocessors) {
        add(4, 2, 4, 4);
        add(4, 1, 4, 4);
        return list;
    }
    add(4, 4, 4, 3);
    add(8, 2, 4, 3);
    add(4, 2, 4, 4);
    add(8, 4, 4, 2);
    add(4, 4, 12, 1);
    add(4, 4, 8, 1);
    add(2, 4, 4, 3);
    return list;
}

Support supports(Problem const& p, Arithmetic arithmetic)
{
    TW_SUPPORTS(supportsAlone(p, typeOf(p, arithmetic)));
    Geometry const g = geometryOf(p, true);
    if (g.window[1] * g.window[2] > kMostTaps ||
        std::max({g.stride[1], g.stride[2], g.dilation[1], g.dilation[2]}) > kMostStep)
        return Support::no(fmt::format("takes windows of at most {} positions and steps of {}", kMostTaps, kMostStep));
    if (isWide(p))
        return Support::no("counts in 32 bits");
    return configs(p, arithmetic).empty() ? Support::no("no tile fits") : Support::yes();
}

std::string textOf(Problem const& p, Config const& config, Shape const& shape, bool isHalf)
{
    Geometry const largest = geometryOf(p, true);
    return cuda::include("kernels/cuda/common/matrix.cuh") + epilogueSource(p, isHalf) +
           cuda::constant(
               "HELD", largest.window[1] * largest.window[2] <= kMostHeld ? largest.window[1] * largest.window[2] : 1) +
           cuda::constant("BLOCKS", config[kBlocks]) + cuda::type("T", isHalf ? "Narrow" : "float") +
           cuda::constant("R", largest.window[1]) + cuda::constant("S", largest.window[2]) +
           cuda::constant("STEP_H", largest.stride[1]) + cuda::constant("STEP_W", largest.stride[2]) +
           cuda::constant("DIL_H", largest.dilation[1]) + cuda::constant("DIL_W", largest.dilation[2]) +
           cuda::constant("ACROSS", config[kAcross]) + cuda::constant("ROWS", config[kRows]) +
           cuda::constant("VECTORS", config[kVectors]) + cuda::constant("IN_W", shape.inW) +
           cuda::flag("IS_PAIR", shape.isPair) + cuda::constant("ROW", shape.rowX) +
           cuda::constant("ROW_Y", shape.rowY) + cuda::flag("RESIDUAL", hasResidual(p)) +
           cuda::include(isHalf ? "families/convolution/cuda_conv_depthwise_tile_f16.cuh"
                                : "families/convolution/cuda_conv_depthwise_tile_f32.cuh") +
           cuda::include("families/convolution/cuda_conv_depthwise_tile.cuh");
}

std::unique_ptr<CudaKernels> generate(Problem const& p, Config const& config, Arithmetic arithmetic)
{
    bool const isHalf = arithmetic == Arithmetic::kHalf;
    Geometry const largest = geometryOf(p, true);
    if (char const* const why = misfit(largest, config, isHalf))
        return noKernels(unsupported(why));
    Shape const shape = shapeOf(largest, config, isHalf);
    auto const run = [&node = *p.node, config, shape, isHalf](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        Geometry const g = geometryOf(node, args);
        TileParams a;
        setImages(a, launch, args, g);
        a.vectors = int32_t(roundUp8(g.c) / (isHalf ? 8 : 4));
        int64_t const slices = ceilDiv(a.vectors, config[kVectors]), wide = ceilDiv(g.out[2], shape.tileW),
                      tall = ceilDiv(g.out[1], shape.tileH);
        a.slices = cuda::divBy(slices);
        a.tilesW = cuda::divBy(wide);
        a.tilesH = cuda::divBy(tall);
        a.outH = int32_t(g.out[1]);
        int64_t const tiles = g.batch * wide * tall;
        if (tiles == 0)
            return {};
        // As many blocks as there is room for, each with as many tiles as the others, but for one.
        int64_t const most = std::clamp<int64_t>(config[kBlocks] * launch.multiprocessors() / slices, 1, tiles);
        a.tiles = uint32_t(tiles);
        a.step = uint32_t(ceilDiv(tiles, ceilDiv(tiles, most)));
        return launch(0, int64_t(a.step) * slices, int(config[kVectors] * 32), a, shape.sharedBytes);
    };
    return depthwiseKernels(textOf(p, config, shape, isHalf), shape.sharedBytes, run);
}

} // namespace
} // namespace depthwise_tile

constinit Algorithm const kDepthwiseTile{pixelFormats, depthwise_tile::supports, depthwise_tile::configs,
                                         [](Problem const& p, Config const&, Arithmetic) { return estimateUs(p, 20); },
                                         depthwise_tile::generate};

} // namespace tw::ops::conv_f16
