// SPDX-License-Identifier: Apache-2.0
#include "families/elementwise/cuda_pointwise.h"
#include "ops/identity/op.h"

namespace tw::ops::identity {

namespace {

std::unique_ptr<CudaKernels> generate(Problem const& p, Config const&)
{
    DataType const from = p.inputs[0].type, to = p.outputs[0].type;
    std::string const number = cuda::computeOf(from);
    // The device's conversion to i32 goes toward zero, saturates, and makes NaN 0.
    std::string const whole = isFloating(from) ? "__float2int_rz(x)" : "int(x)";
    std::string text = "TW_INLINE " + number + " apply(" + number + " x) { return x; }\n";
    if (to == DataType::kBool)
        text = "TW_INLINE bool apply(" + number + " x) { return x != 0; }\n";
    else if (to == DataType::kInt32)
        text = "TW_INLINE int apply(" + number + " x) { return " + whole + "; }\n";
    else if (to == DataType::kUInt8)
        text = "TW_INLINE int apply(" + number + " x) { return min(max(" + whole + ", 0), 255); }\n";
    return pointwiseKernels(p, {"identity", {0}, text});
}

constexpr CudaTactic kPlain{"identity_any_plain_cuda", 1, generate};

} // namespace

extern constinit TacticList const cudaTactics = kTactics<kPlain>;

} // namespace tw::ops::identity
