// SPDX-License-Identifier: Apache-2.0
// Expressions that sums end with (families/elementwise/epilogue.h).
#pragma once

#include <string>
#include <vector>

#include "cases/draw.h"
#include "families/elementwise/epilogue.h"

namespace tw::ops {

struct EpilogueProgram
{
    std::string name;
    bool residual; // value 1
    std::vector<ExpressionStep> steps;

    void setTo(Epilogue& epilogue) const
    {
        epilogue.activation = {};
        for (ExpressionStep const& s : steps)
            appendStep(s, epilogue.steps, epilogue.parameters);
    }
};

// One of each kind that networks have, and then some.
inline std::vector<EpilogueProgram> epiloguePrograms()
{
    using enum StepCode;
    using K = ActivationKind;
    auto f = [](K kind, int of, float alpha = 0, float beta = 0) {
        return ExpressionStep{kActivation, of, 0, kind, alpha, beta};
    };
    auto number = [](float v) { return ExpressionStep{kConstant, 0, 0, {}, v, 0}; };
    std::vector<EpilogueProgram> list{
        {"relu_then_sum", true, {f(K::kRelu, 0), {kAdd, 2, 1}}},
        {"swish_then_sum", true, {f(K::kSwish, 0), {kAdd, 1, 2}}},
        {"mish", false, {f(K::kSoftplus, 0, 1, 1), f(K::kTanh, 1), {kMul, 0, 2}}},
        {"gate", true, {f(K::kSigmoid, 1), {kMul, 0, 2}}},
        {"clip_behind_sum", true, {f(K::kTanh, 0), {kAdd, 2, 1}, f(K::kClip, 3, -2, 1.5F)}},
        {"residual_less", true, {{kSub, 1, 0}, f(K::kRelu, 2)}},
        {"residual_by_size", true, {{kAbs, 0}, number(1), {kAdd, 2, 3}, {kDiv, 1, 4}}},
        {"mean", true, {{kAdd, 0, 1}, number(0.5F), {kMul, 2, 3}}},
        {"largest", true, {{kMax, 0, 1}, number(2), {kMin, 2, 3}, {kNegate, 4}}},
        {"leaky_by_residual", true, {{kParametricRelu, 0, 1}, {kErf, 2}, {kSquare, 3}, {kAdd, 4, 0}}}};
    // And each step by itself, of numbers between whole ones: a jump would make a difference of rounding errors.
    for (int code = 0; code < kStepCodes; ++code)
        if (auto const c = StepCode(code); isKnown(c) && operandsOf(c) > 0 && c != kActivation) {
            bool const two = operandsOf(c) > 1;
            int const first = two ? 2 : 1;
            list.push_back({std::string("each_") + nameOf(c),
                            two,
                            {f(K::kSigmoid, 0),
                             number(0.25F),
                             {kMul, first, first + 1},
                             number(1.1F),
                             {kAdd, first + 2, first + 3},
                             {c, first + 4, two ? 1 : 0},
                             {kAdd, first + 5, first}}});
        }
    return list;
}

// Steps that keep the errors of sums as small as they are.
inline EpilogueProgram drawProgram(Draw& d, bool residual)
{
    using enum StepCode;
    EpilogueProgram p{"", residual, {}};
    int const inputs = residual ? 2 : 1, count = int(d.from(1, 6));
    int last = 0; // the value that the next step goes on with; a number is its other operand
    bool isNumber = false;
    for (int s = 0; s < count; ++s) {
        constexpr StepCode kCodes[] = {kConstant, kAdd, kSub, kMax, kMin, kAbs, kNegate, kActivation, kActivation};
        ExpressionStep step{kCodes[d.from(0, 8)], 0, 0, {}, 0, 0};
        bool const first = s == 0;
        if (first && residual)
            step.code = d.chance(50) ? kAdd : kMul;
        else if (isNumber)
            step.code = d.chance(50) ? kMul : kMax;
        else if (step.code == kConstant && s + 1 == count)
            step.code = kNegate;
        else if (operandsOf(step.code) == 2 && !first) // no differences of what is nearly the same
            step.code = d.chance(50) ? kMax : kMin;
        if (operandsOf(step.code) > 0)
            step.a = last;
        if (operandsOf(step.code) > 1)
            step.b = first && residual ? 1 : isNumber ? inputs + s - 1 : int(d.from(0, inputs + s - 1));
        isNumber = step.code == kConstant;
        last = isNumber ? last : inputs + s;
        if (step.code == kConstant)
            step.alpha = float(d.from(-8, 8)) / 4;
        if (step.code == kActivation) {
            constexpr ActivationKind kKinds[] = {ActivationKind::kRelu,    ActivationKind::kLeakyRelu,
                                                 ActivationKind::kSwish,   ActivationKind::kHardSwish,
                                                 ActivationKind::kGeluErf, ActivationKind::kGeluTanh,
                                                 ActivationKind::kSoftplus};
            step.kind = kKinds[d.from(0, 6)];
            step.alpha = 0.25F;
            step.beta = 0.75F;
        }
        p.steps.push_back(step);
    }
    return p;
}

} // namespace tw::ops
