// SPDX-License-Identifier: Apache-2.0
// Tactics that round the factors of FP32 products and sum in FP32: candidates only where the user permits it. By
// Tactic::rounding() all of them are of TF32's kind; the names of those that round to BF16, on CPUs
// (TENSORWRIGHT_CPU_BF16), say so.
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
};

inline RoundedFactors roundedFactorsOf(Tactic const& t)
{
    if (t.rounding() != Rounding::kTf32)
        return RoundedFactors::kNone;
    return std::string_view(t.name()).find("_bf16_") != std::string_view::npos ? RoundedFactors::kBf16
                                                                               : RoundedFactors::kTf32;
}

// Of the results of such tactics.
inline Tolerance toleranceFor(RoundedFactors factors, Tolerance const& t)
{
    constexpr double kBf16 = 8e-3; // three bits less than TF32
    switch (factors) {
    case RoundedFactors::kTf32:
        return t.forTf32();
    case RoundedFactors::kBf16:
        return {std::max(t.absolute, kBf16), std::max(t.relative, kBf16), t.integers};
    default:
        return t;
    }
}

} // namespace tw::ops
