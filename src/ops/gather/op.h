// SPDX-License-Identifier: Apache-2.0
// Takes elements of the data x (any type, rank r >= 1) at the indices j (i32, rank q), n = elementWiseDims:
//   default: y[B, P, J, S] = x[B, P, j[B, J], S]   x [B.., P.., L, S..] with L on `axis`, j [B.., J..], B of n (0 or 1)
//            dimensions that broadcast; rank of y: q + r - 1 - n
//   element: y[I] = x[I with I[axis] replaced by j[I]]   y has the shape of j; q = r, n = 0
//   nd:      y[B, J, S] = x[B, j[B, J, :], S]   j [B.., J.., k], x [B.., k dimensions, S..];
//            rank of y: q + r - k - 1 - n
// An index i in [-L, 0) means i + L; one out of [-L, L) gives the value 0.
#pragma once

#include "base/extents.h"
#include "ir/attrs.h"

namespace tw::ops::gather {

enum class Mode : int32_t // same numbers as nvinfer1::GatherMode
{
    kDefault = 0,
    kElement = 1,
    kNd = 2,
};

struct Attrs : ir::AttrsOf<Attrs>
{
    int64_t axis = 0; // without effect for nd
    Mode mode = Mode::kDefault;
    int64_t elementWiseDims = 0;

    bool isPlain() const { return mode == Mode::kDefault && elementWiseDims == 0; }
    void visit(ir::AttrVisitor& v) override
    {
        v.field(1, "axis", axis);
        v.field(2, "mode", mode);
        v.field(3, "element_wise_dims", elementWiseDims);
    }
};

} // namespace tw::ops::gather
