// SPDX-License-Identifier: Apache-2.0
#include "base/round.h"
#include "families/convolution/tactics.h"
#include "ir/signs.h"

namespace tw::ops {

namespace {

// Of every type: windows of so many dimensions at most, one batch dimension, offsets within an image of 32 bits.
Support supportsShapes(Problem const& p, int mostAxes, Weights weights)
{
    constexpr int64_t kMaxBytes = int64_t(1) << 30;
    TensorSpec const &x = p.inputs[0], &w = p.inputs[1], &y = p.outputs[0];
    int const axes = w.dims.rank - 2;
    if (axes > mostAxes)
        return Support::no(fmt::format("takes windows of up to {} dimensions only", mostAxes));
    if (x.dims.rank != 2 + axes)
        return Support::no("takes inputs with one batch dimension only, not " + x.dims.str());
    if (weights == Weights::kConstant && !w.constant)
        return Support::no("the weights are not constant");
    bool const packsBias = isFullFloat(x.type) && weights == Weights::kConstant;
    if (packsBias && p.inputs.size() > 2 && p.inputs[2].present && !p.inputs[2].constant)
        return Support::no("the bias is not constant");
    if (x.dims[1] == 0 || y.dims[1] == 0)
        return Support::no("there are no channels");
    for (TensorSpec const* t : {&x, &y})
        if (t->maxDims[1] > kMaxBytes / 64 ||
            t->maxDims[t->maxDims.rank - 1] >
                kMaxBytes / 4 / pixelStrideOf(Format::kChannelsLast, t->type, t->maxDims[1]))
            return Support::no("a row of " + t->maxDims.str() + " takes more than 1 GiB");
    return Support::yes();
}

} // namespace

Support supportsConvolution(Problem const& p, int mostAxes, Weights weights)
{
    if (!isFullFloat(p.inputs[0].type))
        return Support::no(std::string("computes in f32, the input is ") + nameOf(p.inputs[0].type));
    return supportsShapes(p, mostAxes, weights);
}

Support supportsInt8Convolution(Problem const& p, int mostAxes, Weights weights)
{
    if (!isQuantized(p.inputs[0].type))
        return Support::no(std::string("computes sums of i8, the input is ") + nameOf(p.inputs[0].type));
    return supportsShapes(p, mostAxes, weights);
}

bool isTransposed(ir::Node const& node)
{
    return node.attrsAs<convolution::Attrs>().transposed;
}

convolution::Geometry convolutionGeometry(ir::Node const& node, Extents const& x, Extents const& w, Extents const& y)
{
    return convolution::geometryOf(node.attrsAs<convolution::Attrs>(), x, w, y);
}

kernels::jit::SumEnd jitEnd(ir::Node const& node)
{
    return jitEnd(node.attrsAs<convolution::Attrs>().epilogue);
}

int64_t vectorsOfGroup(Problem const& p, kernels::jit::Isa isa)
{
    return divideUp(p.outputs[0].dims[1] / p.node->attrsAs<KernelWindowAttrs>().groups, kernels::jit::vectorWidth(isa));
}

JitEnd jitEnd(Problem const& p, kernels::jit::Isa isa)
{
    Extents const& w = p.inputs[1].dims;
    auto const& a = p.node->attrsAs<convolution::Attrs>();
    int64_t const factors = a.transposed ? w[0] / a.groups * w.volume(2, w.rank) : w.volume(1, w.rank);
    return JitEnd(p, a.epilogue, double(factors), isa);
}

std::vector<int64_t> int8TileVectors(Problem const& p, kernels::jit::Isa isa, int64_t vectorsOfGroup)
{
    int const leastRows = isBytePairs(byteFactors(p, isa)) ? 2 : 3;
    if (vectorsOfGroup == 1)
        return {1};
    std::vector<int64_t> list;
    for (int64_t v : {2, 4, 3})
        if (v <= vectorsOfGroup && kernels::jit::gemmMaxRows(isa, int(v), byteFactors(p, isa)) >= leastRows)
            list.push_back(v);
    return list;
}

kernels::jit::Factors byteFactors(Problem const& p, kernels::jit::Isa isa)
{
    return kernels::jit::byteFactors(*p.target.cpu, isa, ir::Signs().isNonNegative(*p.node->inputs[0]));
}

} // namespace tw::ops
