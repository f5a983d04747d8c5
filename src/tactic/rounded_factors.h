// SPDX-License-Identifier: Apache-2.0
// Tactics that round the factors of FP32 products and sum in FP32: candidates only where the user permits it. By
// Tactic::rounding() all of them are of TF32's kind; the names of those for CPUs say more: `bf16`, with
// TENSORWRIGHT_CPU_BF16, and `f32f16`, with kFP16.
#pragma once

#include <algorithm>
#include <string_view>

#include "tactic/domain.h"
#include "tactic/tactic.h"

namespace tw::ops {

enum class RoundedFactors : int
{
    kNone,
    kTf32, // to 10 bits of mantissa
    kBf16, // to 7 bits
    kHalf, // weights alone, to FP16
};

inline RoundedFactors roundedFactorsOf(Tactic const& t)
{
    if (t.rounding() != Rounding::kTf32)
        return RoundedFactors::kNone;
    std::string_view const name = t.name();
    auto has = [&](char const* part) { return name.find(part) != std::string_view::npos; };
    return has("_bf16_") ? RoundedFactors::kBf16 : has("_f32f16_") ? RoundedFactors::kHalf : RoundedFactors::kTf32;
}

// Of the results of such tactics.
inline Tolerance toleranceFor(RoundedFactors factors, Tolerance const& t)
{
    constexpr double kBf16 = 8e-3; // three bits less than TF32
    switch (factors) {
    case RoundedFactors::kTf32:
    case RoundedFactors::kHalf: // as many bits; the largest weight is in its range
        return t.forTf32();
    case RoundedFactors::kBf16:
        return {std::max(t.absolute, kBf16), std::max(t.relative, kBf16), t.integers};
    default:
        return t;
    }
}

} // namespace tw::ops
