// SPDX-License-Identifier: Apache-2.0
// Convolutions over two or three axes with few channels or filters, FP16: tiles of x with their borders in shared memory.
#include <algorithm>
#include <cstring>

#include "families/convolution/cuda_conv_tile.h"
#include "kernels/cuda/common/tensor_map.h"

namespace tw::ops::conv_f16 {

namespace patch {
namespace {

using cuda::ceilDiv;

constexpr int64_t kTileW = 16;
constexpr int64_t kMostWindow = 11, kMostTaps = 125, kMostRows = 4; // rows: of 16 outputs, of a warp
constexpr int64_t kMostPlaneFilters = 16,
                  kMostPlaneChannels = 8; // more of both over two axes: products fill their tiles
constexpr size_t kMostConfigs = 4;

// A config's numbers.
enum ConfigField
{
    kTileD, // outputs of a block
    kTileH,
    kTileN, // filters
    kUnits, // of 8 channels, that lie in shared memory at a time
    kWarps,
    kConfigFields,
};

int64_t pixelBytes(Config const& c)
{
    return (c[kUnits] | 1) * 16;
}
int64_t pixelsIn(Geometry const& g, Config const& c)
{
    return (c[kTileD] + g.window[0] - 1) * (c[kTileH] + g.window[1] - 1) * (kTileW + g.window[2] - 1);
}
int64_t sharedBytes(Geometry const& g, Config const& c)
{
    return pixelsIn(g, c) * pixelBytes(c);
}
int64_t stepsOf(Geometry const& g, Config const& c)
{
    return ceilDiv(g.window[0] * g.window[1] * g.window[2] * c[kUnits], 2);
}
int64_t tilesOf(Geometry const& g, Config const& c)
{
    return g.batch * ceilDiv(g.out[0], c[kTileD]) * ceilDiv(g.out[1], c[kTileH]) * ceilDiv(g.out[2], kTileW);
}

// Why a config does not fit; null when it does.
char const* misfit(Geometry const& g, Config const& c)
{
    auto const isPower = [](int64_t v, int64_t most) { return v <= most && (v & (v - 1)) == 0; };
    if (!isConfig(c, kConfigFields, 1, 64) || !isPower(c[kTileN], 64) || c[kTileN] < 8 || !isPower(c[kWarps], 8) ||
        !isPower(c[kTileD], 8) || !isPower(c[kTileH], 16) || c[kUnits] > 8)
        return "a config has other numbers";
    if (int64_t const rows = c[kTileD] * c[kTileH]; rows % c[kWarps] != 0 || rows / c[kWarps] > kMostRows)
        return "a warp has 1 to 4 rows";
    if (sharedBytes(g, c) > kMostTileBytes)
        return "the tile is too large";
    return nullptr;
}

// Clocks: products at the rate of mma.sync or what they read from shared memory, the tile's bytes from L2, and waiting.
double estimate(Geometry const& g, Config const& c, int multiprocessors)
{
    constexpr double kClocksPerUs = 1900, kRead = 4, kColumn = 3.2, kBytes = 40, kPass = 900, kBlock = 1500,
                     kStart = 3500;
    double const rows = double(c[kTileD] * c[kTileH]), steps = double(stepsOf(g, c) * passesOf(g, c[kUnits]));
    double const products = rows * steps * std::max(kRead, kColumn * double(c[kTileN]) / 8),
                 bytes = double(passesOf(g, c[kUnits]) * pixelsIn(g, c) * c[kUnits] * 16) / kBytes,
                 waits = double(passesOf(g, c[kUnits])) * kPass + kBlock;
    int64_t const blocks = tilesOf(g, c) * ceilDiv(roundUp8(g.k), c[kTileN]),
                  together = std::clamp<int64_t>(2 * kMostTileBytes / sharedBytes(g, c), 1, 4);
    // Blocks of a multiprocessor share its tensor cores and hide each other's waiting.
    double const each = double(ceilDiv(blocks, multiprocessors)),
                 rounds = double(ceilDiv(blocks, multiprocessors * together));
    return (kStart + each * (products + bytes) + rounds * waits) / kClocksPerUs;
}

std::vector<Config> configs(Problem const& p, Arithmetic)
{
    Geometry const g = geometryOf(p, false), largest = geometryOf(p, true);
    if (isEmpty(g))
        return {{1, 4, 16, 1, 4}};
    int const multiprocessors = p.target.cuda->multiprocessors;
    constexpr int64_t kTiles[][2] = {{4, 8}, {2, 8}, {2, 4}, {1, 16}, {1, 8}, {1, 4}};
    std::vector<cuda::Guess<Config>> all;
    for (auto const& tile : kTiles) {
        if (p.inputs[1].dims.rank == 4 ? tile[0] > 1 : tile[1] > 8)
            continue;
        for (int64_t const tileN : {8, 16, 32, 64})
            for (int64_t const units : {1, 2, 3, 4, 6, 8}) {
                if ((tileN > 8 && roundUp8(g.k) <= tileN / 2) || !arePasses(g, units))
                    continue;
                int64_t const rows = tile[0] * tile[1], most = tileN >= 64 ? 2 : kMostRows;
                Config const c{tile[0], tile[1], tileN, units,
                               std::clamp<int64_t>(rows / most, std::min<int64_t>(rows, 4), 8)};
                if (rows / c[kWarps] <= most && !misfit(largest, c))
                    all.push_back({estimate(g, c, multiprocessors), c});
            }
    }
    return cuda::bestOf(std::move(all), kMostConfigs);
}

Support supports(Problem const& p, Arithmetic a)
{
    TW_SUPPORTS(supportsTiles(p, a));
    TensorSpec const& w = p.inputs[1];
    if (w.dims.rank != 4 && w.dims.rank != 5)
        return Support::no("takes windows over two or three axes");
    Geometry const g = geometryOf(p, true);
    if (w.dims.rank == 4 && g.k > kMostPlaneFilters && g.c > kMostPlaneChannels)
        return Support::no(fmt::format("takes at most {} filters or {} channels over two axes", kMostPlaneFilters,
                                       kMostPlaneChannels));
    int64_t taps = 1;
    for (int64_t const n : g.window) {
        taps *= n;
        if (n > kMostWindow)
            return Support::no(fmt::format("takes windows of at most {} along each axis", kMostWindow));
    }
    if (taps > kMostTaps || (w.dims.rank == 4 && taps == 1))
        return Support::no(
            fmt::format("takes windows of at most {} positions, over two axes of more than one", kMostTaps));
    if (tilesOf(g, {1, 4, 8, 1, 4}) >= INT32_MAX)
        return Support::no("counts in 32 bits");
    return configs(p, a).empty() ? Support::no("no tile fits") : Support::yes();
}

std::vector<Formats> formats(Problem const& p)
{
    if (p.inputs[1].dims.rank == 4)
        return pixelFormats(p);
    if (p.inputs[0].dims.rank < leastRankOf(Format::kDHWC8) || p.inputs[1].dims.rank != 5 || p.inputs[0].constant)
        return {};
    Formats f = linearFormats(p);
    f.inputs[0] = f.outputs[0] = Format::kDHWC8;
    if (hasResidual(p))
        f.inputs[3] = Format::kDHWC8;
    return {f};
}

// As mma.sync takes its second factor: [tile of filters, pass, step, pair of 8 filters, lane, 8 filters of the pair, item of
// the step] words of two channels; zeros where there is no such filter, channel or item.
std::string packFragments(TensorSpec const& w, Geometry const& g, Config const& c)
{
    int64_t const tiles = ceilDiv(roundUp8(g.k), c[kTileN]), passes = passesOf(g, c[kUnits]), steps = stepsOf(g, c),
                  each = c[kTileN] == 8 ? 1 : 2, pairs = c[kTileN] / 8 / each, taps = w.dims.volume(2, w.dims.rank);
    std::string packed(size_t(tiles * passes * steps * c[kTileN] * 16 * 2), '\0');
    auto const* const from = static_cast<uint16_t const*>(w.constant->data());
    char* to = packed.data();
    for (int64_t tile = 0; tile < tiles; ++tile)
        for (int64_t pass = 0; pass < passes; ++pass)
            for (int64_t step = 0; step < steps; ++step)
                for (int64_t pair = 0; pair < pairs; ++pair)
                    for (int64_t lane = 0; lane < 32; ++lane)
                        for (int64_t i = 0; i < each * 4; ++i, to += 2) { // halves: 8 filters, item, channel
                            int64_t const filter = tile * c[kTileN] + (pair * each + i / 4) * 8 + lane / 4,
                                          item = step * 2 + i / 2 % 2, tap = item / c[kUnits],
                                          unit = pass * c[kUnits] + item % c[kUnits],
                                          channel = unit * 8 + lane % 4 * 2 + i % 2;
                            if (filter < g.k && channel < g.c && tap < taps)
                                std::memcpy(to, from + (filter * g.c + channel) * taps + tap, 2);
                        }
    return packed;
}

std::unique_ptr<CudaKernels> generate(Problem const& p, Config const& c, Arithmetic)
{
    Geometry const largest = geometryOf(p, true);
    if (char const* const why = misfit(largest, c))
        return noKernels(unsupported(why));
    using cuda::constant;
    std::string const text = tileSource(p, largest, c[kUnits]) + constant("TILE_D", c[kTileD]) +
                             constant("TILE_H", c[kTileH]) + constant("TILE_N", c[kTileN]) +
                             constant("WARPS", c[kWarps]) + constant("KD", largest.window[0]) +
                             constant("KH", largest.window[1]) + constant("KW", largest.window[2]) +
                             constant("BLOCKS", 2) + cuda::include("families/convolution/cuda_conv_patch.cuh");
    auto const run = [&node = *p.node, c](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        Geometry const g = geometryOf(node, args);
        if (isEmpty(g))
            return {};
        PatchParams a = tileParams(g, launch, args);
        a.tilesW = uint32_t(ceilDiv(g.out[2], kTileW));
        a.tilesH = uint32_t(ceilDiv(g.out[1], c[kTileH]));
        a.tilesD = uint32_t(ceilDiv(g.out[0], c[kTileD]));
        cuda::LaunchGeometry geometry;
        geometry.grid = tilesOf(g, c);
        geometry.gridY = ceilDiv(roundUp8(g.k), c[kTileN]);
        geometry.block = int(c[kWarps] * 32);
        geometry.sharedBytes = sharedBytes(g, c);
        return launch.withGeometry(0, geometry, {&a});
    };
    auto const pack = [c](Problem const& of) -> PackedParts {
        Geometry const g = geometryOf(of, true);
        return std::vector<std::string>{packBias(of, roundUp8(g.k)), packFragments(of.inputs[1], g, c)};
    };
    return kernelsOf(wholeSource("convolvePatch", text, sharedBytes(largest, c)), run, {}, pack, {1, 2});
}

} // namespace
} // namespace patch

constinit Algorithm const kPatch{patch::formats, patch::supports, patch::configs,
                                 [](Problem const& p, Config const& c, Arithmetic) {
                                     Geometry const g = geometryOf(p, false);
                                     return isEmpty(g) || patch::misfit(g, c)
                                                ? 0.
                                                : patch::estimate(g, c, p.target.cuda->multiprocessors);
                                 },
                                 patch::generate};

} // namespace tw::ops::conv_f16
