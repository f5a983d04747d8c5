// SPDX-License-Identifier: Apache-2.0
// The boxes that stay of the detections of each image: non-maximum suppression with outputs of fixed sizes, as detection
// plugins have it.
//   boxes [n, b, 4], or [n, b, c, 4] for boxes of their own for each class (or c = 1); scores [n, b, c]; anchors (optional)
//   [n or 1, b, 4]; f32 or f16
// Candidates are (box, class) with score >= least (> with aboveLeast), the class not being the background; with sigmoid
// the score is that of the element. They stand by falling score, ties by box, then class (by class, then box, with
// classesFirst). The best `limit` of an image and the best `limitOfClass` of each class take part. In this order each
// stays unless its overlap with one of its class that stays is >= overlap (> with aboveOverlap). Of those that stay,
// those beyond `mostOfClass` of their class are not written, and the first `most` that are end the search.
//   y0 [n, 1] i32: how many; y1 [n, most, 4]: their boxes; y2 [n, most]: scores; y3 [n, most] i32: classes. The rest are
//   boxes 0, scores 0 and classes `noClass`. With rows: y0 [n most, 3] i32 alone, image, class and box of all images one
//   after the other; the rest repeat the last of these, all are -1 where there is none.
// A box is any two corners that lie across, and goes out so; or its centre and its sizes, and goes out as corners.
// Anchors are of the same kind: corners are added in order, centres and sizes are (y ah + ay, x aw + ax, ah exp(h), aw
// exp(w)). Overlap: area of the intersection / area of the union; `pixels` says what a side is longer than the difference
// of its ends. Boxes without an area overlap nothing. NaN is no candidate.
// Boxes and overlaps are floats, rounded after each operation, so that every device keeps the same boxes.
#pragma once

#include "ir/attrs.h"
#include "ir/op_def.h"
#include "tactic/reference.h"
#include "tactic/tactic.h"

namespace tw::ops::detection {

enum class Coding : int32_t
{
    kCorners = 0,
    kCenterSizes = 1,
};

enum class Pixels : int32_t
{
    kNone = 0,
    kAreas = 1, // 1 longer in the areas of both boxes
    kAll = 2,   // in that of the intersection, too: of boxes apart it is 1
};

struct Attrs : ir::AttrsOf<Attrs>
{
    Coding coding = Coding::kCorners;
    Pixels pixels = Pixels::kNone;
    double least = 0;
    bool aboveLeast = false, sigmoid = false;
    double overlap = 0.5;
    bool aboveOverlap = false;
    int64_t most = 100;
    int64_t mostOfClass = 0, limit = 0, limitOfClass = 0; // 0: any
    int64_t background = -1;                              // -1: none
    int64_t noClass = 0;
    bool classesFirst = false;
    bool clips = false; // the boxes put out, to [0, 1]
    bool rows = false;
    bool countBits = false; // y0 is f32 [n, 1, 1, 1], whose bits are the numbers

    void visit(ir::AttrVisitor& v) override
    {
        v.field(1, "coding", coding);
        v.field(2, "pixels", pixels);
        v.field(3, "least", least);
        v.field(4, "above_least", aboveLeast);
        v.field(5, "sigmoid", sigmoid);
        v.field(6, "overlap", overlap);
        v.field(7, "above_overlap", aboveOverlap);
        v.field(8, "most", most);
        v.field(9, "most_of_class", mostOfClass);
        v.field(10, "limit", limit);
        v.field(11, "limit_of_class", limitOfClass);
        v.field(12, "background", background);
        v.field(13, "no_class", noClass);
        v.field(14, "classes_first", classesFirst);
        v.field(15, "clips", clips);
        v.field(16, "rows", rows);
        v.field(17, "count_bits", countBits);
    }
};

enum Input : int
{
    kBoxes,
    kScores,
    kAnchors,
};

// What elements are compared with: the least score, or the element whose sigmoid it is. NaN: nothing passes.
float leastElement(Attrs const& a);
// Candidates of an image that any search looks at, at most; boxes that it keeps.
int64_t mostCandidates(Attrs const& a, int64_t elements);
int64_t mostKept(Attrs const& a, int64_t elements);

} // namespace tw::ops::detection
