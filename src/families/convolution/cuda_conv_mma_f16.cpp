// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "families/convolution/cuda_conv_f16.h"
#include "kernels/cuda/conv/mma_f16.h"

namespace tw::ops::conv_f16 {

namespace conv_mma {
namespace {

namespace conv = cuda::conv_f16;

// A config's numbers.
enum ConfigField
{
    kTileM,
    kTileN,
    kStages,
    kVector,
    kConfigFields,
};

char const* unsupportedGeometry(conv::Spec const& spec, Geometry const& g)
{
    return g.batch * g.out[1] * g.out[2] == 0 ? nullptr : conv::unsupported(spec, shapeOf(g));
}

char const* specOf(Problem const& p, bool nchw, Config const& c, conv::Spec& s)
{
    if (!isConfig(c, kConfigFields, 0, 256))
        return "a config has other numbers";
    static_cast<cuda::Epilogue&>(s) = epilogueOf(p);
    int64_t const groups = p.node->attrsAs<KernelWindowAttrs>().groups, k = p.inputs[1].dims[0];
    s.aligned = groups == 1 || k / groups % 8 == 0;
    s.nchw = nchw;
    s.tileM = int(c[kTileM]);
    s.tileN = int(c[kTileN]);
    s.stages = int(c[kStages]);
    s.vector = int(c[kVector]);
    return conv::unsupported(s);
}

std::vector<Config> configs(Problem const& p, bool nchw)
{
    struct Tile
    {
        int m, n, stages;
    };
    Geometry const optimum = geometryOf(p, false), maximum = geometryOf(p, true);
    int64_t const groupK = optimum.k / optimum.groups, pixels = optimum.batch * optimum.out[1] * optimum.out[2];
    // Where tiles of 64 pixels leave multiprocessors idle, larger ones would more.
    bool const isSmall = pixels * roundUp8(optimum.k) < int64_t(p.cuda->multiprocessors) * 128 * 64;
    std::vector<Tile> tiles;
    if (groupK <= 32)
        tiles = {{128, 32, 4}};
    else if (groupK <= 64 || isSmall)
        tiles = {{64, 64, 4}, {128, 64, 4}};
    else
        tiles = {{128, 128, 4}, {128, 64, 4}, {64, 64, 4}};
    // With wgmma in the race this one only stands in.
    if (!nchw && optimum.groups == 1 && p.cuda->capability == 90 && optimum.c >= 32)
        tiles.resize(1);
    // Copies along a row need to know its width.
    bool const isKnown = p.node->inputs[0]->shape.back().isConst();
    int const vector = nchw && !isKnown ? 1 : vectorOf(shapeOf(maximum), nchw, conv::kMostVector);
    std::vector<Config> list;
    for (Tile const& t : tiles)
        list.push_back({t.m, t.n, t.stages, vector});
    return list;
}

Support supports(Problem const& p, bool nchw)
{
    if (Support const s = supportsCommon(p); !s.ok)
        return s;
    if (p.cuda->capability < 80)
        return Support::no("needs a GPU of compute capability 8.0 or later");
    Geometry const g = geometryOf(p, true);
    if (nchw && (g.c > kMostNchwChannels || g.groups != 1))
        return Support::no("takes one group of at most " + std::to_string(kMostNchwChannels) + " channels");
    if (!nchw && g.groups > 1 && kDepthwise.supports(p, Arithmetic::kHalf).ok)
        return Support::no("channels that stand alone have a kernel of their own");
    conv::Spec spec;
    char const* why = specOf(p, nchw, configs(p, nchw)[0], spec);
    why = why ? why : unsupportedGeometry(spec, g);
    return why ? Support::no(why) : Support::yes();
}

class MmaKernels final : public SpecKernels<conv::Spec>
{
public:
    using SpecKernels::SpecKernels;
    Result<std::vector<std::string>> pack(Problem const& problem) const override;
    Result<void> run(CudaLaunch const& launch, RunArgs& args) const override;
};

Result<std::vector<std::string>> MmaKernels::pack(Problem const& p) const
{
    Geometry const g = geometryOf(p, true);
    int64_t const filters = filtersOf(g);
    return std::vector<std::string>{packBias(p, filters),
                                    packFilters(p.inputs[1], filters, paddedK(shapeOf(g)), placeOfFilter, spec_.nchw)};
}

Result<void> MmaKernels::run(CudaLaunch const& launch, RunArgs& args) const
{
    TensorRef const& x = args.inputs[0];
    Geometry const g = geometryOf(node_, args);
    if (char const* const why = unsupportedGeometry(spec_, g))
        return unsupported(why);
    conv::Launch l = conv::launch(spec_, shapeOf(g));
    if (!spec_.nchw) {
        l.args.columnX = x.pixelStride();
        l.args.rowX = l.args.columnX * g.in[2];
        l.args.imageX = l.args.rowX * g.in[1];
    }
    setOutput(l.args, args, launch.packed(0));
    l.args.x = x.data;
    l.args.filters = launch.packed(1);
    return launch.withGeometry(0, l.geometry, {&l.args});
}

std::unique_ptr<CudaKernels> generate(Problem const& p, Config const& config, bool nchw)
{
    conv::Spec spec;
    if (char const* const why = specOf(p, nchw, config, spec))
        return noKernels(unsupported(why));
    return std::make_unique<MmaKernels>(p, conv::kKernel, spec);
}

// Copies of one element are slow.
double estimate(Problem const& p, Config const& config, Arithmetic)
{
    return estimateUs(p, config.size() == kConfigFields && config[kVector] > 1 ? 150 : 30);
}

template <bool nchw>
constexpr Algorithm algorithmOf()
{
    return {nchw ? Format::kLinear : Format::kHWC8, [](Problem const& p, Arithmetic) { return supports(p, nchw); },
            [](Problem const& p, Arithmetic) { return configs(p, nchw); }, estimate,
            [](Problem const& p, Config const& c, Arithmetic) { return generate(p, c, nchw); }};
}

} // namespace
} // namespace conv_mma

constinit Algorithm const kMma = conv_mma::algorithmOf<false>();
constinit Algorithm const kMmaNchw = conv_mma::algorithmOf<true>();

} // namespace tw::ops::conv_f16
