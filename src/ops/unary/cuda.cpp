// SPDX-License-Identifier: Apache-2.0
#include "families/elementwise/cuda_pointwise.h"
#include "kernels/cuda/common/source.h"
#include "ops/unary/op.h"

namespace tw::ops::unary {

namespace {

char const* expression(Operation operation)
{
    switch (operation) {
    case Operation::kExp:
        return "exp(x)";
    case Operation::kLog:
        return "log(x)";
    case Operation::kSqrt:
        return "sqrt(x)";
    case Operation::kRecip:
        return "1 / x";
    case Operation::kAbs:
        return "fabs(x)";
    case Operation::kNeg:
        return "-x";
    case Operation::kSin:
        return "sin(x)";
    case Operation::kCos:
        return "cos(x)";
    case Operation::kTan:
        return "tan(x)";
    case Operation::kSinh:
        return "sinh(x)";
    case Operation::kCosh:
        return "cosh(x)";
    case Operation::kAsin:
        return "asin(x)";
    case Operation::kAcos:
        return "acos(x)";
    case Operation::kAtan:
        return "atan(x)";
    case Operation::kAsinh:
        return "asinh(x)";
    case Operation::kAcosh:
        return "acosh(x)";
    case Operation::kAtanh:
        return "atanh(x)";
    case Operation::kCeil:
        return "ceil(x)";
    case Operation::kFloor:
        return "floor(x)";
    case Operation::kErf:
        return "erf(x)";
    case Operation::kNot:
        return "T(x == 0)";
    case Operation::kSign:
        return "T(x > 0 ? 1 : x < 0 ? -1 : 0)";
    case Operation::kRound:
        return "rint(x)";
    }
    return "x";
}

// Of half_math.cuh, where y is FP16; null: there is no need.
char const* halfFunction(Operation operation)
{
    switch (operation) {
    case Operation::kExp:
        return "halfExp";
    case Operation::kLog:
        return "halfLog";
    case Operation::kSqrt:
        return "halfSqrt";
    case Operation::kRecip:
        return "halfRecip";
    case Operation::kSin:
        return "halfSin";
    case Operation::kCos:
        return "halfCos";
    case Operation::kTan:
        return "halfTan";
    case Operation::kSinh:
        return "halfSinh";
    case Operation::kCosh:
        return "halfCosh";
    case Operation::kAsin:
        return "halfAsin";
    case Operation::kAcos:
        return "halfAcos";
    case Operation::kAtan:
        return "halfAtan";
    case Operation::kAsinh:
        return "halfAsinh";
    case Operation::kAcosh:
        return "halfAcosh";
    case Operation::kAtanh:
        return "halfAtanh";
    case Operation::kErf:
        return "halfErf";
    default:
        return nullptr;
    }
}

std::unique_ptr<CudaKernels> generate(Problem const& p, Config const&)
{
    Operation const operation = p.node->attrsAs<Attrs>().operation;
    char const* const half = isNarrowFloat(p.outputs[0].type) ? halfFunction(operation) : nullptr;
    std::string const apply =
        half ? cuda::include("kernels/cuda/common/half_math.cuh") + "TW_INLINE float apply(float x) { return " + half +
                   "(x); }\n"
             : std::string("template <class T> TW_INLINE T apply(T x) { return ") + expression(operation) + "; }\n";
    return pointwiseKernels(p, {"unary", {0}, apply});
}

constexpr CudaTactic kPlain{"unary_any_plain_cuda", 2, generate, nullptr, nullptr, pointwiseFormatsOfAll};

} // namespace

constinit TacticList const cudaTactics = kTactics<kPlain>;

} // namespace tw::ops::unary
