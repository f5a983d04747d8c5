// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <numeric>

#include "families/convolution/cuda_conv_f16.h"
#include "kernels/cuda/conv/mma_2d.h"
#include "kernels/cuda/conv/mma_nd.h"
#include "ops/convolution/op.h"

namespace tw::ops::conv_f16 {

int64_t elementOf(Geometry const& g, WindowKind kind, int axis, int64_t phase, int64_t tap)
{
    int64_t const stride = g.stride[axis], dilation = g.dilation[axis], window = g.window[axis];
    if (kind != WindowKind::kDeconvolution)
        return tap < window ? tap : -1;
    // y[o] takes x[i] by element r where o + before = i stride + r dilation: every (stride / gcd)-th r, from one below
    // that on.
    int64_t const period = stride / std::gcd(stride, dilation);
    for (int64_t r = 0; r < std::min(period, window); ++r)
        if ((phase + g.before[axis] - r * dilation) % stride == 0)
            return r + tap * period < window ? r + tap * period : -1;
    return -1;
}

cuda::conv_nd::Axis axisOf(Geometry const& g, WindowKind kind, int i)
{
    cuda::conv_nd::Axis a;
    a.in = int32_t(g.in[i]);
    a.out = int32_t(g.out[i]);
    if (kind != WindowKind::kDeconvolution) {
        a.stride = int32_t(g.stride[i]);
        a.step = int32_t(g.dilation[i]);
        a.taps = a.count[0] = int32_t(g.window[i]);
        a.begin[0] = int32_t(-g.before[i]);
        return a;
    }
    int64_t const common = std::gcd(g.stride[i], g.dilation[i]), period = g.stride[i] / common;
    a.phases = int32_t(g.stride[i]);
    a.step = int32_t(-g.dilation[i] / common);
    a.taps = int32_t((g.window[i] + period - 1) / period);
    for (int p = 0; p < a.phases && p < cuda::conv_nd::kMostPhases; ++p) {
        int64_t const first = elementOf(g, kind, i, p, 0);
        a.count[p] = first < 0 ? 0 : int32_t((g.window[i] - first + period - 1) / period);
        a.begin[p] = first < 0 ? 0 : int32_t((p + g.before[i] - first * g.dilation[i]) / g.stride[i]);
    }
    return a;
}

namespace nd {
namespace {

namespace conv = cuda::conv_nd;

constexpr size_t kMostConfigs = 4;
// Convolutions of i8 with so many channels are left to wgmma, where that exists: mma.sync keeps the tensor cores less busy
// (of 290 timed in ResNet-50 and YOLOv8n it won none), and each kernel not compiled makes builds shorter.
constexpr int64_t kWgmmaChannels = 64;

WindowKind kindOf(Problem const& p)
{
    return p.node->attrsAs<convolution::Attrs>().kind();
}

conv::Shape shapeOf(Geometry const& g, WindowKind kind)
{
    conv::Shape s;
    s.n = g.batch;
    s.c = g.c;
    s.k = filtersOf(g);
    s.groups = g.groups;
    for (int i = 0; i < 3; ++i)
        s.axes[i] = axisOf(g, kind, i);
    return s;
}

conv::Spec baseOf(Problem const& p, Arithmetic a)
{
    Geometry const g = geometryOf(p, true);
    conv::Spec s;
    s.integers = a == Arithmetic::kInt8;
    s.half = a == Arithmetic::kHalf;
    s.tf32x3 = a == Arithmetic::kFloat;
    // Pixels of i8 are whole 16 bytes, but in kDHWC8.
    s.vector = s.integers ? (p.inputs[1].dims.rank == 5 ? 8 : 16) : s.half ? 8 : 4;
    while (g.groups > 1 && g.c / g.groups % s.vector != 0)
        s.vector /= 2;
    s.aligned = filtersOf(g) / g.groups % 4 == 0;
    if (s.integers)
        s.end = integerEndOf(p);
    else
        s.epilogue = exactEpilogueOf(p);
    return s;
}

char const* specOf(Problem const& p, Arithmetic a, Config const& c, conv::Spec& s)
{
    s = baseOf(p, a);
    int const vector = s.vector;
    if (!setTile(c, s))
        return "a config has other numbers";
    return s.vector == vector ? conv::unsupported(s) : "a config is for other channels";
}

char const* unsupportedGeometry(conv::Spec const& spec, Geometry const& g, WindowKind kind)
{
    return isEmpty(g) ? nullptr : conv::unsupported(spec, shapeOf(g, kind));
}

// Deconvolution filters are [c, k / groups, window...], convolution filters [k, c / groups, window...].
std::string packFilters(Problem const& p, conv::Spec const& spec, WindowKind kind)
{
    Geometry const g = geometryOf(p, true);
    conv::Shape const s = shapeOf(g, kind);
    TensorSpec const& w = p.inputs[1];
    int64_t const each = conv::paddedK(spec, s), inner = conv::innerOf(spec, s), bytes = sizeOf(w.type);
    int64_t const channels = g.c / g.groups, filters = g.k / g.groups, packedFilters = s.k / g.groups;
    std::string packed(size_t(s.phases() * s.k * each * bytes), '\0');
    int64_t row = 0; // of packed filters: phase, group, filter
    for (int64_t phase = 0; phase < s.phases(); ++phase) {
        int64_t const at[3] = {phase / (s.axes[1].phases * s.axes[2].phases),
                               phase / s.axes[2].phases % s.axes[1].phases, phase % s.axes[2].phases};
        for (int64_t group = 0; group < g.groups; ++group, row += packedFilters)
            for (int64_t tap = 0; tap < s.taps(); ++tap) {
                int64_t const taps[3] = {tap / (s.axes[1].taps * s.axes[2].taps), tap / s.axes[2].taps % s.axes[1].taps,
                                         tap % s.axes[2].taps};
                int64_t element = 0;
                bool isThere = true;
                for (int i = 0; i < 3; ++i) {
                    int64_t const r = elementOf(g, kind, i, at[i], taps[i]);
                    isThere = isThere && r >= 0;
                    element = element * g.window[i] + r;
                }
                for (int64_t k = 0; isThere && k < filters; ++k)
                    for (int64_t c = 0; c < channels; ++c) {
                        int64_t const filter = kind == WindowKind::kDeconvolution
                                                   ? (group * channels + c) * filters + k
                                                   : (group * filters + k) * channels + c;
                        int64_t const from = filter * g.window[0] * g.window[1] * g.window[2] + element;
                        std::memcpy(&packed[size_t(((row + k) * each + tap * inner + c) * bytes)],
                                    static_cast<char const*>(w.constant->data()) + from * bytes, size_t(bytes));
                    }
            }
    }
    if (isFullFloat(w.type) && !spec.tf32x3)
        cuda::conv_2d::roundAllToTf32(packed);
    return packed;
}

Result<void> run(ir::Node const& node, conv::Spec const& spec, Geometry const& packed, CudaLaunch const& launch,
                 RunArgs& args)
{
    TensorRef const &x = args.inputs[0], &y = args.outputs[0];
    WindowKind const kind = node.attrsAs<convolution::Attrs>().kind();
    Geometry const g = geometryOf(node, args);
    // Which taps a phase has depends on what is cut off before.
    if (kind == WindowKind::kDeconvolution && !std::equal(g.before, g.before + 3, packed.before))
        return unsupported("padding that differs from that of the maximum shapes");
    if (char const* const why = unsupportedGeometry(spec, g, kind))
        return unsupported(why);
    conv::Launch l = conv::launch(spec, shapeOf(g, kind), x.pixelStride(), y.pixelStride());
    conv::Args& a = l.args;
    a.x = x.data;
    a.y = y.data;
    a.filters = launch.packed(0);
    if (args.inputs.size() > Epilogue::kResidual && args.inputs[Epilogue::kResidual].data) {
        a.residual = args.inputs[Epilogue::kResidual].data;
        a.pixelResidual = args.inputs[Epilogue::kResidual].pixelStride();
    }
    if (spec.integers) {
        conv::IntegerArgs b{a, integerEndArgs(args), int32_t(g.k)};
        return launch.withGeometry(0, l.geometry, {&b});
    }
    a.bias = static_cast<float const*>(launch.packed(1));
    return launch.withGeometry(0, l.geometry, {&a});
}

std::vector<Config> configs(Problem const& p, Arithmetic a)
{
    WindowKind const kind = kindOf(p);
    Geometry const optimum = geometryOf(p, false), maximum = geometryOf(p, true);
    conv::Spec const base = baseOf(p, a);
    if (isEmpty(optimum))
        return {tileConfigOf(base)};
    std::vector<Config> list;
    for (conv::Spec const& s : conv::candidates(base, shapeOf(optimum, kind), p.target.cuda->multiprocessors,
                                                p.target.cuda->capability >= 90, kMostConfigs))
        if (!unsupportedGeometry(s, maximum, kind))
            list.push_back(tileConfigOf(s));
    return list;
}

Support supports(Problem const& p, Arithmetic a)
{
    WindowKind const kind = kindOf(p);
    TW_SUPPORTS(needsSm80(p));
    bool const integers = a == Arithmetic::kInt8;
    DataType const type = typeOf(p, a);
    TensorSpec const &x = p.inputs[0], &w = p.inputs[1];
    if (x.type != type || w.type != type || (!integers && p.outputs[0].type != type))
        return Support::no(std::string("takes ") + nameOf(type) + " only");
    bool const hasBias = p.inputs.size() > 2 && p.inputs[2].present;
    if (!w.constant || (!integers && hasBias && !p.inputs[2].constant))
        return Support::no("takes constant filters and biases only");
    if (w.dims.volume() == 0)
        return Support::no("needs channels and filters");
    if (!integers && kind == WindowKind::kConvolution && w.dims.rank == 4)
        return Support::no("leaves 2-D windows to kernels of their own");
    constexpr int64_t kLimit = int64_t(1) << 24;
    Geometry const g = geometryOf(p, true);
    if (integers && p.target.cuda->capability == 90 && kind == WindowKind::kConvolution && g.groups == 1 &&
        w.dims[1] >= kWgmmaChannels && kWgmma.supports(p, Arithmetic::kInt8).ok)
        return Support::no(fmt::format("leaves {} channels and more to wgmma", kWgmmaChannels));
    if (kind == WindowKind::kDeconvolution && isFullFloat(p.inputs[0].type) && areBeside(g, 16))
        return Support::no("leaves windows side by side to kernels of their own");
    for (int i = 0; i < 3; ++i)
        if (std::max({g.window[i], g.stride[i], g.dilation[i], std::abs(g.before[i]), g.in[i], g.out[i]}) >= kLimit ||
            (g.window[i] - 1) * g.dilation[i] >= kLimit)
            return Support::no("windows and images of less than 2^24 along each axis");
    if (kind == WindowKind::kDeconvolution && std::max({g.stride[0], g.stride[1], g.stride[2]}) > conv::kMostPhases)
        return Support::no(fmt::format("takes strides up to {}", conv::kMostPhases));
    if (char const* const why = unsupportedGeometry(baseOf(p, a), g, kind))
        return Support::no(why);
    return configs(p, a).empty() ? Support::no("no tile fits") : Support::yes();
}

std::vector<Formats> formats(Problem const& p)
{
    int const rank = p.inputs[0].dims.rank;
    bool const isVolume = p.inputs[1].dims.rank == 5;
    auto const formatOf = [&](TensorSpec const& t) { return isVolume ? Format::kDHWC8 : pixelVectorsOf(t.type); };
    if (rank < leastRankOf(formatOf(p.inputs[0])) || p.inputs[0].constant)
        return {};
    Formats f = linearFormats(p);
    f.inputs[0] = formatOf(p.inputs[0]);
    f.outputs[0] = formatOf(p.outputs[0]);
    if (hasResidual(p))
        f.inputs[3] = formatOf(p.inputs[3]);
    return {f};
}

double estimate(Problem const& p, Config const& config, Arithmetic a)
{
    WindowKind const kind = kindOf(p);
    conv::Spec spec;
    Geometry const g = geometryOf(p, false);
    if (specOf(p, a, config, spec) || isEmpty(g) || unsupportedGeometry(spec, g, kind))
        return 0;
    return conv::estimateUs(spec, shapeOf(g, kind), p.target.cuda->multiprocessors);
}

std::unique_ptr<CudaKernels> generate(Problem const& p, Config const& config, Arithmetic a)
{
    conv::Spec spec;
    if (char const* const why = specOf(p, a, config, spec))
        return noKernels(unsupported(why));
    auto const pack = [spec](Problem const& p) {
        std::vector<std::string> parts{packFilters(p, spec, kindOf(p))};
        if (!spec.integers)
            parts.push_back(packBias(p, filtersOf(geometryOf(p, true))));
        return parts;
    };
    return kernelsOf(
        wholeSource(conv::kKernel, spec),
        [&node = *p.node, spec, packed = geometryOf(p, true)](CudaLaunch const& launch, RunArgs& args) {
            return run(node, spec, packed, launch, args);
        },
        {}, pack, spec.integers ? std::vector<size_t>{1} : std::vector<size_t>{1, 2});
}

} // namespace
} // namespace nd

constinit Algorithm const kNd{nd::formats, nd::supports, nd::configs, nd::estimate, nd::generate};

} // namespace tw::ops::conv_f16
