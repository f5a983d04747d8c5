// SPDX-License-Identifier: Apache-2.0
#include "families/convolution/cuda_conv_f16.h"
#include "families/convolution/cuda_conv_nd.h"
#include "families/convolution/cuda_deconv_f16.h"
#include "kernels/cuda/conv/mma_2d.h"
#include "ops/convolution/op.h"

namespace tw::ops::deconv_f32 {

namespace {

namespace conv = cuda::conv_2d;
using Geometry = KernelWindowGeometry;
using conv_f16::roundUp8;
using deconv_f16::geometryOf;

constexpr int64_t kMostWindow = 16;
constexpr size_t kMostConfigs = 4, kMostSources = 2;

bool isEmpty(Geometry const& g)
{
    return g.batch * g.in[1] * g.in[2] == 0;
}

// Positions of the window are groups that read the same x.
cuda::ConvShape shapeOf(Geometry const& g)
{
    cuda::ConvShape s;
    s.n = g.batch;
    s.h = s.outH = g.in[1];
    s.w = s.outW = g.in[2];
    s.groups = g.window[1] * g.window[2];
    s.c = g.c * s.groups;
    s.k = roundUp8(g.k) * s.groups;
    return s;
}

char const* unsupportedGeometry(conv::Spec const& spec, Geometry const& g)
{
    if (!deconv_f16::areBeside(g, kMostWindow))
        return "windows of at most 16 x 16 positions lie side by side";
    return isEmpty(g) ? nullptr : conv::unsupported(spec, shapeOf(g));
}

conv::Spec baseOf(Problem const& p, bool tf32)
{
    conv::Spec s;
    s.kind = tf32 ? conv::Kind::kTf32 : conv::Kind::kFloat;
    s.end = conv_f16::exactEpilogueOf(p);
    return s;
}

char const* specOf(Problem const& p, bool tf32, Config const& c, conv::Spec& s)
{
    s = baseOf(p, tf32);
    return setTile(c, s) ? conv::unsupported(s) : "a config has other numbers";
}

class WindowKernels final : public conv_f16::SpecKernels<conv::Spec>
{
public:
    using SpecKernels::SpecKernels;
    Result<std::vector<std::string>> pack(Problem const& problem) const override;
    Result<void> run(CudaLaunch const& launch, RunArgs& args) const override;
};

Result<std::vector<std::string>> WindowKernels::pack(Problem const& p) const
{
    TensorSpec const& w = p.inputs[1];
    int64_t const channels = w.dims[0], filters = roundUp8(w.dims[1]),
                  each = (channels + cuda::kConvStepK - 1) / cuda::kConvStepK * cuda::kConvStepK;
    std::string bytes = deconv_f16::packTransposed(w, filters, each);
    if (spec_.kind == conv::Kind::kTf32)
        conv::roundAllToTf32(bytes);
    return std::vector<std::string>{conv_f16::packBias(p, filters), std::move(bytes)};
}

Result<void> WindowKernels::run(CudaLaunch const& launch, RunArgs& args) const
{
    TensorRef const &x = args.inputs[0], &y = args.outputs[0];
    Geometry const g = geometryOf(node_, x.dims, args.inputs[1].dims, y.dims);
    if (char const* const why = unsupportedGeometry(spec_, g))
        return unsupported(why);
    auto l = conv::launch<conv::FloatArgs>(spec_, shapeOf(g));
    conv::FloatArgs& a = l.args;
    if (!conv::setPixels(a, x.pixelStride(), g.in[1], g.in[2]))
        return unsupported("a row of x has more elements than 32 bits count");
    a.groupX = 0;
    int64_t const pixelY = y.pixelStride();
    a.ldy = pixelY * g.stride[2];
    a.gapY = pixelY * g.out[2] * (g.stride[1] - 1); // out[2] = in[2] stride[2]
    a.groupsAcross = int32_t(g.window[2]);
    a.groupRowY = pixelY * g.out[2];
    a.groupY = pixelY;
    a.groupBias = 0;
    a.x = x.as<float>();
    a.y = y.data;
    a.bias = static_cast<float const*>(launch.packed(0));
    a.filters = static_cast<float const*>(launch.packed(1));
    return launch.withGeometry(0, l.geometry, {&a});
}

} // namespace

template <bool tf32>
Support Beside<tf32>::supports(Problem const& p)
{
    if (!p.cuda || p.cuda->capability < 80)
        return Support::no("needs a GPU of compute capability 8.0 or later");
    TW_SUPPORTS(deconv_f16::supportsTransposed(p));
    TensorSpec const& w = p.inputs[1];
    TW_SUPPORTS(takesOnly(DataType::kFloat, p, 2));
    bool const hasBias = p.inputs.size() > 2 && p.inputs[2].present;
    if (w.dims.rank != 4 || !w.constant || (hasBias && !p.inputs[2].constant))
        return Support::no("takes 2-D windows, constant filters and biases only");
    if (p.node->attrsAs<KernelWindowAttrs>().groups != 1 || w.dims.volume() == 0)
        return Support::no("takes one group, with channels and filters");
    constexpr int64_t kLimit = int64_t(1) << 30;
    Geometry const g = geometryOf(p, true);
    if (g.c >= kLimit || g.k >= kLimit || g.batch * g.in[1] * g.in[2] >= kLimit)
        return Support::no("counts in 32 bits");
    conv::Spec least = baseOf(p, tf32);
    least.vector = 1;
    if (char const* const why = unsupportedGeometry(least, g))
        return Support::no(why);
    return configs(p).empty() ? Support::no("no tile fits") : Support::yes();
}

template <bool tf32>
std::vector<Config> Beside<tf32>::configs(Problem const& p)
{
    Geometry const optimum = geometryOf(p, false), maximum = geometryOf(p, true);
    conv::Spec base = baseOf(p, tf32);
    base.vector = vectorOf(shapeOf(maximum), false, conv::mostVector(base.kind));
    std::vector<Config> list;
    if (isEmpty(optimum))
        return {tileConfigOf(base)};
    for (conv::Spec const& s : conv::candidates(base, shapeOf(optimum), p.cuda->multiprocessors,
                                                p.cuda->capability >= 90, kMostConfigs, kMostSources))
        if (!unsupportedGeometry(s, maximum))
            list.push_back(tileConfigOf(s));
    return list;
}

template <bool tf32>
std::vector<Formats> Beside<tf32>::formats(Problem const& p)
{
    if (p.inputs[0].dims.rank < leastRankOf(Format::kHWC8) || p.inputs[0].constant)
        return {};
    Formats f = linearFormats(p);
    f.inputs[0] = f.outputs[0] = Format::kHWC8;
    return {f};
}

template <bool tf32>
double Beside<tf32>::estimate(Problem const& p, Config const& config)
{
    conv::Spec spec;
    Geometry const g = geometryOf(p, false);
    if (specOf(p, tf32, config, spec) || isEmpty(g) || unsupportedGeometry(spec, g))
        return 0;
    return conv::estimateUs(spec, shapeOf(g), p.cuda->multiprocessors);
}

template <bool tf32>
std::unique_ptr<CudaKernels> Beside<tf32>::generate(Problem const& p, Config const& config)
{
    conv::Spec spec;
    if (char const* const why = specOf(p, tf32, config, spec))
        return noKernels(unsupported(why));
    return std::make_unique<WindowKernels>(p, conv::kKernel, spec);
}

template struct Beside<false>;
template struct Beside<true>;

} // namespace tw::ops::deconv_f32
