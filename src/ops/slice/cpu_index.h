// SPDX-License-Identifier: Apache-2.0
// Which element of x a coordinate of y is, for the CPU's kernels.
#pragma once

#include "ops/slice/op.h"
#include "tactic/vector_tactic.h"

namespace tw::ops::slice {

inline constexpr int64_t kOutside = -1;

inline int64_t sourceIndex(Mode mode, int64_t p, int64_t size)
{
    if (p >= 0 && p < size)
        return p;
    switch (mode) {
    case Mode::kWrap:
        p %= size;
        return p < 0 ? p + size : p;
    case Mode::kClamp:
        return p < 0 ? 0 : size - 1;
    case Mode::kReflect: {
        if (size == 1)
            return 0;
        int64_t const period = 2 * (size - 1);
        p %= period;
        p = p < 0 ? p + period : p;
        return p < size ? p : period - p;
    }
    default:
        return kOutside;
    }
}

extern VectorTactic const kEdges, kEdgesInt8; // cpu_edges.cpp

} // namespace tw::ops::slice
