// SPDX-License-Identifier: Apache-2.0
// Of FP16 and of FP32.
#include <algorithm>

#include "families/convolution/cuda_conv_depthwise_tile_params.h"
#include "families/convolution/cuda_conv_f16.h"
#include "kernels/cuda/common/generate.h"
#include "kernels/cuda/common/hopper.h"

namespace tw::ops::conv_f16 {

namespace depthwise_rows {
namespace {

constexpr int64_t kMostTaps = 49, kMostStep = 4, kMostSeen = 16;
constexpr int64_t kNarrow = 32; // outputs of a row, up to which threads with one each are tried

Support supports(Problem const& p, Arithmetic a)
{
    TW_SUPPORTS(supportsCommon(p, typeOf(p, a)));
    Geometry const g = geometryOf(p, true);
    if (g.groups != g.c || g.k != g.c)
        return Support::no("takes one filter for each channel");
    if (g.window[1] * g.window[2] > kMostTaps || g.stride[2] > kMostStep || g.dilation[2] > kMostStep)
        return Support::no(
            fmt::format("takes windows of at most {} positions and steps of {} columns", kMostTaps, kMostStep));
    return isWide(p) ? Support::no("counts in 32 bits") : Support::yes();
}

struct Part
{
    int64_t columns, channels; // of a thread: fewer channels, more threads that hide each other's waiting
};

std::vector<Config> configs(Problem const& p, Arithmetic a)
{
    static constexpr Part kHalfParts[] = {{4, 4}, {2, 8}, {4, 8}, {2, 4}, {1, 8}},
                          kFloatParts[] = {{4, 4}, {2, 4}, {1, 4}};
    Geometry const g = geometryOf(p, false);
    std::vector<Config> list;
    for (auto const& [columns, vector] : a == Arithmetic::kHalf ? std::span<Part const>(kHalfParts) : kFloatParts) {
        bool const fits =
            columns <= g.out[2] && (columns - 1) * g.stride[2] + (g.window[2] - 1) * g.dilation[2] < kMostSeen;
        if (columns == 1 ? list.empty() || g.out[2] < kNarrow : fits)
            list.push_back({columns, vector});
    }
    return list;
}

std::string textOf(Problem const& p, Part const& part, bool isHalf)
{
    Geometry const largest = geometryOf(p, true);
    return cuda::include("kernels/cuda/common/matrix.cuh") + epilogueSource(p, isHalf) +
           cuda::constant("R", largest.window[1]) + cuda::constant("S", largest.window[2]) +
           cuda::constant("STRIDE", largest.stride[2]) + cuda::constant("DILATION", largest.dilation[2]) +
           cuda::constant("COLUMNS", part.columns) + cuda::constant("V", part.channels) +
           cuda::flag("RESIDUAL", hasResidual(p)) + cuda::constant("THREADS", kRowThreads) + fewSource(isHalf) +
           cuda::include("families/convolution/cuda_conv_depthwise_f16.cuh");
}

std::unique_ptr<CudaKernels> generate(Problem const& p, Config const& config, Arithmetic arithmetic)
{
    bool const isHalf = arithmetic == Arithmetic::kHalf;
    if (config.size() != 2 || config[0] < 1 || config[0] > 8 || (config[1] != 4 && !(config[1] == 8 && isHalf)))
        return noKernels(unsupported("a config has other numbers"));
    Part const part{config[0], config[1]};
    return depthwiseKernels(textOf(p, part, isHalf), 0,
                            [&node = *p.node, part](CudaLaunch const& launch, RunArgs& args) {
                                Geometry const g = geometryOf(node, args);
                                RowParams a;
                                setImages(a, launch, args, g);
                                return launchRows(a, launch, g, roundUp8(g.c), part.columns, part.channels);
                            });
}

} // namespace
} // namespace depthwise_rows

constinit Algorithm const kDepthwise{pixelFormats, depthwise_rows::supports, depthwise_rows::configs,
                                     [](Problem const& p, Config const&, Arithmetic) { return estimateUs(p, 20); },
                                     depthwise_rows::generate};

} // namespace tw::ops::conv_f16
