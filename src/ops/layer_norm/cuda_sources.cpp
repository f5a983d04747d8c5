// SPDX-License-Identifier: Apache-2.0
#include "families/elementwise/cuda_pointwise.h"
#include "ops/layer_norm/layout.h"

namespace tw::ops::layer_norm {

std::string constantsOf(Problem const& problem)
{
    auto const& a = problem.node->attrsAs<Attrs>();
    bool const isHalf = isNarrowFloat(problem.inputs[0].type);
    return (isHalf ? cuda::include("kernels/cuda/common/half_math.cuh") : "") +
           activationSource("activate", a.activation.kind, a.activation.alpha, a.activation.beta, isHalf) +
           cuda::type("T", cuda::storageOf(problem.inputs[0].type)) + cuda::flag("kGamma", a.hasGamma) +
           cuda::flag("kBeta", a.hasBeta) + cuda::flag("kRms", a.rms) + cuda::flag("kFloats", a.keepsFloats()) +
           cuda::flag("kIntegers", a.integers) + cuda::number("kEpsilon", float(a.epsilon));
}

std::string rowConstantsOf(Problem const& problem, Layout const& layout, int64_t width)
{
    Layout::Sizes const s = layout.sizes(problem.inputs[0].maxDims);
    bool const isByPlace = s.tail == 1 && s.count == s.setSize();
    return constantsOf(problem) + cuda::flag("kByPlace", isByPlace) +
           cuda::flag("kSamePerPack", !isByPlace && isStatic(problem) && s.tail % width == 0);
}

void setTensors(Attrs const& a, RunArgs const& args, Tensors& p)
{
    p.x = args.inputs[0].data;
    p.y = a.keepsFloats() ? args.outputs[0].data : nullptr;
    p.integers = a.integers ? args.outputs[size_t(a.integersOutput())].data : nullptr;
    p.scale = a.integers ? args.inputs[size_t(a.scaleInput())].as<float>() : nullptr;
    p.gamma = a.hasGamma ? args.inputs[size_t(a.gammaInput())].data : nullptr;
    p.beta = a.hasBeta ? args.inputs[size_t(a.betaInput())].data : nullptr;
}

bool isAligned(Tensors const& p)
{
    return (cuda::addressOf(p.x) | cuda::addressOf(p.y) | cuda::addressOf(p.gamma) | cuda::addressOf(p.beta) |
            cuda::addressOf(p.integers)) %
               16 ==
           0;
}

void setRows(Layout::Sizes const& s, RunArgs const& args, RowParams& p)
{
    bool const pixels = isByPixel(args.inputs[0].format);
    p.sets = uint64_t(s.sets());
    p.n = uint64_t(s.setSize());
    p.xPitch = pixels ? uint64_t(args.inputs[0].pixelStride()) : p.n;
    p.yPitch = pixels ? uint64_t(args.outputs[0].pixelStride()) : p.n;
    p.tail = cuda::divBy(std::max<int64_t>(s.tail, 1));
    p.count = cuda::divBy(std::max<int64_t>(s.count, 1));
}

std::vector<Formats> withPixels(Problem const& problem)
{
    std::vector<Formats> list{linearFormats(problem)};
    int const rank = problem.inputs[0].dims.rank;
    auto const& a = problem.node->attrsAs<Attrs>();
    if (a.integers)
        return list;
    for (Format f : {Format::kHWC8, Format::kDHWC8})
        if (fitsRank(f, rank) && channelAxis(f, rank) == 1 && a.axis > 0 &&
            Layout(a, problem.inputs[0].maxDims, true).exists())
            list.push_back(channelsLastFormats(problem, f));
    return list;
}

} // namespace tw::ops::layer_norm
