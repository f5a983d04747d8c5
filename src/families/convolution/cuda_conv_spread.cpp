// SPDX-License-Identifier: Apache-2.0
// Convolutions over two axes to few filters by wide windows, FP16: the elements of a window's row are columns of a product.
#include <algorithm>
#include <cstring>

#include "families/convolution/cuda_conv_tile.h"

namespace tw::ops::conv_f16 {

namespace spread {
namespace {

using cuda::ceilDiv;

constexpr int64_t kMostFilters = 4, kLeastWindow = 3, kMostWindow = 15, kMostUnits = 8,
                  kMostSums = 16; // sums: of 16 x 8
constexpr size_t kMostConfigs = 3;

// A config's numbers.
enum ConfigField
{
    kRows,   // of y of a block, a warp for each
    kBlocks, // of 16 pixels of x, of a row
    kUnits,  // of 8 channels, that lie in shared memory at a time
    kConfigFields,
};

int64_t columnsOf(Geometry const& g)
{
    return ceilDiv(g.window[2] * g.k, 8);
}
int64_t tileWidth(Geometry const& g, Config const& c)
{
    return c[kBlocks] * 16 - g.window[2] + 1;
}
int64_t sharedBytes(Geometry const& g, Config const& c)
{
    int64_t const width = c[kBlocks] * 16, pixels = (c[kRows] + g.window[1] - 1) * width;
    return pixels * (c[kUnits] | 1) * 16 + c[kRows] * width * (columnsOf(g) * 8 + 1) * int64_t(sizeof(float));
}
int64_t stepsOf(Geometry const& g, Config const& c)
{
    return ceilDiv(g.window[1] * c[kUnits], 2);
}
int64_t tilesOf(Geometry const& g, Config const& c)
{
    return g.batch * ceilDiv(g.out[1], c[kRows]) * ceilDiv(g.out[2], tileWidth(g, c));
}

// Why a config does not fit; null when it does.
char const* misfit(Geometry const& g, Config const& c)
{
    if (!isConfig(c, kConfigFields, 1, 16) || (c[kRows] != 2 && c[kRows] != 4 && c[kRows] != 8) || c[kBlocks] > 4 ||
        c[kUnits] > kMostUnits || tileWidth(g, c) < 1)
        return "a config has other numbers";
    if (c[kBlocks] * columnsOf(g) > kMostSums)
        return "the sums of a row do not fit its registers";
    return sharedBytes(g, c) > kMostTileBytes ? "the tile is too large" : nullptr;
}

// Clocks: products at the rate of mma.sync, the tile's bytes from L2, and waiting.
double estimate(Geometry const& g, Config const& c, int multiprocessors)
{
    constexpr double kClocksPerUs = 1900, kStep = 24, kProduct = 3.2, kBytes = 40, kPass = 900, kBlock = 1500,
                     kStart = 3500;
    double const passes = double(passesOf(g, c[kUnits])), steps = double(stepsOf(g, c)) * passes,
                 products = double(c[kRows] * c[kBlocks]) * steps * kProduct * double(columnsOf(g)),
                 bytes = passes * double((c[kRows] + g.window[1] - 1) * c[kBlocks] * 16 * c[kUnits] * 16) / kBytes;
    int64_t const blocks = tilesOf(g, c), together = std::clamp<int64_t>(2 * kMostTileBytes / sharedBytes(g, c), 1, 4);
    double const each = double(ceilDiv(blocks, multiprocessors)),
                 rounds = double(ceilDiv(blocks, multiprocessors * together));
    return (kStart + each * (products + bytes) + rounds * (steps * kStep + passes * kPass + kBlock)) / kClocksPerUs;
}

std::vector<Config> configs(Problem const& p, Arithmetic)
{
    Geometry const g = geometryOf(p, false), largest = geometryOf(p, true);
    if (isEmpty(g))
        return {{4, 2, 1}};
    std::vector<cuda::Guess<Config>> all;
    for (int64_t const rows : {8, 4, 2})
        for (int64_t const blocks : {4, 3, 2, 1})
            for (int64_t const units : {8, 6, 4, 3, 2, 1}) {
                Config const c{rows, blocks, units};
                if (arePasses(g, units) && !misfit(largest, c))
                    all.push_back({estimate(g, c, p.target.cuda->multiprocessors), c});
            }
    return cuda::bestOf(std::move(all), kMostConfigs);
}

Support supports(Problem const& p, Arithmetic a)
{
    TW_SUPPORTS(supportsTiles(p, a));
    if (p.inputs[1].dims.rank != 4)
        return Support::no("takes windows over two axes");
    Geometry const g = geometryOf(p, true);
    if (g.k > kMostFilters)
        return Support::no(fmt::format("takes at most {} filters", kMostFilters));
    if (g.window[2] < kLeastWindow || std::max(g.window[1], g.window[2]) > kMostWindow)
        return Support::no(fmt::format("takes windows of {} to {} along a row", kLeastWindow, kMostWindow));
    if (tilesOf(g, {2, 1, 1}) >= INT32_MAX)
        return Support::no("counts in 32 bits");
    return configs(p, a).empty() ? Support::no("no tile fits") : Support::yes();
}

// As mma.sync takes its second factor: [pass, step, 8 columns, lane, item of the step] words of two channels; column n is
// element n / filters of the window's row and filter n % filters; zeros where there is no such column, channel or item.
std::string packFragments(TensorSpec const& w, Geometry const& g, Config const& c)
{
    int64_t const passes = passesOf(g, c[kUnits]), steps = stepsOf(g, c), columns = columnsOf(g);
    std::string packed(size_t(passes * steps * columns * 32 * 4 * 2), '\0');
    auto const* const from = static_cast<uint16_t const*>(w.constant->data());
    char* to = packed.data();
    for (int64_t pass = 0; pass < passes; ++pass)
        for (int64_t step = 0; step < steps; ++step)
            for (int64_t block = 0; block < columns; ++block)
                for (int64_t lane = 0; lane < 32; ++lane)
                    for (int64_t i = 0; i < 4; ++i, to += 2) { // halves: item, channel
                        int64_t const column = block * 8 + lane / 4, filter = column % g.k, s = column / g.k,
                                      item = step * 2 + i / 2, r = item / c[kUnits],
                                      channel = (pass * c[kUnits] + item % c[kUnits]) * 8 + lane % 4 * 2 + i % 2;
                        if (s < g.window[2] && r < g.window[1] && channel < g.c)
                            std::memcpy(to, from + ((filter * g.c + channel) * g.window[1] + r) * g.window[2] + s, 2);
                    }
    return packed;
}

std::unique_ptr<CudaKernels> generate(Problem const& p, Config const& c, Arithmetic)
{
    Geometry const largest = geometryOf(p, true);
    if (char const* const why = misfit(largest, c))
        return noKernels(unsupported(why));
    using cuda::constant;
    std::string const text = tileSource(p, largest, c[kUnits]) + constant("WARPS", c[kRows]) +
                             constant("BLOCKS_W", c[kBlocks]) + constant("FILTERS", largest.k) +
                             constant("KH", largest.window[1]) + constant("KW", largest.window[2]) +
                             cuda::include("families/convolution/cuda_conv_spread.cuh");
    auto const run = [&node = *p.node, c](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        Geometry const g = geometryOf(node, args);
        if (isEmpty(g))
            return {};
        PatchParams a = tileParams(g, launch, args);
        a.tilesW = uint32_t(ceilDiv(g.out[2], tileWidth(g, c)));
        a.tilesH = uint32_t(ceilDiv(g.out[1], c[kRows]));
        return launch(0, tilesOf(g, c), int(c[kRows] * 32), a, sharedBytes(g, c));
    };
    auto const pack = [c](Problem const& of) -> PackedParts {
        Geometry const g = geometryOf(of, true);
        return std::vector<std::string>{packBias(of, roundUp8(g.k)), packFragments(of.inputs[1], g, c)};
    };
    return kernelsOf(wholeSource("convolveSpread", text, sharedBytes(largest, c)), run, {}, pack, {1, 2});
}

} // namespace
} // namespace spread

constinit Algorithm const kSpread{pixelFormats, spread::supports, spread::configs,
                                  [](Problem const& p, Config const& c, Arithmetic) {
                                      Geometry const g = geometryOf(p, false);
                                      return isEmpty(g) || spread::misfit(g, c)
                                                 ? 0.
                                                 : spread::estimate(g, c, p.target.cuda->multiprocessors);
                                  },
                                  spread::generate};

} // namespace tw::ops::conv_f16
