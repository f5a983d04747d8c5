// SPDX-License-Identifier: Apache-2.0
// Regions of feature maps, each brought to the same size.
//   rois   [n, r, 4], or [r, 4] where `images` says whose they are: two corners, x y x y or (isRowFirst) y x y x
//   images (optional) [r] i32: the image of each roi; one that there is not gives 0
//   maps   one to kMostMaps [n, c, h, w], f32 or f16 for all; rois f32 or f16 for themselves
//   y      [n, r, c, height, width], or [r, c, height, width] with images; of the maps' type
// Level: that of the map, the number of `areas` that the roi's area exceeds. isEmptySkipped: a roi whose second corner is
// not behind its first gives 0.
// Along an axis of `size` pixels and `bins` bins (height or width), from the corners v0 and v1:
//   scaled      u = v * scale / 2^level
//   normalized  u = v * size, of corners grids v * (size - 1)
//   tidied      v in order, in [0, side] and by `side` of the image where isAbsolute, else in [0, 1]; then as normalized.
//               isPlusOne: 1 / side is added to each side of the roi for its area.
//   grid           begin      step                    offset of samples
//   half_pixel     u0 - 0.5   (u1 - u0) / bins        0.5
//   at_least_one   u0         max(u1 - u0, 1) / bins  0.5
//   whole          u0         (u1 - u0) / bins        0.5
//   edges          u0         (u1 - u0) / bins        0
//   corners        u0         (u1 - u0) / (bins - 1)  0; one bin: step 0 at the middle
// A bin has as many samples along an axis as `samples` says; 0: ceil((u1 - u0) / bins), of tidied rois 1 at least, and
// kMostSamples at most. Sample k of bin i stands at begin + step * (i + (k + offset) / samples); it mixes the pixels around
// it. Places outside of [0, size - 1] go to its edge (clamp, and fade, where those outside of [-1, size] and NaN count 0), or
// count 0 (zero). avg: the mean of the samples; max: the largest product of a pixel and its weight in a mix (NaN is passed
// over, a weight of 0 gives 0). A bin without samples gives 0.
//   pooled (max and scaled alone): whole pixels from floor(i * step) to ceil((i + 1) * step) behind round(u0), step =
//   max(round(u1) - round(u0) + 1, 1) / bins; half is rounded away from 0. Those outside of the map are left out.
// Places, levels and areas are floats, rounded after each operation, so that every device takes the same pixels.
#pragma once

#include "ir/attrs.h"
#include "ir/op_def.h"
#include "tactic/reference.h"
#include "tactic/tactic.h"

namespace tw::ops::roi_align {

inline constexpr int64_t kMostSamples = 4096, kMostBins = 4096, kMostMaps = 8;

enum class Mode : int32_t
{
    kAverage = 0,
    kMax = 1,
};

enum class Boxes : int32_t
{
    kScaled = 0,
    kNormalized = 1,
    kTidied = 2,
};

enum class Grid : int32_t
{
    kHalfPixel = 0,
    kAtLeastOne = 1,
    kWhole = 2,
    kEdges = 3,
    kCorners = 4,
    kPooled = 5,
};

enum class Outside : int32_t
{
    kFade = 0,
    kZero = 1,
    kClamp = 2,
};

struct Attrs : ir::AttrsOf<Attrs>
{
    Mode mode = Mode::kAverage;
    Boxes boxes = Boxes::kScaled;
    Grid grid = Grid::kHalfPixel;
    Outside outside = Outside::kFade;
    int64_t height = 1, width = 1, samples = 0;
    double scale = 1;
    bool isRowFirst = false, isAbsolute = false, isPlusOne = false, isEmptySkipped = false;
    double imageHeight = 1, imageWidth = 1;
    std::vector<double> areas;

    void visit(ir::AttrVisitor& v) override
    {
        v.field(1, "mode", mode);
        v.field(2, "boxes", boxes);
        v.field(3, "grid", grid);
        v.field(4, "outside", outside);
        v.field(5, "height", height);
        v.field(6, "width", width);
        v.field(7, "samples", samples);
        v.field(8, "scale", scale);
        v.field(9, "is_row_first", isRowFirst);
        v.field(10, "is_absolute", isAbsolute);
        v.field(11, "is_plus_one", isPlusOne);
        v.field(12, "is_empty_skipped", isEmptySkipped);
        v.field(13, "image_height", imageHeight);
        v.field(14, "image_width", imageWidth);
        v.field(15, "areas", areas);
    }
};

enum Input : int
{
    kRois,
    kImages,
    kMaps, // and all behind it
};

// Taps of all bins along an axis, pixels with their weights, fit into this many places. Of bins that follow each other
// the next begins at the pixel before the last one's end or behind it, so that those of bin i fit in from its first pixel
// + 2 i on.
inline int64_t tapsOf(Attrs const& a, int64_t bins, int64_t size)
{
    return a.samples > 0 && a.grid != Grid::kPooled ? 2 * a.samples * bins : size + 2 * bins;
}

} // namespace tw::ops::roi_align
