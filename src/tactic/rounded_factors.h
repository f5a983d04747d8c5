// SPDX-License-Identifier: Apache-2.0
// Within which bounds results of a tactic that rounds factors lie.
#pragma once

#include <algorithm>

#include "tactic/domain.h"
#include "tactic/tactic.h"

namespace tw::ops {

inline bool roundsFactors(Rounding r)
{
    return r == Rounding::kTf32 || r == Rounding::kBf16 || r == Rounding::kHalfWeights;
}

inline Tolerance toleranceFor(Rounding rounding, Tolerance const& t)
{
    constexpr double kBf16 = 8e-3; // three bits less than TF32
    switch (rounding) {
    case Rounding::kTf32:
    case Rounding::kHalfWeights: // as many bits; the largest weight is in its range
        return t.forTf32();
    case Rounding::kBf16:
        return {std::max(t.absolute, kBf16), std::max(t.relative, kBf16), t.integers};
    default:
        return t;
    }
}

} // namespace tw::ops
