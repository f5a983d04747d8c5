// SPDX-License-Identifier: Apache-2.0
// Where the elements of an axis stand in x: exact fractions.
//   bool kIsAlignCorners, kIsAsymmetric: neither, half pixels; bool kIsZeroWhenOne: an axis of one element takes the first
//   bool kRoundsHalfUp, kRoundsHalfDown, kRoundsDown: of these none, up
#pragma once

#include "kernels/cuda/common/device.cuh"

namespace tw::ops::resize {

template <class N>
TW_INLINE N floorDiv(N a, N b)
{
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}
template <class N>
TW_INLINE N ceilDiv(N a, N b)
{
    return -floorDiv<N>(-a, b);
}
// Element o of `out`, made from `in` elements, stands at over / under. `scales`: over[axis] / under[axis] is the scale.
template <class N, class Scales>
TW_INLINE void setCoordinate(Scales const& scales, int axis, N o, N in, N out, N& over, N& under)
{
    if (out == 1 && kIsZeroWhenOne) {
        over = 0;
        under = 1;
    } else if constexpr (kIsAlignCorners) {
        over = o * (in - 1);
        under = out - 1;
    } else if constexpr (kIsAsymmetric) {
        over = o * scales.under[axis];
        under = scales.over[axis];
    } else {
        over = (2 * o + 1) * scales.under[axis] - scales.over[axis];
        under = 2 * scales.over[axis];
    }
}
template <class N>
TW_INLINE N rounded(N const& over, N const& under)
{
    if constexpr (kRoundsHalfUp)
        return floorDiv<N>(2 * over + under, 2 * under);
    else if constexpr (kRoundsHalfDown)
        return ceilDiv<N>(2 * over - under, 2 * under);
    else if constexpr (kRoundsDown)
        return floorDiv<N>(over, under);
    else
        return ceilDiv<N>(over, under);
}

} // namespace tw::ops::resize
