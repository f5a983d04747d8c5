// SPDX-License-Identifier: Apache-2.0
// Convolutions over two axes to few filters by wide windows, FP16: the elements of a window's row are columns of a product.
#include <algorithm>
#include <cstring>
#include <utility>

#include "families/convolution/cuda_conv_f16.h"
#include "families/convolution/cuda_conv_patch_params.h"
#include "kernels/cuda/common/generate.h"
#include "kernels/cuda/common/tensor_map.h"
#include "ops/convolution/op.h"

namespace tw::ops::conv_f16 {

namespace spread {
namespace {

using cuda::ceilDiv;

constexpr int64_t kMostShared = 112 * 1024; // so that two blocks fit a multiprocessor
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
int64_t unitsOf(Geometry const& g)
{
    return ceilDiv(g.c, 8);
}
int64_t passesOf(Geometry const& g, Config const& c)
{
    return ceilDiv(unitsOf(g), c[kUnits]);
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
    return sharedBytes(g, c) > kMostShared ? "the tile is too large" : nullptr;
}

// Clocks: products at the rate of mma.sync, the tile's bytes from L2, and waiting.
double estimate(Geometry const& g, Config const& c, int multiprocessors)
{
    constexpr double kClocksPerUs = 1900, kStep = 24, kProduct = 3.2, kBytes = 40, kPass = 900, kBlock = 1500,
                     kStart = 3500;
    double const passes = double(passesOf(g, c)), steps = double(stepsOf(g, c)) * passes,
                 products = double(c[kRows] * c[kBlocks]) * steps * kProduct * double(columnsOf(g)),
                 bytes = passes * double((c[kRows] + g.window[1] - 1) * c[kBlocks] * 16 * c[kUnits] * 16) / kBytes;
    int64_t const blocks = tilesOf(g, c), together = std::clamp<int64_t>(2 * kMostShared / sharedBytes(g, c), 1, 4);
    double const each = double(ceilDiv(blocks, multiprocessors)),
                 rounds = double(ceilDiv(blocks, multiprocessors * together));
    return (kStart + each * (products + bytes) + rounds * (steps * kStep + passes * kPass + kBlock)) / kClocksPerUs;
}

std::vector<Config> configs(Problem const& p, Arithmetic)
{
    Geometry const g = geometryOf(p, false), largest = geometryOf(p, true);
    if (isEmpty(g))
        return {{4, 2, 1}};
    std::vector<std::pair<double, Config>> all;
    for (int64_t const rows : {8, 4, 2})
        for (int64_t const blocks : {4, 3, 2, 1})
            for (int64_t const units : {8, 6, 4, 3, 2, 1}) {
                Config const c{rows, blocks, units};
                bool const hasFew = units < unitsOf(g) && units < 4; // passes for so little
                if (units <= unitsOf(g) && !hasFew && !misfit(largest, c))
                    all.emplace_back(estimate(g, c, p.target.cuda->multiprocessors), c);
            }
    std::ranges::stable_sort(all, {}, [](auto const& a) { return a.first; });
    std::vector<Config> list;
    for (auto const& a : all)
        if (list.size() < kMostConfigs)
            list.push_back(a.second);
    return list;
}

Support supports(Problem const& p, Arithmetic a)
{
    TW_SUPPORTS(needsSm80(p));
    TensorSpec const &x = p.inputs[0], &w = p.inputs[1];
    DataType const type = typeOf(p, a);
    if (w.dims.rank != 4 || p.node->attrsAs<convolution::Attrs>().kind() != WindowKind::kConvolution)
        return Support::no("takes windows over two axes");
    if (x.type != type || w.type != type || p.outputs[0].type != type)
        return Support::no(std::string("takes ") + nameOf(type) + " only");
    bool const hasBias = p.inputs.size() > 2 && p.inputs[2].present;
    if (!w.constant || (hasBias && !p.inputs[2].constant))
        return Support::no("takes constant filters and biases only");
    if (w.dims.volume() == 0)
        return Support::no("needs channels and filters");
    Geometry const g = geometryOf(p, true);
    if (g.groups != 1 || g.k > kMostFilters)
        return Support::no(fmt::format("takes one group of at most {} filters", kMostFilters));
    if (g.window[2] < kLeastWindow || std::max(g.window[1], g.window[2]) > kMostWindow)
        return Support::no(fmt::format("takes windows of {} to {} along a row", kLeastWindow, kMostWindow));
    constexpr int64_t kLimit = int64_t(1) << 24;
    for (int i = 1; i < 3; ++i) {
        if (g.stride[i] != 1 || (g.dilation[i] != 1 && g.window[i] > 1))
            return Support::no("takes windows without strides and dilations");
        if (std::max({g.in[i], g.out[i], std::abs(g.before[i])}) >= kLimit)
            return Support::no("takes images of less than 2^24 along each axis");
    }
    if (g.c >= kLimit || tilesOf(g, {2, 1, 1}) >= INT32_MAX)
        return Support::no("counts in 32 bits");
    return configs(p, a).empty() ? Support::no("no tile fits") : Support::yes();
}

// As mma.sync takes its second factor: [pass, step, 8 columns, lane, item of the step] words of two channels; column n is
// element n / filters of the window's row and filter n % filters; zeros where there is no such column, channel or item.
std::string packFragments(TensorSpec const& w, Geometry const& g, Config const& c)
{
    int64_t const passes = passesOf(g, c), steps = stepsOf(g, c), columns = columnsOf(g);
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
    std::string const text =
        cuda::include("kernels/cuda/common/matrix.cuh") + epilogueSource(p, true) + constant("WARPS", c[kRows]) +
        constant("BLOCKS_W", c[kBlocks]) + constant("FILTERS", largest.k) + constant("KH", largest.window[1]) +
        constant("KW", largest.window[2]) + constant("UNITS", c[kUnits]) + constant("PASSES", passesOf(largest, c)) +
        constant("TAIL", largest.c - (unitsOf(largest) - 1) * 8) + cuda::flag("RESIDUAL", hasResidual(p)) +
        cuda::include("families/convolution/cuda_conv_spread.cuh");
    auto const run = [&node = *p.node, c](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        Geometry const g = geometryOf(node, args);
        if (isEmpty(g))
            return {};
        PatchParams a;
        setOutput(a, args, launch.packed(0));
        a.m = int32_t(g.out[2]);
        a.n = int32_t(roundUp8(g.k));
        a.x = args.inputs[0].data;
        a.filters = launch.packed(1);
        a.pixelX = args.inputs[0].pixelStride();
        a.units = int32_t(unitsOf(g));
        a.d = a.outD = 1;
        a.h = int32_t(g.in[1]);
        a.w = int32_t(g.in[2]);
        a.outH = int32_t(g.out[1]);
        a.padH = int32_t(g.before[1]);
        a.padW = int32_t(g.before[2]);
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
