// SPDX-License-Identifier: Apache-2.0
// Implicit matrix products without TMA: FP16, FP32 exact or rounded to TF32. A config is {tileM, tileN, stages, vector}, of
// FP32 with the split behind it.
#include <algorithm>
#include <optional>

#include "families/convolution/cuda_conv_f16.h"
#include "kernels/cuda/conv/mma_2d.h"

namespace tw::ops::conv_f16 {

namespace conv_mma {
namespace {

namespace conv = cuda::conv_2d;

constexpr size_t kMostConfigs = 5, kMostSources = 3;

struct Kind
{
    Arithmetic arithmetic;
    bool nchw;

    bool isHalf() const { return arithmetic == Arithmetic::kHalf; }
    conv::Kind sums() const
    {
        return isHalf() ? conv::Kind::kHalf : arithmetic == Arithmetic::kFloat ? conv::Kind::kFloat : conv::Kind::kTf32;
    }
};

char const* unsupportedGeometry(conv::Spec const& spec, Geometry const& g)
{
    return isEmpty(g) ? nullptr : conv::unsupported(spec, shapeOf(g));
}

conv::Spec baseOf(Problem const& p, Kind kind)
{
    conv::Spec s;
    if (kind.isHalf())
        static_cast<cuda::Epilogue&>(s) = epilogueOf(p);
    else
        s.end = exactEpilogueOf(p);
    s.kind = kind.sums();
    s.constantFilters = !areComputed(p);
    s.nchw = kind.nchw;
    int64_t const groups = p.node->attrsAs<KernelWindowAttrs>().groups;
    s.aligned = groups == 1 || p.inputs[1].dims[0] / groups % (kind.isHalf() ? 8 : 4) == 0;
    return s;
}

char const* specOf(Problem const& p, Kind kind, Config c, conv::Spec& s)
{
    s = baseOf(p, kind);
    if (kind.isHalf())
        c.push_back(1);
    return setTile(c, s) ? conv::unsupported(s) : "a config has other numbers";
}

// The widest copies that all shapes allow; along a row they need to know its width.
int widestVector(Problem const& p, Kind kind)
{
    bool const isKnown = p.node->inputs[0]->shape.back().isConst();
    return kind.nchw && !isKnown ? 1 : vectorOf(shapeOf(geometryOf(p, true)), kind.nchw, conv::mostVector(kind.sums()));
}

std::vector<Config> halfConfigs(Problem const& p, Kind kind)
{
    struct Tile
    {
        int m, n, stages;
    };
    Geometry const g = geometryOf(p, false);
    int64_t const groupK = g.k / g.groups, pixels = g.batch * g.out[1] * g.out[2];
    // Where tiles of 64 pixels leave multiprocessors idle, larger ones would more.
    bool const isSmall = pixels * roundUp8(g.k) < int64_t(p.target.cuda->multiprocessors) * 128 * 64;
    std::vector<Tile> tiles;
    if (groupK <= 32)
        tiles = {{128, 32, 4}};
    else if (groupK <= 64 || isSmall)
        tiles = {{64, 64, 4}, {128, 64, 4}};
    else
        tiles = {{128, 128, 4}, {128, 64, 4}, {64, 64, 4}};
    // With wgmma in the race this one only stands in.
    if (!kind.nchw && g.groups == 1 && p.target.cuda->capability == 90 && g.c >= 32)
        tiles.resize(1);
    int const vector = widestVector(p, kind);
    std::vector<Config> list;
    for (Tile const& t : tiles)
        list.push_back({t.m, t.n, t.stages, vector});
    return list;
}

template <bool nchw>
std::vector<Config> configs(Problem const& p, Arithmetic arithmetic)
{
    Kind const kind{arithmetic, nchw};
    if (kind.isHalf())
        return halfConfigs(p, kind);
    Geometry const optimum = geometryOf(p, false), maximum = geometryOf(p, true);
    conv::Spec base = baseOf(p, kind);
    base.vector = widestVector(p, kind);
    std::vector<conv::Spec> specs{base};
    if (!isEmpty(optimum))
        specs = conv::candidates(base, shapeOf(optimum), p.target.cuda->multiprocessors,
                                 p.target.cuda->capability >= 90, kMostConfigs, kMostSources);
    std::vector<Config> list;
    for (conv::Spec const& s : specs)
        if (!unsupportedGeometry(s, maximum))
            list.push_back(tileConfigOf(s));
    return list;
}

template <bool nchw>
Support supports(Problem const& p, Arithmetic arithmetic)
{
    Kind const kind{arithmetic, nchw};
    TW_SUPPORTS(supportsCommon(p, typeOf(p, arithmetic), {.computed = !nchw}));
    TW_SUPPORTS(needsSm80(p));
    Geometry const g = geometryOf(p, true);
    if (kind.nchw && (g.c > kMostNchwChannels || g.groups != 1))
        return Support::no(fmt::format("takes one group of at most {} channels", kMostNchwChannels));
    if (!kind.nchw && g.groups > 1 && kDepthwise.supports(p, kind.isHalf() ? Arithmetic::kHalf : Arithmetic::kFloat).ok)
        return Support::no("channels that stand alone have a kernel of their own");
    conv::Spec least = baseOf(p, kind);
    least.vector = 1;
    char const* why = kind.isHalf() ? specOf(p, kind, configs<nchw>(p, arithmetic)[0], least) : nullptr;
    why = why ? why : unsupportedGeometry(least, g);
    if (why)
        return Support::no(why);
    return isEmpty(g) || !configs<nchw>(p, arithmetic).empty() ? Support::yes() : Support::no("no tile fits");
}

// Of FP16 only to order tactics by: copies of one element are slow.
template <bool nchw>
double estimate(Problem const& p, Config const& c, Arithmetic arithmetic)
{
    Kind const kind{arithmetic, nchw};
    if (kind.isHalf())
        return estimateUs(p, c.size() == 4 && c[3] > 1 ? 150 : 30);
    conv::Spec spec;
    Geometry const g = geometryOf(p, false);
    if (specOf(p, kind, c, spec) || unsupportedGeometry(spec, g) || isEmpty(g))
        return 0;
    return conv::estimateUs(spec, shapeOf(g), p.target.cuda->multiprocessors);
}

template <class Args>
Result<void> run(ir::Node const& node, conv::Spec const& spec, std::optional<RunPacking> const& packing,
                 CudaLaunch const& launch, RunArgs& args)
{
    TensorRef const& x = args.inputs[0];
    Geometry const g = geometryOf(node, args);
    if (char const* const why = unsupportedGeometry(spec, g))
        return unsupported(why);
    conv::Launch<Args> l = conv::launch<Args>(spec, shapeOf(g));
    if (!spec.nchw && !conv::setPixels(l.args, x.pixelStride(), g.in[1], g.in[2]))
        return unsupported("a row of x has more elements than 32 bits count");
    setOutput(l.args, args, launch.packed(0));
    l.args.x = x.data;
    if (packing && !isEmpty(g))
        TW_SET(l.args.filters, packFilters(launch, args, *packing));
    else if (!packing)
        l.args.filters = launch.packed(1);
    return launch.withGeometry(0, l.geometry, {&l.args});
}

template <bool nchw>
std::unique_ptr<CudaKernels> generate(Problem const& p, Config const& config, Arithmetic arithmetic)
{
    conv::Spec spec;
    if (char const* const why = specOf(p, {arithmetic, nchw}, config, spec))
        return noKernels(unsupported(why));
    std::optional<RunPacking> packing;
    TensorSpec const& w = p.inputs[1];
    if (areComputed(p)) {
        Geometry const g = geometryOf(p, true);
        packing = {filtersOf(g), paddedK(shapeOf(g)), w.dims[1], spec.kind == conv::Kind::kTf32};
    }
    auto const pack = [spec](Problem const& p) {
        Geometry const g = geometryOf(p, true);
        int64_t const filters = filtersOf(g);
        std::vector<std::string> parts{packBias(p, filters)};
        if (areComputed(p))
            return parts;
        parts.push_back(packFilters(p.inputs[1], filters, paddedK(shapeOf(g)), placeOfFilter, spec.nchw));
        if (spec.kind == conv::Kind::kTf32)
            conv::roundAllToTf32(parts.back());
        return parts;
    };
    auto const run = [&node = *p.node, spec, packing](CudaLaunch const& launch, RunArgs& args) {
        return spec.isHalf() ? conv_mma::run<conv::HalfArgs>(node, spec, packing, launch, args)
                             : conv_mma::run<conv::FloatArgs>(node, spec, packing, launch, args);
    };
    if (!packing)
        return kernelsOf(wholeSource(conv::kKernel, spec), run, {}, pack, {1, 2});
    return kernelsOf(withRunPacking(wholeSource(conv::kKernel, spec), w.type), run,
                     [bytes = packing->bytes(w.type)](auto, auto) { return bytes; }, pack, {2});
}

} // namespace
} // namespace conv_mma

constinit Algorithm const kMma{pixelFormats, conv_mma::supports<false>, conv_mma::configs<false>,
                               conv_mma::estimate<false>, conv_mma::generate<false>};
constinit Algorithm const kMmaNchw{linearInputFormats, conv_mma::supports<true>, conv_mma::configs<true>,
                                   conv_mma::estimate<true>, conv_mma::generate<true>};

} // namespace tw::ops::conv_f16
