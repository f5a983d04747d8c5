// SPDX-License-Identifier: Apache-2.0
#include "families/convolution/cuda_conv_f32.h"

#include <algorithm>

#include "families/convolution/cuda_conv_tiles.h"
#include "families/elementwise/cuda_pointwise.h"
#include "kernels/cuda/conv/mma_f32.h"

namespace tw::ops::conv_f32 {

namespace {

namespace conv = cuda::conv_f32;
using conv_f16::Arithmetic;
using conv_f16::filtersOf;
using conv_f16::Geometry;
using conv_f16::geometryOf;
using conv_f16::kMostNchwChannels;
using conv_f16::shapeOf;

constexpr size_t kMostConfigs = 5, kMostSources = 3;

struct Kind
{
    bool tf32, nchw;
};
Kind kindOf(Arithmetic a, bool nchw)
{
    return {a == Arithmetic::kTf32, nchw};
}

bool isEmpty(Geometry const& g)
{
    return g.batch * g.out[1] * g.out[2] == 0;
}

char const* unsupportedGeometry(conv::Spec const& spec, Geometry const& g)
{
    return isEmpty(g) ? nullptr : conv::unsupported(spec, shapeOf(g));
}

conv::Spec baseOf(Problem const& p, Kind kind)
{
    conv::Spec s;
    s.tf32 = kind.tf32;
    s.nchw = kind.nchw;
    int64_t const groups = p.node->attrsAs<KernelWindowAttrs>().groups;
    s.aligned = groups == 1 || p.inputs[1].dims[0] / groups % 4 == 0;
    s.activation = activationOf(conv_f16::activationOf(*p.node));
    return s;
}

char const* specOf(Problem const& p, Kind kind, Config const& c, conv::Spec& s)
{
    s = baseOf(p, kind);
    return setTile(c, s) ? conv::unsupported(s) : "a config has other numbers";
}

std::vector<Config> configs(Problem const& p, Kind kind)
{
    Geometry const optimum = geometryOf(p, false), maximum = geometryOf(p, true);
    // Copies along a row need to know its width.
    bool const isKnown = p.node->inputs[0]->shape.back().isConst();
    conv::Spec base = baseOf(p, kind);
    base.vector = kind.nchw && !isKnown ? 1 : vectorOf(shapeOf(maximum), kind.nchw, conv::kMostVector);
    std::vector<Config> list;
    auto add = [&](conv::Spec const& s) {
        if (!unsupportedGeometry(s, maximum))
            list.push_back(tileConfigOf(s));
    };
    if (isEmpty(optimum))
        add(base);
    else
        for (conv::Spec const& s : conv::candidates(base, shapeOf(optimum), p.cuda->multiprocessors,
                                                    p.cuda->capability >= 90, kMostConfigs, kMostSources))
            add(s);
    return list;
}

Support supports(Problem const& p, Kind kind)
{
    if (Support const s = conv_f16::supportsCommon(p, DataType::kFloat); !s.ok)
        return s;
    if (p.cuda->capability < 80)
        return Support::no("needs a GPU of compute capability 8.0 or later");
    Geometry const g = geometryOf(p, true);
    if (kind.nchw && (g.c > kMostNchwChannels || g.groups != 1))
        return Support::no("takes one group of at most " + std::to_string(kMostNchwChannels) + " channels");
    if (!kind.nchw && g.groups > 1 && conv_f16::kDepthwise.supports(p, Arithmetic::kFloat).ok)
        return Support::no("channels that stand alone have a kernel of their own");
    if (isEmpty(g))
        return Support::yes();
    conv::Spec least = baseOf(p, kind);
    least.vector = 1;
    if (char const* const why = conv::unsupported(least, shapeOf(g)))
        return Support::no(why);
    return configs(p, kind).empty() ? Support::no("no tile fits") : Support::yes();
}

double estimate(Problem const& p, Kind kind, Config const& c)
{
    conv::Spec spec;
    Geometry const g = geometryOf(p, false);
    if (specOf(p, kind, c, spec) || unsupportedGeometry(spec, g) || isEmpty(g))
        return 0;
    return conv::estimateUs(spec, shapeOf(g), p.cuda->multiprocessors);
}

class ProductKernels final : public conv_f16::SpecKernels<conv::Spec>
{
public:
    using SpecKernels::SpecKernels;
    Result<std::vector<std::string>> pack(Problem const& problem) const override;
    Result<void> run(CudaLaunch const& launch, RunArgs& args) const override;
};

Result<std::vector<std::string>> ProductKernels::pack(Problem const& p) const
{
    Geometry const g = geometryOf(p, true);
    int64_t const filters = filtersOf(g);
    std::string packed =
        conv_f16::packFilters(p.inputs[1], filters, paddedK(shapeOf(g)), conv_f16::placeOfFilter, spec_.nchw);
    if (spec_.tf32)
        conv::roundAllToTf32(packed);
    return std::vector<std::string>{conv_f16::packBias(p, filters), std::move(packed)};
}

Result<void> ProductKernels::run(CudaLaunch const& launch, RunArgs& args) const
{
    TensorRef const& x = args.inputs[0];
    Geometry const g = geometryOf(node_, args);
    if (char const* const why = unsupportedGeometry(spec_, g))
        return unsupported(why);
    conv::Launch l = conv::launch(spec_, shapeOf(g));
    if (!spec_.nchw && !conv::setPixels(l.args, x.pixelStride(), g.in[1], g.in[2]))
        return unsupported("a row of x has more elements than 32 bits count");
    conv_f16::setOutput(l.args, args, launch.packed(0));
    l.args.x = x.as<float>();
    l.args.filters = static_cast<float const*>(launch.packed(1));
    return launch.withGeometry(0, l.geometry, {&l.args});
}

std::unique_ptr<CudaKernels> generate(Problem const& p, Kind kind, Config const& config)
{
    conv::Spec spec;
    if (char const* const why = specOf(p, kind, config, spec))
        return noKernels(unsupported(why));
    return std::make_unique<ProductKernels>(p, conv::kKernel, spec);
}

template <bool nchw>
constexpr conv_f16::Algorithm algorithmOf()
{
    return {nchw ? Format::kLinear : Format::kHWC8,
            [](Problem const& p, Arithmetic a) { return supports(p, kindOf(a, nchw)); },
            [](Problem const& p, Arithmetic a) { return configs(p, kindOf(a, nchw)); },
            [](Problem const& p, Config const& c, Arithmetic a) { return estimate(p, kindOf(a, nchw), c); },
            [](Problem const& p, Config const& c, Arithmetic a) { return generate(p, kindOf(a, nchw), c); }};
}

} // namespace

std::string activationOf(FusedActivation const& activation)
{
    return activationSource("activate", activation.kind, activation.alpha, activation.beta);
}

constinit conv_f16::Algorithm const kProducts = algorithmOf<false>();
constinit conv_f16::Algorithm const kProductsNchw = algorithmOf<true>();

} // namespace tw::ops::conv_f32
