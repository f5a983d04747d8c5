// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "families/elementwise/activate.h"
#include "ops/pointwise/op.h"

namespace tw::ops::pointwise {

namespace {

double larger(double a, double b)
{
    return std::isnan(a) || std::isnan(b) ? std::nan("") : std::fmax(a, b);
}

double value(StepCode code, double a, double b, double alpha)
{
    switch (code) {
    case StepCode::kConstant:
        return alpha;
    case StepCode::kAdd:
        return a + b;
    case StepCode::kSub:
        return a - b;
    case StepCode::kMul:
        return a * b;
    case StepCode::kDiv:
        return a / b;
    case StepCode::kMax:
        return larger(a, b);
    case StepCode::kMin:
        return -larger(-a, -b);
    case StepCode::kParametricRelu:
        return a >= 0 ? a : b * a;
    case StepCode::kExp:
        return std::exp(a);
    case StepCode::kLog:
        return std::log(a);
    case StepCode::kSqrt:
        return std::sqrt(a);
    case StepCode::kReciprocal:
        return 1 / a;
    case StepCode::kAbs:
        return std::fabs(a);
    case StepCode::kNegate:
        return -a;
    case StepCode::kCeil:
        return std::ceil(a);
    case StepCode::kFloor:
        return std::floor(a);
    case StepCode::kErf:
        return std::erf(a);
    case StepCode::kRound:
        return std::nearbyint(a);
    default: // kSquare
        return a * a;
    }
}

// Where element `at` of y reads in an input.
int64_t source(Attrs const& attrs, int i, Extents const& x, Counter const& at)
{
    if (attrs.inputs[size_t(i) * kNumbersOfInput] == int64_t(InputKind::kScalar))
        return 0;
    if (attrs.inputs[size_t(i) * kNumbersOfInput] == int64_t(InputKind::kChannel))
        return at.at[int(attrs.inputs[size_t(i) * kNumbersOfInput + 1])];
    return at.offset(stridesOf(x, true));
}

} // namespace

Result<void> reference(RefContext& ctx)
{
    auto const& attrs = ctx.attrs<Attrs>();
    TensorRef const& y = ctx.out();
    constexpr int64_t kBlock = 1024;             // elements that go through the steps together
    bool const rounds = isQuantized(ctx.node()); // each step by itself
    size_t const steps = attrs.steps.size() / kNumbersOfStep, inputs = size_t(ctx.inputCount());
    std::vector<std::vector<double>> values(inputs + steps, std::vector<double>(size_t(kBlock)));
    Tensor const buffer(DataType::kFloat, {kBlock});
    Counter at(y.dims);
    for (int64_t first = 0; first < y.count(); first += kBlock) {
        int64_t const n = std::min(kBlock, y.count() - first);
        for (int64_t e = 0; e < n; ++e, at.next())
            for (size_t i = 0; i < inputs; ++i)
                values[i][size_t(e)] = ctx.in(int(i)).get(source(attrs, int(i), ctx.in(int(i)).dims, at));
        for (size_t s = 0; s < steps; ++s) {
            int64_t const* step = &attrs.steps[s * kNumbersOfStep];
            double const* parameters = &attrs.parameters[s * kParametersOfStep];
            std::vector<double>& to = values[inputs + s];
            std::vector<double> const &a = values[size_t(step[1])], &b = values[size_t(step[2])];
            if (StepCode(step[0]) != StepCode::kActivation) {
                for (size_t e = 0; e < size_t(n); ++e) {
                    double const exact = value(StepCode(step[0]), a[e], b[e], parameters[0]);
                    to[e] = rounds ? double(float(exact)) : exact;
                }
                continue;
            }
            FusedActivation f;
            f.kind = int32_t(step[3]);
            f.alpha = float(parameters[0]);
            f.beta = float(parameters[1]);
            for (int64_t e = 0; e < n; ++e)
                buffer.ref().set(e, a[size_t(e)]);
            TW_TRY(activateReference(f, buffer.ref()));
            for (int64_t e = 0; e < n; ++e)
                to[size_t(e)] = buffer.ref().get(e);
        }
        for (int64_t e = 0; e < n; ++e)
            y.setReal(first + e, values.back()[size_t(e)]);
    }
    return {};
}

} // namespace tw::ops::pointwise
