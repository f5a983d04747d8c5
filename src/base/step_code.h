// SPDX-License-Identifier: Apache-2.0
// What a step of an element-wise expression computes of its operands a and b: for attributes of nodes, references,
// emitters and device code alike.
#pragma once

#include <cstdint>

namespace tw {

// The numbers stand in plans.
enum class StepCode : int32_t
{
    kConstant = 0, // alpha
    kAdd = 1,
    kSub = 2,
    kMul = 3,
    kDiv = 4,
    kMax = 5, // NaN on either side wins
    kMin = 6,
    kParametricRelu = 7, // a >= 0 ? a : b a
    kExp = 10,
    kLog = 11,
    kSqrt = 12,
    kReciprocal = 13,
    kAbs = 14,
    kNegate = 15,
    kCeil = 16,
    kFloor = 17,
    kErf = 18,
    kRound = 19, // half to even
    kSquare = 20,
    kActivation = 30, // kind, alpha, beta
};

constexpr bool isKnown(StepCode code)
{
    return (code >= StepCode::kConstant && code <= StepCode::kParametricRelu) ||
           (code >= StepCode::kExp && code <= StepCode::kSquare) || code == StepCode::kActivation;
}

// How many operands it has.
constexpr int operandsOf(StepCode code)
{
    if (code == StepCode::kConstant)
        return 0;
    return code <= StepCode::kParametricRelu ? 2 : 1;
}

} // namespace tw
