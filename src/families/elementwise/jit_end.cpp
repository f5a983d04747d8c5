// SPDX-License-Identifier: Apache-2.0
#include "families/elementwise/jit_end.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tactic/cpu_tactic.h"

namespace tw::ops {

JitEnd::JitEnd(Problem const& p, Epilogue const& epilogue, double factors, kernels::jit::Isa isa)
    : sumsIntegers_(isQuantized(p.inputs[0].type))
{
    auto const has = [&](size_t i) { return i < p.inputs.size() && p.inputs[i].present; };
    integers_.bias = has(Epilogue::kBias);
    if (has(Epilogue::kResidual))
        integers_.residual = p.inputs[Epilogue::kResidual].type;
    integers_.store = p.outputs[0].type;
    if (!sumsIntegers_) {
        floats_ = jitEnd(epilogue);
        return;
    }
    integers_.oneScale = p.inputs[Epilogue::kScale].dims.volume() == 1;
    integers_.activation = jitActivation(epilogue.activation);
    integers_.outputScale = has(Epilogue::kOutputScale);
    integers_.bounded = staysBounded(p, epilogue, factors);
    integers_.innerScale = has(Epilogue::kInnerScale);
    if (has(Epilogue::kTable))
        integers_.table = kernels::jit::byteTableOf(*p.target.cpu, isa);
}

void JitEnd::add(kernels::jit::GemmKernelSpec& spec) const
{
    if (sumsIntegers_)
        return addEnd(spec, integers_);
    if (integers_.bias)
        spec.epilogue.push_back(kernels::jit::EpilogueOp::kBias);
    addEnd(spec, floats_, hasResidual());
}

void JitEnd::set(kernels::jit::GemmArgs& tile, RunArgs const& args, int64_t first) const
{
    auto number = [&](size_t i) {
        return i < args.inputs.size() && args.inputs[i].data ? *args.inputs[i].as<float>() : 1.0F;
    };
    auto from = [&](Epilogue::Input input, int64_t channel) { // null where the tactic holds them in an order of its own
        auto const* const values = args.inputs[input].as<float>();
        return values ? values + channel : nullptr;
    };
    tile.c = args.outputs[0].as<char>() + first * yBytes();
    if (integers_.bias)
        tile.bias = from(Epilogue::kBias, first);
    if (hasResidual())
        tile.residual = args.inputs[Epilogue::kResidual].as<char>() + first * residualBytes();
    if (!sumsIntegers_)
        return;
    tile.scale = from(Epilogue::kScale, integers_.oneScale ? 0 : first);
    tile.numbers = {number(Epilogue::kResidualScale), number(Epilogue::kOutputScale), number(Epilogue::kInnerScale),
                    integers_.table ? args.inputs[Epilogue::kTable].as<int8_t>() : nullptr};
}

std::optional<kernels::jit::Activation> jitActivation(FusedActivation const& f)
{
    static_assert(int(ActivationKind::kThresholdedRelu) == int(activation::Kind::kThresholdedRelu));
    static_assert(int(ActivationKind::kSelu) == int(activation::Kind::kSelu));
    static_assert(int(ActivationKind::kGeluTanh) == int(FusedKind::kGeluTanh) && kActivationKinds == kFusedKindCount);
    if (!f.any())
        return std::nullopt;
    return kernels::jit::Activation{ActivationKind(f.kind), f.alpha, f.beta};
}

kernels::jit::SumEnd jitEnd(Epilogue const& epilogue)
{
    std::vector<ExpressionStep> const steps = epilogue.expression();
    auto isSum = [](ExpressionStep const& s) {
        return s.code == StepCode::kAdd && ((s.a == 1 && s.b == 2) || (s.a == 2 && s.b == 1));
    };
    if (steps.empty())
        return {jitActivation(epilogue.activation), false, {}};
    ExpressionStep const& f = steps[0];
    if (steps.size() == 2 && f.code == StepCode::kActivation && f.a == 0 && isSum(steps[1])) // f(sum) + residual
        return {kernels::jit::Activation{f.kind, f.alpha, f.beta}, true, {}};
    return {std::nullopt, false, steps};
}

bool jumps(kernels::jit::SumEnd const& end)
{
    return (end.activation && tw::jumps(StepCode::kActivation, end.activation->kind)) ||
           std::any_of(end.steps.begin(), end.steps.end(),
                       [](ExpressionStep const& s) { return tw::jumps(s.code, s.kind); });
}

namespace {

using kernels::jit::Activation;

constexpr double kUnknown = std::numeric_limits<double>::infinity();
constexpr double kMost = 1 << 30;

// Of a constant's elements, the largest magnitude; `otherwise` where there is no such input.
double largest(Problem const& p, int input, double otherwise)
{
    if (size_t(input) >= p.inputs.size() || !p.inputs[size_t(input)].present)
        return otherwise;
    Blob const* const blob = p.inputs[size_t(input)].constant;
    if (!blob)
        return kUnknown;
    double most = 0;
    float const* const x = blob->as<float>();
    for (int64_t i = 0, count = int64_t(blob->sizeBytes() / sizeof(float)); i < count; ++i)
        most = std::isfinite(x[i]) ? std::max(most, std::fabs(double(x[i]))) : kUnknown;
    return most;
}

// Of f(x), |x| <= most.
double largestOf(Activation const& f, double most)
{
    switch (f.kind) {
    case ActivationKind::kRelu:
    case ActivationKind::kSwish:
    case ActivationKind::kGeluErf:
    case ActivationKind::kGeluTanh:
        return most;
    case ActivationKind::kSigmoid:
    case ActivationKind::kTanh:
        return 1;
    case ActivationKind::kClip:
        return std::isfinite(f.alpha) && std::isfinite(f.beta) ? std::max(std::fabs(f.alpha), std::fabs(f.beta))
                                                               : kUnknown;
    default:
        return kUnknown;
    }
}

} // namespace

bool staysBounded(Problem const& p, Epilogue const& e, double k)
{
    double const sum = std::min(k * 128 * 128, 0x1p31);
    double t = sum * largest(p, Epilogue::kScale, 1) + largest(p, Epilogue::kBias, 0);
    if (hasInput(*p.node, Epilogue::kInnerScale))
        t = 128 * largest(p, Epilogue::kInnerScale, 1);
    if (hasInput(*p.node, Epilogue::kResidual)) {
        if (!isQuantized(p.inputs[Epilogue::kResidual].type))
            return false;
        t += 128 * largest(p, Epilogue::kResidualScale, 1);
    }
    if (!(t < kMost)) // before an activation, too
        return false;
    if (auto const f = jitActivation(e.activation))
        t = largestOf(*f, t);
    return t * largest(p, Epilogue::kOutputScale, 1) < kMost;
}

} // namespace tw::ops
