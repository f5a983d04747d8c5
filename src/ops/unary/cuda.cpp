// SPDX-License-Identifier: Apache-2.0
#include "ops/cuda_pointwise.h"
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

CudaKernels generate(Problem const& p, Config const&)
{
    Operation const operation = p.node->attrsAs<Attrs>().operation;
    return pointwiseKernels(
        p, {"unary",
            {0},
            std::string("template <class T> TW_INLINE T apply(T x) { return ") + expression(operation) + "; }\n"});
}

constexpr CudaTactic kPlain{"unary_plain_cuda", 1, generate, nullptr, nullptr, pointwiseFormatsOfAll};

} // namespace

std::span<Tactic const* const> cudaTactics()
{
    static constexpr Tactic const* kList[] = {&kPlain};
    return kList;
}

} // namespace tw::ops::unary
