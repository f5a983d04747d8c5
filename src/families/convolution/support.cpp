// SPDX-License-Identifier: Apache-2.0
#include "families/convolution/tactics.h"
#include "tactic/cpu_isa.h"

namespace tw::ops {

Support supportsConvolution(Problem const& p, kernels::jit::Isa isa, int mostAxes, Weights weights)
{
    if (Support s = supportsIsa(isa); !s.ok)
        return s;
    if (p.inputs[0].type != DataType::kFloat)
        return Support::no(std::string("computes in f32, the input is ") + nameOf(p.inputs[0].type));
    int const axes = p.inputs[1].dims.rank - 2;
    if (axes > mostAxes)
        return Support::no("takes windows of up to " + std::to_string(mostAxes) + " dimensions only");
    if (p.inputs[0].dims.rank != 2 + axes)
        return Support::no("takes inputs with one batch dimension only, not " + p.inputs[0].dims.str());
    bool const anyWeights = weights == Weights::kAny;
    if (!anyWeights && !p.inputs[1].constant)
        return Support::no("the weights are not constant");
    if (!anyWeights && p.inputs.size() > 2 && p.inputs[2].present && !p.inputs[2].constant)
        return Support::no("the bias is not constant");
    if (p.inputs[0].dims[1] == 0 || p.outputs[0].dims[1] == 0)
        return Support::no("there are no channels");
    // Offsets within an image have 32 bits.
    constexpr int64_t kMaxBytes = int64_t(1) << 30;
    for (TensorSpec const* t : {&p.inputs[0], &p.outputs[0]})
        if (t->maxDims[1] > kMaxBytes / 64 ||
            t->maxDims[t->maxDims.rank - 1] >
                kMaxBytes / 4 / pixelStrideOf(Format::kChannelsLast, t->type, t->maxDims[1]))
            return Support::no("a row of " + t->maxDims.str() + " takes more than 1 GiB");
    return Support::yes();
}

Support supportsForward(Problem const& p, kernels::jit::Isa isa)
{
    return isTransposed(*p.node) ? Support::no("takes no transposed convolutions") : supportsConvolution(p, isa);
}

bool isTransposed(ir::Node const& node)
{
    return node.attrsAs<convolution::Attrs>().transposed;
}

convolution::Geometry convolutionGeometry(ir::Node const& node, Extents const& x, Extents const& w, Extents const& y)
{
    return convolution::geometryOf(node.attrsAs<convolution::Attrs>(), x, w, y);
}

std::optional<kernels::jit::Activation> jitActivation(ir::Node const& node)
{
    return jitActivation(node.attrsAs<convolution::Attrs>().epilogue.activation);
}

} // namespace tw::ops
