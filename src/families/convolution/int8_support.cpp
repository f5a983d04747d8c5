// SPDX-License-Identifier: Apache-2.0
#include "families/convolution/int8_tactics.h"
#include "tactic/cpu_isa.h"

namespace tw::ops {

Support supportsInt8Convolution(Problem const& p, kernels::jit::Isa isa, int mostAxes, Weights weights)
{
    if (Support s = supportsIsa(isa); !s.ok)
        return s;
    TensorSpec const &x = p.inputs[0], &w = p.inputs[1], &y = p.outputs[0];
    if (x.type != DataType::kInt8)
        return Support::no(std::string("computes sums of i8, the input is ") + nameOf(x.type));
    int const axes = w.dims.rank - 2;
    if (axes > mostAxes)
        return Support::no("takes windows of up to " + std::to_string(mostAxes) + " dimensions only");
    if (x.dims.rank != 2 + axes)
        return Support::no("takes inputs with one batch dimension only, not " + x.dims.str());
    if (weights == Weights::kConstant && !w.constant)
        return Support::no("the weights are not constant");
    if (x.dims[1] == 0 || y.dims[1] == 0)
        return Support::no("there are no channels");
    // Offsets within an image have 32 bits.
    constexpr int64_t kMaxBytes = int64_t(1) << 30;
    for (TensorSpec const* t : {&x, &y})
        if (t->maxDims[1] > kMaxBytes / 64 ||
            t->maxDims[t->maxDims.rank - 1] >
                kMaxBytes / 4 / pixelStrideOf(Format::kChannelsLast, t->type, t->maxDims[1]))
            return Support::no("a row of " + t->maxDims.str() + " takes more than 1 GiB");
    if (std::string const why = int8Ends(p, isa).epilogue(false).refusal(); !why.empty())
        return Support::no(why);
    return Support::yes();
}

Int8Ends int8Ends(Problem const& p, kernels::jit::Isa isa)
{
    Extents const& w = p.inputs[1].dims;
    auto const& a = p.node->attrsAs<convolution::Attrs>();
    int64_t const factors = a.transposed ? w[0] / a.groups * w.volume(2, w.rank) : w.volume(1, w.rank);
    return Int8Ends(p, a.epilogue, double(factors), isa);
}

std::vector<int64_t> int8TileVectors(kernels::jit::Isa isa, int64_t vectorsOfGroup)
{
    constexpr int kLeastRows = 3;
    if (vectorsOfGroup == 1)
        return {1};
    std::vector<int64_t> list;
    for (int64_t v : {2, 4, 3})
        if (v <= vectorsOfGroup && kernels::jit::int8MaxRows(isa, dotsOfThisCpu(isa), int(v)) >= kLeastRows)
            list.push_back(v);
    return list;
}

kernels::jit::Dots dotsOfThisCpu(kernels::jit::Isa isa)
{
    return kernels::jit::dotsOf(thisCpu(), isa);
}

} // namespace tw::ops
