// SPDX-License-Identifier: Apache-2.0
// What the files of CPU tactics share: where tuples of indices point, scatters that reduce.
#pragma once

#include <cstdint>

#include "base/extents.h"
#include "ops/scatter/op.h"
#include "tactic/tactic.h"

namespace tw::ops::scatter {

constexpr int64_t kOutside = -1;

// Where index i of a dimension of `size` elements points.
inline int64_t resolve(int32_t i, int64_t size)
{
    int64_t const p = i < 0 ? i + size : i;
    return p >= 0 && p < size ? p : kOutside;
}

// The slice of y that `k` indices name.
inline int64_t sliceAt(int32_t const* index, int k, Extents const& dims)
{
    int64_t at = 0;
    for (int d = 0; d < k; ++d) {
        int64_t const p = resolve(index[d], dims[d]);
        if (p == kOutside)
            return kOutside;
        at = at * dims[d] + p;
    }
    return at;
}

// Workspace: reductionBytes().
Result<void> runReduction(Attrs const& a, RunArgs& args);
int64_t reductionBytes(ir::Node const& node, std::span<TensorRef const> in, std::span<TensorRef const> out);

} // namespace tw::ops::scatter
