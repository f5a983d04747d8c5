// SPDX-License-Identifier: Apache-2.0
#include "families/convolution/cuda_conv_i8.h"

namespace tw::ops::conv_i8 {

Support supportsCommon(Problem const& p)
{
    TW_SUPPORTS(takesOnly(DataType::kInt8, p, 2));
    if (!p.cuda || p.cuda->capability < 80)
        return Support::no("needs a GPU of compute capability 8.0 or later");
    if (isWide(p))
        return Support::no("counts in 32 bits");
    return conv_f16::supportsSizes(p);
}

} // namespace tw::ops::conv_i8
