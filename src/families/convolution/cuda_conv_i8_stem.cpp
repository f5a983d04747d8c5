// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "families/convolution/cuda_conv_i8.h"
#include "families/elementwise/cuda_epilogue.h"
#include "kernels/cuda/conv/stem.h"
#include "ops/convolution/op.h"

namespace tw::ops::conv_i8 {

namespace {

namespace stem = cuda::stem_i8;
using conv_f16::geometryOf;
using Geometry = conv_f16::Geometry;

stem::Shape shapeOf(Geometry const& g)
{
    return {g.batch, g.in[1], g.in[2], g.k, g.out[1], g.out[2], g.before[1], g.before[2]};
}

bool isEmpty(Geometry const& g)
{
    return g.batch * g.out[1] * g.out[2] == 0;
}

char const* unsupportedGeometry(stem::Spec const& spec, Geometry const& g)
{
    return isEmpty(g) ? nullptr : stem::unsupported(spec, shapeOf(g));
}

// Config: {rows, columns of 16, filters}.
char const* specOf(Problem const& p, Config const& c, stem::Spec& s)
{
    if (!isConfig(c, 3, 1, 64))
        return "a config has other numbers";
    Geometry const g = geometryOf(p, true);
    if (g.groups != 1 || g.c > 4 || std::max(g.window[1], g.window[2]) > 16 || std::max(g.stride[1], g.stride[2]) > 8 ||
        (g.dilation[1] != 1 && g.window[1] > 1) || (g.dilation[2] != 1 && g.window[2] > 1))
        return "takes one group of up to 4 channels, windows of up to 16 x 8 without dilation, strides up to 8";
    s.end = integerEndOf(p, p.node->attrsAs<convolution::Attrs>().epilogue);
    s.channels = int(g.c);
    s.filterH = int(g.window[1]);
    s.filterW = int(g.window[2]);
    s.strideH = int(g.stride[1]);
    s.strideW = int(g.stride[2]);
    s.packs = p.node->inputs[0]->shape.back().isConst() && g.in[2] % 4 == 0;
    s.rows = int(c[0]);
    s.columns = int(c[1]);
    s.tileN = int(c[2]);
    return stem::unsupported(s);
}

class StemKernels final : public Kernels
{
public:
    StemKernels(Problem const& p, stem::Spec const& spec) : Kernels(p, wholeSource(stem::kKernel, spec)), spec_(spec) {}
    Result<std::vector<std::string>> pack(Problem const& problem) const override;
    Result<void> run(CudaLaunch const& launch, RunArgs& args) const override;

private:
    stem::Spec const spec_;
};

Result<std::vector<std::string>> StemKernels::pack(Problem const& p) const
{
    TensorSpec const& w = p.inputs[1];
    int64_t const rowBytes = spec_.filterW <= 4 ? 16 : 32;
    std::string packed(size_t(w.dims[0] * spec_.filterBytes()), '\0');
    char const* from = w.constant->as<char>();
    for (int64_t k = 0; k < w.dims[0]; ++k)
        for (int64_t c = 0; c < w.dims[1]; ++c)
            for (int64_t r = 0; r < w.dims[2]; ++r)
                for (int64_t s = 0; s < w.dims[3]; ++s)
                    packed[size_t(k * spec_.filterBytes() + r * rowBytes + s * 4 + c)] = *from++;
    return std::vector<std::string>{std::move(packed)};
}

Result<void> StemKernels::run(CudaLaunch const& launch, RunArgs& args) const
{
    Geometry const g = geometryOf(node_, args);
    if (isEmpty(g))
        return {};
    if (char const* const why = unsupportedGeometry(spec_, g))
        return unsupported(why);
    stem::Args a;
    a.x = args.inputs[0].as<int8_t>();
    a.filters = static_cast<int8_t const*>(launch.packed(0));
    a.y = args.outputs[0].data;
    a.end = integerEndArgs(args);
    a.pixelY = args.outputs[0].pixelStride();
    if (a.end.residual)
        a.pixelResidual = args.inputs[Epilogue::kResidual].pixelStride();
    return launch.withGeometry(0, stem::launch(spec_, shapeOf(g), a), {&a});
}

} // namespace

Support Stem::supports(Problem const& p)
{
    TW_SUPPORTS(supportsCommon(p));
    stem::Spec s;
    if (char const* const why = specOf(p, {1, 1, 32}, s))
        return Support::no(why);
    return configs(p).empty() ? Support::no("at most 65535 blocks of rows") : Support::yes();
}

std::vector<Config> Stem::configs(Problem const& p)
{
    Geometry const optimum = geometryOf(p, false), maximum = geometryOf(p, true);
    // Blocks of equal width, in 16 columns.
    int64_t const units = std::max<int64_t>((optimum.out[2] + 15) / 16, 1), parts = (units + 7) / 8,
                  columns = (units + parts - 1) / parts, tileN = optimum.k <= 32 ? 32 : 64;
    std::vector<Config> list;
    for (int64_t rows : {8, 4, 2, 1, 16}) {
        int64_t const blocks = optimum.batch * ((optimum.out[1] + rows - 1) / rows) * parts;
        // Few rows only where there are few blocks, many only where all multiprocessors get some.
        if (rows <= 2 ? blocks > p.cuda->multiprocessors * 16 : rows > 4 && blocks < p.cuda->multiprocessors)
            continue;
        Config const c{rows, columns, tileN};
        stem::Spec s;
        if (!specOf(p, c, s) && !unsupportedGeometry(s, maximum))
            list.push_back(c);
    }
    return list;
}

double Stem::estimate(Problem const& p, Config const&)
{
    return conv_f16::estimateUs(p, 200);
}

std::unique_ptr<CudaKernels> Stem::generate(Problem const& p, Config const& config)
{
    stem::Spec spec;
    if (char const* const why = specOf(p, config, spec))
        return noKernels(unsupported(why));
    return std::make_unique<StemKernels>(p, spec);
}

} // namespace tw::ops::conv_i8
