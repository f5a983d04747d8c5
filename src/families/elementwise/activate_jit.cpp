// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "families/elementwise/jit_end.h"

namespace tw::ops {

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

} // namespace tw::ops
