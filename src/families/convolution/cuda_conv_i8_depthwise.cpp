// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/round.h"
#include "families/convolution/cuda_conv_depthwise_tile_params.h"
#include "families/convolution/cuda_conv_f16.h"
#include "families/elementwise/cuda_epilogue.h"

namespace tw::ops::conv_f16 {

namespace depthwise_i8 {
namespace {

constexpr int64_t kMostWide = 8, kMostTaps = 64, kMostStep = 4, kMostSeen = 16;
constexpr int64_t kUnit = 16; // channels that pixels are rounded up to

// A config's numbers.
struct Part
{
    int64_t columns, channels; // of a thread
};
constexpr Part kParts[] = {{4, 8}, {2, 16}, {4, 4}, {2, 8}, {4, 16}, {1, 16}, {1, 4}};

bool fits(Geometry const& g, Part const& part)
{
    return (part.columns - 1) * g.stride[2] + (g.window[2] - 1) * g.dilation[2] < kMostSeen;
}

char const* misfit(Geometry const& g, Config const& c)
{
    if (!isConfig(c, 2, 1, 16) || (c[0] != 1 && c[0] != 2 && c[0] != 4) || (c[1] != 4 && c[1] != 8 && c[1] != 16))
        return "a config has other numbers";
    return fits(g, {c[0], c[1]}) ? nullptr : "a thread sees too many columns";
}

CudaSource sourceOf(Problem const& p, Part const& part)
{
    Geometry const g = geometryOf(p, true);
    return wholeSource("depthwise",
                       cuda::include("kernels/cuda/common/matrix.cuh") + cuda::integerEndSource(integerEndOf(p)) +
                           cuda::constant("R", g.window[1]) + cuda::constant("S", g.window[2]) +
                           cuda::constant("STRIDE", g.stride[2]) + cuda::constant("DILATION", g.dilation[2]) +
                           cuda::constant("COLUMNS", part.columns) + cuda::constant("V", part.channels) +
                           cuda::constant("THREADS", kRowThreads) + cuda::flag("ALIGNED", true) +
                           cuda::include("families/convolution/cuda_conv_i8_depthwise.cuh"),
                       0);
}

// See DepthwiseParams::filters.
std::string packFilters(TensorSpec const& w)
{
    int64_t const channels = w.dims[0], all = roundUp(channels, kUnit), rows = w.dims[2], taps = w.dims[3],
                  groups = (taps + 3) / 4;
    std::string packed(size_t(rows * groups * all * 4), '\0');
    for (int64_t c = 0; c < channels; ++c)
        for (int64_t r = 0; r < rows; ++r)
            for (int64_t s = 0; s < taps; ++s) {
                int64_t const group = s / 4, of = std::min<int64_t>(taps - group * 4, 4);
                int64_t const byte = of == 1 ? c % 4 : of == 2 ? c % 2 * 2 + s % 4 : s % 4;
                packed[size_t(((r * groups + group) * all + c) * 4 + byte)] =
                    w.constant->as<char>()[(c * rows + r) * taps + s];
            }
    return packed;
}

Result<void> run(ir::Node const& node, Part const& part, CudaLaunch const& launch, RunArgs& args)
{
    Geometry const g = geometryOf(node, args);
    conv_i8::DepthwiseParams a;
    setImages(a, launch, args, g);
    a.channels = int32_t(g.c);
    return launchRows(a, launch, g, roundUp(g.c, kUnit), part.columns, part.channels);
}

Support supports(Problem const& p, Arithmetic)
{
    TW_SUPPORTS(supportsInt8(p));
    Geometry const g = geometryOf(p, true);
    if (g.groups != g.c || g.k != g.c)
        return Support::no("takes one filter for each channel");
    if (g.window[2] > kMostWide || g.window[1] * g.window[2] > kMostTaps || g.stride[2] > kMostStep ||
        g.dilation[2] > kMostStep || !fits(g, {1, 4}))
        return Support::no("takes windows of at most 8 columns and 64 positions, and steps of 4 columns");
    return Support::yes();
}

std::vector<Config> configs(Problem const& p, Arithmetic)
{
    Geometry const g = geometryOf(p, false), largest = geometryOf(p, true);
    std::vector<Config> list;
    for (Part const& part : kParts)
        if (fits(largest, part) && (part.columns == 1 || part.columns <= g.out[2]))
            list.push_back({part.columns, part.channels});
    return list;
}

std::unique_ptr<CudaKernels> generate(Problem const& p, Config const& config, Arithmetic)
{
    if (char const* const why = misfit(geometryOf(p, true), config))
        return noKernels(unsupported(why));
    Part const part{config[0], config[1]};
    return kernelsOf(
        sourceOf(p, part),
        [&node = *p.node, part](CudaLaunch const& launch, RunArgs& args) { return run(node, part, launch, args); }, {},
        [](Problem const& p) { return std::vector<std::string>{packFilters(p.inputs[1])}; }, {1});
}

} // namespace
} // namespace depthwise_i8

constinit Algorithm const kDepthwiseInt8{pixelFormats, depthwise_i8::supports, depthwise_i8::configs,
                                         [](Problem const& p, Config const&, Arithmetic) { return estimateUs(p, 15); },
                                         depthwise_i8::generate};

} // namespace tw::ops::conv_f16
