// SPDX-License-Identifier: Apache-2.0
// Non-maximum suppression, for each class of each batch item on its own: of boxes that overlap, the one of the highest
// score stays.
//   boxes [n, b, 4], or [n, b, c, 4] for boxes of their own for each class (or c = 1); scores [n, b, c]; f32 or f16
//   most: i32 scalar, boxes that stay of a class at most; overlap (optional, 0) and least (optional, 0): f32 or f16 scalars
// Candidates are boxes with score > least, the `limit` best of them. From the best on, each stays unless its overlap with
// one that stays, area of the intersection / area of the union, is > overlap. Boxes without an area overlap nothing.
//   y0 [k, 3] i32: batch item, class, box of those that stay, by batch item, falling score, class, box. y1: k, i32 scalar.
// Equal scores are in the order of the boxes; NaN is no candidate. Overlaps are floats, rounded after each operation, so
// that every device keeps the same boxes.
#pragma once

#include "ir/attrs.h"
#include "tactic/reference.h"
#include "tactic/tactic.h"

namespace tw::ops::nms {

enum class BoxFormat : int32_t // same numbers as nvinfer1::BoundingBoxFormat
{
    kCornerPairs = 0, // any two corners that lie across
    kCenterSizes = 1, // centre, then sizes
};

struct Attrs : ir::AttrsOf<Attrs>
{
    BoxFormat format = BoxFormat::kCornerPairs;
    int64_t limit = 5000;

    void visit(ir::AttrVisitor& v) override
    {
        v.field(1, "format", format);
        v.field(2, "limit", limit);
    }
};

enum Input : int
{
    kBoxes,
    kScores,
    kMost,
    kOverlap,
    kLeast,
};

} // namespace tw::ops::nms
