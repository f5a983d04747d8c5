// SPDX-License-Identifier: Apache-2.0
// How x is walked on a CPU.
#pragma once

#include "ops/reduce/op.h"
#include "tactic/tactic.h"

namespace tw::ops::reduce {

inline constexpr int64_t kPiece = 4096; // floats that are summed in float

// x with neighbouring axes of the same kind joined and axes of size 1 left out, split into loops.
struct Loops
{
    Extents kept, keptStrides;       // all kept axes but `inner`
    Extents reduced, reducedStrides; // all reduced axes but `inner`
    int64_t inner = 1;               // the last axis, contiguous
    bool innerReduced = true;
    int64_t count = 1; // elements of x in one of y

    Loops(Attrs const& a, Extents const& x)
    {
        Extents size, stride;
        bool isReduced[kMaxRank]{};
        Extents const strides = stridesOf(x);
        for (int i = 0; i < x.rank; ++i) {
            if (a.has(i))
                count *= x[i];
            if (x[i] == 1)
                continue;
            if (size.rank > 0 && isReduced[size.rank - 1] == a.has(i)) {
                size[size.rank - 1] *= x[i];
                stride[size.rank - 1] = strides[i];
            } else {
                isReduced[size.rank] = a.has(i);
                size.push(x[i]);
                stride.push(strides[i]);
            }
        }
        if (size.rank > 0) {
            inner = size[--size.rank];
            innerReduced = isReduced[size.rank];
        }
        for (int i = 0; i < size.rank; ++i) {
            (isReduced[i] ? reduced : kept).push(size[i]);
            (isReduced[i] ? reducedStrides : keptStrides).push(stride[i]);
        }
    }
};

// Where the piece of x begins that kept index `k` stands for.
inline int64_t keptOffset(Loops const& loops, int64_t k)
{
    int64_t offset = 0;
    for (int i = loops.kept.rank - 1; i >= 0; --i) {
        offset += k % loops.kept[i] * loops.keptStrides[i];
        k /= loops.kept[i];
    }
    return offset;
}

// Everything that the op allows.
Result<void> runPlain(ir::Node const& node, RunArgs& args);

} // namespace tw::ops::reduce
