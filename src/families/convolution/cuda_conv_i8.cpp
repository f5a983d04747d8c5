// SPDX-License-Identifier: Apache-2.0
#include "families/convolution/cuda_conv_i8.h"

#include "families/elementwise/epilogue.h"

namespace tw::ops::conv_i8 {

namespace {

Format formatOf(TensorSpec const& t)
{
    return t.type == DataType::kInt8 ? Format::kHWC16 : Format::kHWC8;
}

} // namespace

std::vector<Formats> formatsWith(Problem const& p, Format x)
{
    // Before the shapes are looked at: a tactic without formats takes part in nothing.
    if (p.inputs[0].dims.rank < leastRankOf(Format::kHWC16) || p.outputs[0].dims.rank < leastRankOf(Format::kHWC16))
        return {};
    Formats f = linearFormats(p);
    f.inputs[0] = x;
    f.outputs[0] = formatOf(p.outputs[0]);
    if (conv_f16::hasResidual(p))
        f.inputs[Epilogue::kResidual] = formatOf(p.inputs[Epilogue::kResidual]);
    return {f};
}

Support supportsCommon(Problem const& p)
{
    if (p.inputs[0].type != DataType::kInt8 || p.inputs[1].type != DataType::kInt8)
        return Support::no("takes i8 only");
    if (!p.cuda || p.cuda->capability < 80)
        return Support::no("needs a GPU of compute capability 8.0 or later");
    if (isWide(p))
        return Support::no("counts in 32 bits");
    return conv_f16::supportsSizes(p);
}

} // namespace tw::ops::conv_i8
