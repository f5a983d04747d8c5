// SPDX-License-Identifier: Apache-2.0
// First layers, x linear: of FP16, of FP32 rounded to TF32, and of i8. Config: {rows, columns of 16, filters}.
#include <algorithm>

#include "families/convolution/cuda_conv_f16.h"
#include "kernels/cuda/conv/mma_2d.h"
#include "kernels/cuda/conv/stem.h"

namespace tw::ops::conv_f16 {

namespace conv_stem {
namespace {

using Floats = cuda::stem_f16::Spec;
using Integers = cuda::stem_i8::Spec;

cuda::ConvShape shapeFor(Floats const&, Geometry const& g)
{
    return shapeOf(g);
}

cuda::ConvShape shapeFor(Integers const&, Geometry const& g)
{
    cuda::ConvShape s = shapeOf(g);
    s.k = g.k;
    return s;
}

template <class Spec>
char const* unsupportedGeometry(Spec const& spec, Geometry const& g)
{
    return isEmpty(g) ? nullptr : unsupported(spec, shapeFor(spec, g));
}

// But for the window's columns.
template <class Spec>
void setNumbers(Spec& s, Geometry const& g, Config const& c)
{
    s.channels = int(g.c);
    s.filterH = int(g.window[1]);
    s.filterW = int(g.window[2]);
    s.strideH = int(g.stride[1]);
    readConfig(c, 0, s.rows, s.columns, s.tileN);
}

char const* specOf(Problem const& p, Config const& c, Floats& s)
{
    if (!isConfig(c, 3, 0, 256))
        return "a config has other numbers";
    Geometry const g = geometryOf(p, true);
    if (g.groups != 1 || g.c > 8 || std::max(g.window[1], g.window[2]) > 11 || g.stride[1] > 4 || g.stride[2] != 2 ||
        g.dilation[1] != 1 || g.dilation[2] != 1 || g.before[2] < 0 || g.before[2] > 8 || hasResidual(p))
        return "takes one group of at most 8 channels and steps over two columns";
    static_cast<cuda::Epilogue&>(s) = epilogueOf(p);
    s.single = isFullFloat(p.inputs[0].type);
    s.padW = int(g.before[2]);
    setNumbers(s, g, c);
    return unsupported(s);
}

char const* specOf(Problem const& p, Config const& c, Integers& s)
{
    if (!isConfig(c, 3, 1, 64))
        return "a config has other numbers";
    Geometry const g = geometryOf(p, true);
    if (g.groups != 1 || g.c > 4 || std::max(g.window[1], g.window[2]) > 16 || std::max(g.stride[1], g.stride[2]) > 8 ||
        (g.dilation[1] != 1 && g.window[1] > 1) || (g.dilation[2] != 1 && g.window[2] > 1))
        return "takes one group of up to 4 channels, windows of up to 16 x 8 without dilation, strides up to 8";
    s.end = integerEndOf(p);
    s.strideW = int(g.stride[2]);
    s.packs = p.node->inputs[0]->shape.back().isConst() && g.in[2] % 4 == 0;
    setNumbers(s, g, c);
    return unsupported(s);
}

// Few rows only where there are few blocks, more than `some` only where all multiprocessors get some.
template <class Spec>
std::vector<Config> configsOf(Problem const& p, std::initializer_list<int64_t> allRows, int64_t some)
{
    Geometry const optimum = geometryOf(p, false), maximum = geometryOf(p, true);
    // Blocks of equal width, in 16 columns.
    int64_t const units = std::max<int64_t>((optimum.out[2] + 15) / 16, 1), parts = (units + 7) / 8,
                  columns = (units + parts - 1) / parts, tileN = optimum.k <= 32 ? 32 : 64;
    std::vector<Config> list;
    for (int64_t rows : allRows) {
        int64_t const blocks = optimum.batch * ((optimum.out[1] + rows - 1) / rows) * parts;
        if (rows <= 2 ? blocks > p.target.cuda->multiprocessors * 16
                      : rows > some && blocks < p.target.cuda->multiprocessors)
            continue;
        Config const c{rows, columns, tileN};
        Spec s;
        if (!specOf(p, c, s) && !unsupportedGeometry(s, maximum))
            list.push_back(c);
    }
    return list;
}

std::vector<Config> configs(Problem const& p, Arithmetic)
{
    return configsOf<Floats>(p, {1, 2, 4, 8}, 2);
}

std::vector<Config> configsOfIntegers(Problem const& p, Arithmetic)
{
    return configsOf<Integers>(p, {8, 4, 2, 1, 16}, 4);
}

Support supports(Problem const& p, Arithmetic a)
{
    TW_SUPPORTS(supportsCommon(p, typeOf(p, a)));
    TW_SUPPORTS(needsSm80(p));
    if (!p.node->inputs[0]->shape.back().isConst())
        return Support::no("takes rows of a fixed width");
    return configs(p, a).empty()
               ? Support::no("takes one group of at most 8 channels, rows in steps of 8 pixels, steps of "
                             "2 columns and small windows")
               : Support::yes();
}

Support supportsIntegers(Problem const& p, Arithmetic a)
{
    TW_SUPPORTS(supportsInt8(p));
    Integers s;
    if (char const* const why = specOf(p, {1, 1, 32}, s))
        return Support::no(why);
    return configsOfIntegers(p, a).empty() ? Support::no("at most 65535 blocks of rows") : Support::yes();
}

int64_t placeOf(Extents const& w, int64_t c, int64_t r, int64_t s, int64_t shift)
{
    return (c * w[2] + r) * 8 + s + shift;
}

PackedParts pack(Problem const& p, Floats const& spec)
{
    int64_t const filters = roundUp8(p.inputs[1].dims[0]);
    std::string packed = packFilters(p.inputs[1], filters, spec.paddedK(), placeOf, spec.shift());
    if (spec.single)
        cuda::conv_2d::roundAllToTf32(packed);
    return std::vector<std::string>{packBias(p, filters), std::move(packed)};
}

PackedParts pack(Problem const& p, Integers const& spec)
{
    TensorSpec const& w = p.inputs[1];
    auto const placeOf = [](Extents const&, int64_t c, int64_t r, int64_t s, int64_t row) {
        return r * row + s * 4 + c;
    };
    return std::vector<std::string>{
        packFilters(w, w.dims[0], spec.filterBytes(), placeOf, spec.filterW <= 4 ? 16 : 32)};
}

Result<void> run(ir::Node const& node, Floats const& spec, CudaLaunch const& launch, RunArgs& args)
{
    Geometry const g = geometryOf(node, args);
    if (char const* const why = unsupportedGeometry(spec, g))
        return tw::unsupported(why);
    cuda::stem_f16::Launch l = cuda::stem_f16::launch(spec, shapeFor(spec, g));
    setOutput(l.args, args, launch.packed(0));
    l.args.batchY = l.args.ldy * g.out[2];
    l.args.x = args.inputs[0].data;
    l.args.filters = launch.packed(1);
    return launch.withGeometry(0, l.geometry, {&l.args});
}

Result<void> run(ir::Node const& node, Integers const& spec, CudaLaunch const& launch, RunArgs& args)
{
    Geometry const g = geometryOf(node, args);
    if (isEmpty(g))
        return {};
    if (char const* const why = unsupportedGeometry(spec, g))
        return tw::unsupported(why);
    cuda::stem_i8::Args a;
    a.x = args.inputs[0].as<int8_t>();
    a.filters = static_cast<int8_t const*>(launch.packed(0));
    a.y = args.outputs[0].data;
    a.end = integerEndArgs(args);
    a.pixelY = args.outputs[0].pixelStride();
    if (a.end.residual)
        a.pixelResidual = args.inputs[Epilogue::kResidual].pixelStride();
    return launch.withGeometry(0, cuda::stem_i8::launch(spec, shapeFor(spec, g), a), {&a});
}

template <class Spec>
std::unique_ptr<CudaKernels> generate(Problem const& p, Config const& config, Arithmetic a)
{
    Spec spec;
    if (char const* const why = specOf(p, config, spec))
        return noKernels(tw::unsupported(why));
    return kernelsOf(
        wholeSource(cuda::stem_f16::kKernel, spec),
        [&node = *p.node, spec](CudaLaunch const& launch, RunArgs& args) { return run(node, spec, launch, args); }, {},
        [spec](Problem const& p) { return pack(p, spec); },
        a == Arithmetic::kInt8 ? std::vector<size_t>{1} : std::vector<size_t>{1, 2});
}

double estimate(Problem const& p, Config const&, Arithmetic a)
{
    return estimateUs(p, a == Arithmetic::kTf32 ? 100 : 200);
}

} // namespace
} // namespace conv_stem

constinit Algorithm const kStem{linearInputFormats, conv_stem::supports, conv_stem::configs, conv_stem::estimate,
                                conv_stem::generate<conv_stem::Floats>};
constinit Algorithm const kStemInt8{linearInputFormats, conv_stem::supportsIntegers, conv_stem::configsOfIntegers,
                                    conv_stem::estimate, conv_stem::generate<conv_stem::Integers>};

} // namespace tw::ops::conv_f16
