// SPDX-License-Identifier: Apache-2.0
// Of FP16, and of FP32 rounded to TF32.
#include <algorithm>

#include "families/convolution/cuda_conv_f16.h"
#include "kernels/cuda/conv/mma_2d.h"
#include "kernels/cuda/conv/stem.h"

namespace tw::ops::conv_f16 {

namespace conv_stem {
namespace {

namespace stem = cuda::stem_f16;

// A config's numbers.
enum ConfigField
{
    kRows,
    kColumns,
    kTileN,
    kConfigFields,
};

stem::Shape shapeOf(Geometry const& g)
{
    stem::Shape s;
    s.n = g.batch;
    s.h = g.in[1];
    s.w = g.in[2];
    s.k = roundUp8(g.k);
    s.outH = g.out[1];
    s.outW = g.out[2];
    s.padH = g.before[1];
    return s;
}

char const* unsupportedGeometry(stem::Spec const& spec, Geometry const& g)
{
    return g.batch * g.out[1] * g.out[2] == 0 ? nullptr : stem::unsupported(spec, shapeOf(g));
}

char const* specOf(Problem const& p, Config const& c, stem::Spec& s)
{
    if (!isConfig(c, kConfigFields, 0, 256))
        return "a config has other numbers";
    Geometry const g = geometryOf(p, true);
    if (g.groups != 1 || g.c > 8 || std::max(g.window[1], g.window[2]) > 11 || g.stride[1] > 4 || g.stride[2] != 2 ||
        g.dilation[1] != 1 || g.dilation[2] != 1 || g.before[2] < 0 || g.before[2] > 8 || hasResidual(p))
        return "takes one group of at most 8 channels and steps over two columns";
    static_cast<cuda::Epilogue&>(s) = epilogueOf(p);
    s.single = isFullFloat(p.inputs[0].type);
    s.channels = int(g.c);
    s.filterH = int(g.window[1]);
    s.filterW = int(g.window[2]);
    s.strideH = int(g.stride[1]);
    s.padW = int(g.before[2]);
    s.rows = int(c[kRows]);
    s.columns = int(c[kColumns]);
    s.tileN = int(c[kTileN]);
    return stem::unsupported(s);
}

int64_t placeOf(Extents const& w, int64_t c, int64_t r, int64_t s, int64_t shift)
{
    return (c * w[2] + r) * 8 + s + shift;
}

std::vector<Config> configs(Problem const& p)
{
    Geometry const optimum = geometryOf(p, false), maximum = geometryOf(p, true);
    // Blocks of equal width, in 16 columns.
    int64_t const units = (optimum.out[2] + 15) / 16, parts = (units + 7) / 8,
                  columns = (units + parts - 1) / std::max<int64_t>(parts, 1);
    int64_t const tileN = optimum.k <= 32 ? 32 : 64;
    std::vector<Config> list;
    for (int64_t rows : {1, 2, 4, 8}) {
        int64_t const blocks = optimum.batch * ((optimum.out[1] + rows - 1) / rows) * parts;
        // Few rows only where there are few blocks, many only where all multiprocessors get some.
        if (rows <= 2 ? blocks > p.cuda->multiprocessors * 16 : blocks < p.cuda->multiprocessors)
            continue;
        Config const c{rows, std::max<int64_t>(columns, 1), tileN};
        stem::Spec s;
        if (!specOf(p, c, s) && !unsupportedGeometry(s, maximum))
            list.push_back(c);
    }
    return list;
}

Support supports(Problem const& p, Arithmetic a)
{
    TW_SUPPORTS(supportsCommon(p, typeOf(p, a)));
    if (p.cuda->capability < 80)
        return Support::no("needs a GPU of compute capability 8.0 or later");
    if (!p.node->inputs[0]->shape.back().isConst())
        return Support::no("takes rows of a fixed width");
    return configs(p).empty()
               ? Support::no("takes one group of at most 8 channels, rows in steps of 8 pixels, steps of "
                             "2 columns and small windows")
               : Support::yes();
}

class StemKernels final : public SpecKernels<stem::Spec>
{
public:
    using SpecKernels::SpecKernels;
    Result<std::vector<std::string>> pack(Problem const& problem) const override;
    Result<void> run(CudaLaunch const& launch, RunArgs& args) const override;
};

Result<std::vector<std::string>> StemKernels::pack(Problem const& p) const
{
    int64_t const filters = roundUp8(p.inputs[1].dims[0]);
    std::string packed = packFilters(p.inputs[1], filters, spec_.paddedK(), placeOf, spec_.shift());
    if (spec_.single)
        cuda::conv_2d::roundAllToTf32(packed);
    return std::vector<std::string>{packBias(p, filters), std::move(packed)};
}

Result<void> StemKernels::run(CudaLaunch const& launch, RunArgs& args) const
{
    Geometry const g = geometryOf(node_, args);
    if (char const* const why = unsupportedGeometry(spec_, g))
        return unsupported(why);
    stem::Launch l = stem::launch(spec_, shapeOf(g));
    setOutput(l.args, args, launch.packed(0));
    l.args.batchY = l.args.ldy * g.out[2];
    l.args.x = args.inputs[0].data;
    l.args.filters = launch.packed(1);
    return launch.withGeometry(0, l.geometry, {&l.args});
}

std::unique_ptr<CudaKernels> generate(Problem const& p, Config const& config)
{
    stem::Spec spec;
    if (char const* const why = specOf(p, config, spec))
        return noKernels(unsupported(why));
    return std::make_unique<StemKernels>(p, stem::kKernel, spec);
}

double estimate(Problem const& p, Config const&, Arithmetic a)
{
    return estimateUs(p, a == Arithmetic::kHalf ? 200 : 100);
}

constexpr Algorithm kAlgorithm{Format::kLinear, supports, [](Problem const& p, Arithmetic) { return configs(p); },
                               estimate, [](Problem const& p, Config const& c, Arithmetic) { return generate(p, c); }};

} // namespace
} // namespace conv_stem

constinit Algorithm const kStem = conv_stem::kAlgorithm;

} // namespace tw::ops::conv_f16
