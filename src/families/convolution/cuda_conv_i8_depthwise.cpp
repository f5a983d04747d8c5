// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/round.h"
#include "families/convolution/cuda_conv_depthwise_tile_params.h"
#include "families/convolution/cuda_conv_i8.h"
#include "families/elementwise/cuda_epilogue.h"
#include "ops/convolution/op.h"

namespace tw::ops::conv_i8 {

namespace {

using conv_f16::geometryOf;
using Geometry = conv_f16::Geometry;

constexpr int kThreads = 128;
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
    auto const& attrs = p.node->attrsAs<convolution::Attrs>();
    return wholeSource("depthwise",
                       cuda::include("kernels/cuda/common/matrix.cuh") +
                           cuda::integerEndSource(integerEndOf(p, attrs.epilogue)) + cuda::constant("R", g.window[1]) +
                           cuda::constant("S", g.window[2]) + cuda::constant("STRIDE", g.stride[2]) +
                           cuda::constant("DILATION", g.dilation[2]) + cuda::constant("COLUMNS", part.columns) +
                           cuda::constant("V", part.channels) + cuda::constant("THREADS", kThreads) +
                           cuda::flag("ALIGNED", true) +
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

class DepthwiseKernels final : public Kernels
{
public:
    DepthwiseKernels(Problem const& p, Part const& part) : Kernels(p, sourceOf(p, part)), part_(part) {}
    Result<std::vector<std::string>> pack(Problem const& p) const override
    {
        return std::vector<std::string>{packFilters(p.inputs[1])};
    }
    Result<void> run(CudaLaunch const& launch, RunArgs& args) const override;

private:
    Part const part_;
};

Result<void> DepthwiseKernels::run(CudaLaunch const& launch, RunArgs& args) const
{
    Geometry const g = geometryOf(node_, args);
    TensorRef const &x = args.inputs[0], &y = args.outputs[0];
    DepthwiseParams a;
    a.x = x.as<int8_t>();
    a.filters = static_cast<uint32_t const*>(launch.packed(0));
    a.y = y.data;
    a.end = integerEndArgs(args);
    a.pixelX = x.pixelStride();
    a.pixelY = y.pixelStride();
    if (a.end.residual)
        a.pixelResidual = args.inputs[Epilogue::kResidual].pixelStride();
    int64_t const vectors = roundUp(g.c, kUnit) / part_.channels, wide = (g.out[2] + part_.columns - 1) / part_.columns;
    a.vectors = cuda::divBy(vectors);
    a.wide = cuda::divBy(wide);
    a.tall = cuda::divBy(g.out[1]);
    a.count = uint64_t(g.batch * g.out[1] * wide * vectors);
    a.channels = int32_t(g.c);
    a.h = int32_t(g.in[1]);
    a.w = int32_t(g.in[2]);
    a.outW = int32_t(g.out[2]);
    a.padH = int32_t(g.before[1]);
    a.padW = int32_t(g.before[2]);
    a.strideH = int32_t(g.stride[1]);
    a.dilationH = int32_t(g.dilation[1]);
    return launch(0, blocksFor(int64_t(a.count), kThreads), kThreads, a);
}

} // namespace

Support Depthwise::supports(Problem const& p)
{
    TW_SUPPORTS(supportsCommon(p));
    Geometry const g = geometryOf(p, true);
    if (g.groups != g.c || g.k != g.c)
        return Support::no("takes one filter for each channel");
    if (g.window[2] > kMostWide || g.window[1] * g.window[2] > kMostTaps || g.stride[2] > kMostStep ||
        g.dilation[2] > kMostStep || !fits(g, {1, 4}))
        return Support::no("takes windows of at most 8 columns and 64 positions, and steps of 4 columns");
    return Support::yes();
}

std::vector<Config> Depthwise::configs(Problem const& p)
{
    Geometry const g = geometryOf(p, false), largest = geometryOf(p, true);
    std::vector<Config> list;
    for (Part const& part : kParts)
        if (fits(largest, part) && (part.columns == 1 || part.columns <= g.out[2]))
            list.push_back({part.columns, part.channels});
    return list;
}

double Depthwise::estimate(Problem const& p, Config const&)
{
    return conv_f16::estimateUs(p, 15);
}

std::unique_ptr<CudaKernels> Depthwise::generate(Problem const& p, Config const& config)
{
    if (char const* const why = misfit(geometryOf(p, true), config))
        return noKernels(unsupported(why));
    return std::make_unique<DepthwiseKernels>(p, Part{config[0], config[1]});
}

} // namespace tw::ops::conv_i8
