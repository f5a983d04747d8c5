// SPDX-License-Identifier: Apache-2.0
#include "families/convolution/cuda_conv_i8.h"

namespace tw::ops::conv_i8 {

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
