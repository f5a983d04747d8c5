// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "families/elementwise/activate.h"
#include "ops/pointwise/cpu_table.h"
#include "ops/pointwise/jit_program.h"
#include "tactic/blocks.h"

namespace tw::ops::pointwise {

namespace {

Result<PointwiseSpec> specOfProblem(Problem const& p)
{
    return specOf(p.node->attrsAs<Attrs>());
}

using kernels::jit::Isa;
constexpr auto kInt8Avx512 = kPointwise<"pointwise", specOfProblem, DataType::kInt8, Isa::kAvx512>;
constexpr auto kInt8Avx2 = kPointwise<"pointwise", specOfProblem, DataType::kInt8, Isa::kAvx2>;

constexpr TableTactic kTableAvx512{"pointwise_i8_table_avx512", true};
constexpr TableTactic kTable{"pointwise_i8_table_cpu", false};

// ---- Plain: blocks of elements, step by step; the workspace holds a block of every value.

void compute(StepCode code, float const* a, float const* b, float alpha, float* y, int64_t n)
{
    auto each = [&](auto f) {
        for (int64_t i = 0; i < n; ++i)
            y[i] = f(a[i], b[i]);
    };
    using C = StepCode;
    switch (code) {
    case C::kConstant:
        return each([=](float, float) { return alpha; });
    case C::kAdd:
        return each([](float u, float v) { return u + v; });
    case C::kSub:
        return each([](float u, float v) { return u - v; });
    case C::kMul:
        return each([](float u, float v) { return u * v; });
    case C::kDiv:
        return each([](float u, float v) { return u / v; });
    case C::kMax:
        return each([](float u, float v) { return (u > v) | (u != u) ? u : v; });
    case C::kMin:
        return each([](float u, float v) { return (u < v) | (u != u) ? u : v; });
    case C::kParametricRelu:
        return each([](float u, float v) { return u >= 0 ? u : v * u; });
    case C::kExp:
        return each([](float u, float) { return std::exp(u); });
    case C::kLog:
        return each([](float u, float) { return std::log(u); });
    case C::kSqrt:
        return each([](float u, float) { return std::sqrt(u); });
    case C::kReciprocal:
        return each([](float u, float) { return 1 / u; });
    case C::kAbs:
        return each([](float u, float) { return std::fabs(u); });
    case C::kNegate:
        return each([](float u, float) { return -u; });
    case C::kCeil:
        return each([](float u, float) { return std::ceil(u); });
    case C::kFloor:
        return each([](float u, float) { return std::floor(u); });
    case C::kErf:
        return each([](float u, float) { return std::erf(u); });
    case C::kRound:
        return each([](float u, float) { return std::nearbyint(u); });
    case C::kSquare:
        return each([](float u, float) { return u * u; });
    case C::kActivation:
        return;
    }
}

// The same where each step is rounded by itself: what no instruction gives exactly, as the reference has it.
void computeRounded(StepCode code, float const* a, float const* b, float alpha, float* y, int64_t n)
{
    auto each = [&](auto f) {
        for (int64_t i = 0; i < n; ++i)
            y[i] = float(f(double(a[i])));
    };
    switch (code) {
    case StepCode::kExp:
        return each([](double u) { return std::exp(u); });
    case StepCode::kLog:
        return each([](double u) { return std::log(u); });
    case StepCode::kErf:
        return each([](double u) { return std::erf(u); });
    default:
        return compute(code, a, b, alpha, y, n);
    }
}

// The element of input i for each of n elements of y from `first` on.
void gatherInput(Attrs const& a, size_t i, TensorRef const& x, Extents const& y, int64_t first, int64_t n, float* to)
{
    auto const kind = InputKind(a.inputs[i * kNumbersOfInput]);
    int const axis = int(a.inputs[i * kNumbersOfInput + 1]);
    bool const one = kind == InputKind::kScalar || x.count() == 1;
    if (one || (kind == InputKind::kBroadcast && x.dims == y)) {
        float const* from = loadFloats(x.type, x.data, one ? 0 : first, one ? 0 : 1, n, to);
        if (from != to)
            std::copy_n(from, n, to);
        return;
    }
    Extents const strides = stridesOf(x.dims, true);
    for (int64_t e = 0; e < n; ++e) {
        int64_t rest = first + e, from = 0;
        for (int d = y.rank - 1; d >= 0; --d) {
            int64_t const at = rest % y[d];
            rest /= y[d];
            if (kind == InputKind::kBroadcast)
                from += at * strides[d];
            else if (kind == InputKind::kChannel && d == axis)
                from = at;
        }
        to[e] = float(x.get(from));
    }
}

Result<void> run(ir::Node const& node, RunArgs& args)
{
    auto const& a = node.attrsAs<Attrs>();
    TensorRef const& y = args.outputs[0];
    bool const rounds = isQuantized(node);
    size_t const steps = a.steps.size() / kNumbersOfStep, inputs = args.inputs.size();
    auto* values = static_cast<float*>(args.workspace);
    for (int64_t at = 0; at < y.count(); at += kBlock) {
        int64_t const n = std::min(kBlock, y.count() - at);
        for (size_t i = 0; i < inputs; ++i)
            gatherInput(a, i, args.inputs[i], y.dims, at, n, values + int64_t(i) * kBlock);
        for (size_t s = 0; s < steps; ++s) {
            int64_t const* step = &a.steps[s * kNumbersOfStep];
            double const* parameters = &a.parameters[s * kParametersOfStep];
            float const *u = values + step[1] * kBlock, *v = values + step[2] * kBlock;
            float* to = values + int64_t(inputs + s) * kBlock;
            if (StepCode(step[0]) == StepCode::kActivation) {
                FusedActivation f;
                f.kind = int32_t(step[3]);
                f.alpha = float(parameters[0]);
                f.beta = float(parameters[1]);
                if (rounds && !isExact(StepCode::kActivation, step[3])) {
                    std::copy_n(u, n, to);
                    TW_TRY(activateReference(f, {DataType::kFloat, {n}, to}));
                } else {
                    activate(f, u, to, n);
                }
            } else {
                auto const how = rounds ? computeRounded : compute;
                how(StepCode(step[0]), u, v, float(parameters[0]), to, n);
            }
        }
        float const* result = values + int64_t(inputs + steps - 1) * kBlock;
        if (isFullFloat(y.type))
            std::copy_n(result, n, y.as<float>() + at);
        else
            storeFloats(y.type, y.data, at, n, result);
    }
    return {};
}

int64_t workspace(ir::Node const& node, std::span<TensorRef const> in, std::span<TensorRef const>)
{
    size_t const steps = node.attrsAs<Attrs>().steps.size() / kNumbersOfStep;
    return int64_t(in.size() + steps) * kBlock * int64_t(sizeof(float));
}

constexpr PlainTactic kPlain{"pointwise_any_plain_cpu", 1, run, workspace};

} // namespace

std::span<Tactic const* const> cpuTactics()
{
    return pointwiseTactics<"pointwise", specOfProblem, kTableAvx512, kInt8Avx512, kInt8Avx2, kTable, kPlain>();
}

} // namespace tw::ops::pointwise
