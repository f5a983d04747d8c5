// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/unary/op.h"

namespace tw::ops::unary {

namespace {

double value(Operation operation, double x)
{
    switch (operation) {
    case Operation::kExp:
        return std::exp(x);
    case Operation::kLog:
        return std::log(x);
    case Operation::kSqrt:
        return std::sqrt(x);
    case Operation::kRecip:
        return 1 / x;
    case Operation::kAbs:
        return std::fabs(x);
    case Operation::kNeg:
        return -x;
    case Operation::kSin:
        return std::sin(x);
    case Operation::kCos:
        return std::cos(x);
    case Operation::kTan:
        return std::tan(x);
    case Operation::kSinh:
        return std::sinh(x);
    case Operation::kCosh:
        return std::cosh(x);
    case Operation::kAsin:
        return std::asin(x);
    case Operation::kAcos:
        return std::acos(x);
    case Operation::kAtan:
        return std::atan(x);
    case Operation::kAsinh:
        return std::asinh(x);
    case Operation::kAcosh:
        return std::acosh(x);
    case Operation::kAtanh:
        return std::atanh(x);
    case Operation::kCeil:
        return std::ceil(x);
    case Operation::kFloor:
        return std::floor(x);
    case Operation::kErf:
        return std::erf(x);
    case Operation::kNot:
        return x == 0;
    case Operation::kSign:
        return x > 0 ? 1 : x < 0 ? -1 : 0;
    case Operation::kRound:
        return std::nearbyint(x);
    }
    return 0;
}

} // namespace

Result<void> reference(RefContext& ctx)
{
    Operation const operation = ctx.attrs<Attrs>().operation;
    TensorRef const &x = ctx.in(0), &y = ctx.out();
    for (int64_t i = 0; i < y.count(); ++i) {
        y.setReal(i, value(operation, x.get(i)));
    }
    return {};
}

} // namespace tw::ops::unary
