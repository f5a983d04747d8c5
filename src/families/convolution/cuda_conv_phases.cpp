// SPDX-License-Identifier: Apache-2.0
// Transposed convolutions by kernels/cuda/gemm/wgmma.h: outputs that are a stride apart read the same taps, as a convolution
// of stride 1, and each such phase is a batch of one launch. All phases read x from one im2col map, whose pixels are those
// that the foremost taps of all phases begin with.
#include <algorithm>

#include "families/convolution/cuda_conv_f16.h"
#include "ops/convolution/op.h"

namespace tw::ops::conv_f16 {

namespace phases {
namespace {

namespace gemm = cuda::gemm_f16;
using Axis = cuda::conv_nd::Axis;

constexpr size_t kMostConfigs = 4;
constexpr int64_t kLeastChannels = 16;

// One axis of at most kMostPhases phases: where the foremost tap of all phases is, from the position on, and how far the first tap of each is behind it.
struct PhasedAxis : Axis
{
    int64_t foremost = 0, farthest = 0; // the last tap of all, behind the foremost
    cuda::gemm_f16::PhaseAxis phase;

    PhasedAxis(Geometry const& g, int i) : Axis(axisOf(g, WindowKind::kDeconvolution, i))
    {
        auto firstOf = [&](int p) { return int64_t(begin[p]) + int64_t(count[p] - 1) * step; };
        foremost = firstOf(0);
        for (int p = 1; p < phases; ++p)
            foremost = std::min(foremost, firstOf(p));
        phase.phases = phases;
        phase.out = out;
        for (int p = 0; p < phases; ++p) {
            phase.shift[p] = int32_t(firstOf(p) - foremost);
            phase.taps[p] = count[p];
            farthest = std::max(farthest, begin[p] - foremost);
        }
    }
    int leastTaps() const { return *std::min_element(count, count + phases); } // of a phase
};

struct Axes
{
    PhasedAxis h, w;
    explicit Axes(Geometry const& g) : h(g, 1), w(g, 2) {}
    int64_t phases() const { return int64_t(h.phases) * w.phases; }
    int64_t taps() const { return int64_t(h.taps) * w.taps; } // of the phase that has most
};

gemm::Shape shapeOf(Geometry const& g, Axes const& axes)
{
    gemm::Image i;
    i.n = g.batch;
    i.h = g.in[1];
    i.w = g.in[2];
    i.c = roundUp8(g.c);
    i.r = axes.h.taps;
    i.s = axes.w.taps;
    i.outH = axes.h.positions();
    i.outW = axes.w.positions();
    i.padH = int(-axes.h.foremost);
    i.padW = int(-axes.w.foremost);
    i.dilationH = -axes.h.step;
    i.dilationW = -axes.w.step;
    gemm::Shape s = gemm::imageShape(i, roundUp8(g.k));
    s.batch = axes.phases();
    s.ldy = roundUp8(g.k);
    return s;
}

char const* unsupportedGeometry(gemm::Spec const& spec, Geometry const& g)
{
    if (std::max(g.stride[1], g.stride[2]) > gemm::kMostPhases)
        return "takes strides up to 16";
    if (isEmpty(g))
        return nullptr; // nothing is launched
    constexpr int64_t kMost = 127, kLimit = int64_t(1) << 24;
    for (int i = 1; i < 3; ++i)
        if (std::max({g.window[i], g.stride[i], g.dilation[i], std::abs(g.before[i]), g.in[i], g.out[i]}) >= kLimit ||
            g.window[i] * g.dilation[i] >= kLimit)
            return "windows and images of less than 2^24 along each axis";
    Axes const axes(g);
    for (PhasedAxis const* a : {&axes.h, &axes.w}) {
        if (a->leastTaps() == 0)
            return "outputs that nothing reaches are for other kernels";
        // The corners of the box of positions are numbers of 8 bits, and so is how far taps are from there.
        int64_t const upper = a->positions() - 1 + a->foremost - (a->in - 1);
        if (a->foremost < -kMost || a->foremost > kMost || upper < -kMost - 1 || upper > kMost || a->farthest > kMost)
            return "TMA's padding and taps end at 127";
    }
    if (spec.split > axes.h.leastTaps() * axes.w.leastTaps() * ((roundUp8(g.c) + spec.stepK() - 1) / spec.stepK()))
        return "k of a phase has fewer steps than the blocks that would share them";
    return gemm::unsupported(spec, shapeOf(g, axes));
}

gemm::Spec baseOf(Problem const& p)
{
    gemm::Spec s;
    static_cast<cuda::Epilogue&>(s) = epilogueOf(p);
    s.image = s.phased = true;
    return s;
}

Config configOf(gemm::Spec const& s)
{
    return {s.tileP, s.tileQ, s.stages, s.groups, s.split};
}

char const* specOf(Problem const& p, Config const& c, gemm::Spec& s)
{
    s = baseOf(p);
    if (!isConfig(c, configOf(s).size(), 0, 256))
        return "a config has other numbers";
    readConfig(c, 0, s.tileP, s.tileQ, s.stages, s.groups, s.split);
    return gemm::unsupported(s);
}

std::vector<Config> configs(Problem const& p, Arithmetic)
{
    Geometry const optimum = geometryOf(p, false), maximum = geometryOf(p, true);
    gemm::Spec const base = baseOf(p);
    std::vector<Config> list;
    if (isEmpty(optimum) || unsupportedGeometry(base, optimum))
        return list;
    for (gemm::Spec const& s :
         gemm::candidates(base, shapeOf(optimum, Axes(optimum)), p.target.cuda->multiprocessors, SIZE_MAX))
        if (list.size() < kMostConfigs && !unsupportedGeometry(s, maximum) && !unsupportedGeometry(s, optimum))
            list.push_back(configOf(s));
    return list;
}

Support supports(Problem const& p, Arithmetic a)
{
    TW_SUPPORTS(supportsTransposed(p, typeOf(p, a), 1));
    if (!p.target.cuda || p.target.cuda->capability != 90)
        return Support::no("needs a GPU of compute capability 9.0");
    TensorSpec const& w = p.inputs[1];
    if (p.node->attrsAs<KernelWindowAttrs>().groups != 1 || w.dims[0] < kLeastChannels || w.dims.volume() == 0)
        return Support::no(fmt::format("takes one group of at least {} channels", kLeastChannels));
    if (char const* const why = unsupportedGeometry(baseOf(p), geometryOf(p, true)))
        return Support::no(why);
    return configs(p, a).empty() ? Support::no("no tile fits") : Support::yes();
}

double estimate(Problem const& p, Config const& config, Arithmetic)
{
    gemm::Spec spec;
    Geometry const g = geometryOf(p, false);
    if (specOf(p, config, spec) || isEmpty(g) || unsupportedGeometry(spec, g))
        return 0;
    return gemm::estimateUs(spec, shapeOf(g, Axes(g)), p.target.cuda->multiprocessors);
}

// w [c, k, r, s] as [phase, k, tap, c], filters and channels up to 8; a phase's taps in x's order.
std::string packFilters(Problem const& p)
{
    Geometry const g = geometryOf(p, true);
    Axes const axes(g);
    TensorSpec const& w = p.inputs[1];
    int64_t const filters = roundUp8(g.k), channels = roundUp8(g.c), taps = axes.taps();
    std::string bytes(size_t(axes.phases() * filters * taps * channels) * sizeof(uint16_t), '\0');
    auto* const to = reinterpret_cast<uint16_t*>(bytes.data());
    auto const* const from = static_cast<uint16_t const*>(w.constant->data());
    auto elementAt = [&](PhasedAxis const& a, int i, int64_t phase, int64_t tap) {
        return elementOf(g, WindowKind::kDeconvolution, i, phase, a.count[phase] - 1 - tap);
    };
    for (int64_t phase = 0; phase < axes.phases(); ++phase) {
        int64_t const h = phase / axes.w.phases, v = phase % axes.w.phases;
        for (int64_t r = 0; r < axes.h.count[h]; ++r)
            for (int64_t s = 0; s < axes.w.count[v]; ++s) {
                int64_t const element = elementAt(axes.h, 1, h, r) * g.window[2] + elementAt(axes.w, 2, v, s);
                int64_t const tap = r * axes.w.count[v] + s;
                for (int64_t c = 0; c < g.c; ++c)
                    for (int64_t k = 0; k < g.k; ++k)
                        to[((phase * filters + k) * taps + tap) * channels + c] =
                            from[(c * g.k + k) * g.window[1] * g.window[2] + element];
            }
    }
    return bytes;
}

Result<void> run(ir::Node const& node, gemm::Spec const& spec, Geometry const& packed, CudaLaunch const& launch,
                 RunArgs& args)
{
    TensorRef const& x = args.inputs[0];
    Geometry const g = geometryOf(node, args);
    if (isEmpty(g))
        return {};
    // Which taps a phase has depends on what is cut off before.
    if (!std::equal(g.before, g.before + 3, packed.before))
        return unsupported("padding that differs from that of the maximum shapes");
    if (char const* const why = unsupportedGeometry(spec, g))
        return unsupported(why);
    Axes const axes(g);
    gemm::Launch l = gemm::launch(spec, shapeOf(g, axes), launch.multiprocessors());
    readInPlace(l.p, g, x.pixelStride(), spec.operandBytes());
    TW_ASSIGN(cuda::TensorMap const mapP, launch.encode(l.p, x.data));
    TW_ASSIGN(cuda::TensorMap const mapQ, launch.encode(l.q, launch.packed(1)));
    cuda::gemm_f16::PhasedArgsOf<void> a;
    static_cast<gemm::Args&>(a) = l.args;
    setOutput(a, args, launch.packed(0));
    a.axisH = axes.h.phase;
    a.axisW = axes.w.phase;
    a.filters = int32_t(roundUp8(g.k));
    return launch.withGeometry(0, l.geometry, {&mapP, &mapQ, &a});
}

std::unique_ptr<CudaKernels> generate(Problem const& p, Config const& config, Arithmetic)
{
    gemm::Spec spec;
    if (char const* const why = specOf(p, config, spec))
        return noKernels(unsupported(why));
    if (char const* const why = unsupportedGeometry(spec, geometryOf(p, true)))
        return noKernels(unsupported(why));
    auto const pack = [](Problem const& p) {
        return std::vector<std::string>{packBias(p, roundUp8(p.inputs[1].dims[1])), packFilters(p)};
    };
    return kernelsOf(wholeSource(gemm::kKernel, spec),
                     [&node = *p.node, spec, packed = geometryOf(p, true)](CudaLaunch const& launch, RunArgs& args) {
                         return run(node, spec, packed, launch, args);
                     },
                     {}, pack, {1, 2});
}

} // namespace
} // namespace phases

constinit Algorithm const kPhases{pixelFormats, phases::supports, phases::configs, phases::estimate, phases::generate};

} // namespace tw::ops::conv_f16
