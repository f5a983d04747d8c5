// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/activation/op.h"

namespace tw::ops::activation {

namespace {

double value(Kind kind, double alpha, double beta, double x)
{
    if (std::isnan(x))
        return kind == Kind::kThresholdedRelu ? 0 : x;
    switch (kind) {
    case Kind::kRelu:
        return std::fmax(0, x);
    case Kind::kSigmoid:
        return 1 / (1 + std::exp(-x));
    case Kind::kTanh:
        return std::tanh(x);
    case Kind::kLeakyRelu:
        return x >= 0 ? x : alpha * x;
    case Kind::kElu:
        return x >= 0 ? x : alpha * (std::exp(x) - 1);
    case Kind::kSelu:
        return x > 0 ? beta * x : beta * (alpha * std::exp(x) - alpha);
    case Kind::kSoftsign:
        return x / (1 + std::fabs(x));
    case Kind::kSoftplus: // log(exp(u) + 1) = u + log(1 + exp(-u)), which does not overflow
        return alpha * (std::fmax(beta * x, 0) + std::log1p(std::exp(-std::fabs(beta * x))));
    case Kind::kClip:
        return std::fmax(alpha, std::fmin(beta, x));
    case Kind::kHardSigmoid:
        return std::fmax(0, std::fmin(1, alpha * x + beta));
    case Kind::kScaledTanh:
        return alpha * std::tanh(beta * x);
    case Kind::kThresholdedRelu:
        return x > alpha ? x : 0;
    }
    return 0;
}

} // namespace

Result<void> reference(RefContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    TensorRef const &x = ctx.in(0), &y = ctx.out();
    for (int64_t i = 0; i < y.count(); ++i) {
        y.setReal(i, value(a.kind, a.alpha, a.beta, x.get(i)));
    }
    return {};
}

} // namespace tw::ops::activation
