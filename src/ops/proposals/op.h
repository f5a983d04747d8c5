// SPDX-License-Identifier: Apache-2.0
// The best of scored boxes, without those that overlap better ones of their class: what detectors propose.
//   boxes    [n or 1, a, 4]: low corner along two axes, high corner along both
//   scores   [n, a]
//   deltas   (optional) [n, a, 4]: how far boxes move along both axes, and how much they grow
//   classes  (optional) [n, a] i32; without them there is one class
//   images   (optional) [n, 3]: height, width, scale
//   y0       [n, keep, 4]: boxes; with classes [n, keep, 6]: box, class, score; y1 [n, keep]: scores; f32
// Boxes, scores, deltas and images are f32 or f16, each for itself. Along an axis, with the weights w of its two deltas d:
//   side = high - low + plus           centre = low + side / 2 + d0 w0 side
//   grown = exp(min(d1 w1, mostGrowth)) side
//   low' = centre - grown / 2          high' = low' + grown - plus
// and each corner into [0, limit], NaN to 0, where there are `limits`, those of the axes, or images, whose width - 1 and
// height - 1 are the limits. Candidates are boxes with score >= least, score > above and both sides + areaPlus
// >= minSide (isMinStrict: >), times the image's scale where there are images. The `limit` best of them are looked at, best
// first: each stays unless its overlap with one that stays of the same class, area of the intersection / area of the
// union, is > overlap; areaPlus is added to sides. The first `keep` of those that stay go out, then boxes 0 0 0 0 of class
// -1 and score 0, in y1 -infinity.
// Equal scores are in the order of the boxes; NaN is no candidate. Everything is in floats, rounded after each operation,
// so that every device keeps the same boxes.
#pragma once

#include <limits>

#include "ir/attrs.h"
#include "ir/op_def.h"
#include "tactic/reference.h"
#include "tactic/tactic.h"

namespace tw::ops::proposals {

inline constexpr int64_t kMostBoxes = 65536; // that are looked at, and that stay

struct Attrs : ir::AttrsOf<Attrs>
{
    int64_t limit = 1000, keep = 100;
    double overlap = 0.5;
    double least = -std::numeric_limits<float>::infinity(), above = -std::numeric_limits<float>::infinity();
    std::vector<double> weights = {1, 1, 1, 1}, limits;
    double mostGrowth = std::numeric_limits<float>::infinity();
    double plus = 0, areaPlus = 0;
    double minSide = -std::numeric_limits<float>::infinity();
    bool isMinStrict = false;

    void visit(ir::AttrVisitor& v) override
    {
        v.field(1, "limit", limit);
        v.field(2, "keep", keep);
        v.field(3, "overlap", overlap);
        v.field(4, "least", least);
        v.field(5, "above", above);
        v.field(6, "weights", weights);
        v.field(7, "limits", limits);
        v.field(8, "most_growth", mostGrowth);
        v.field(9, "plus", plus);
        v.field(10, "area_plus", areaPlus);
        v.field(11, "min_side", minSide);
        v.field(12, "is_min_strict", isMinStrict);
    }
    bool asksSides() const { return minSide > -std::numeric_limits<float>::infinity(); }
};

enum Input : int
{
    kBoxes,
    kScores,
    kDeltas,
    kClasses,
    kImages,
};

} // namespace tw::ops::proposals
