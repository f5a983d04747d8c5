// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

#include <cmath>

#include "cases/draw.h"
#include "ops/proposals/op.h"

namespace tw::ops::proposals {

namespace {

CaseInput i32(Extents const& dims, std::vector<double> values = {})
{
    return input(DataType::kInt32, dims, std::move(values));
}

Attrs attrsOf(int64_t limit, int64_t keep, double overlap = 0.5)
{
    Attrs a;
    a.limit = limit;
    a.keep = keep;
    a.overlap = overlap;
    return a;
}

} // namespace

void cases(CaseList& list)
{
    constexpr double kNone = -INFINITY;
    // Boxes 0 and 1 overlap by 12 / 20, box 2 lies apart.
    CaseInput const boxes = f32({1, 3, 4}, {0, 0, 4, 4, 1, 0, 5, 4, 10, 10, 12, 12});
    CaseInput const scores = f32({1, 3}, {0.5, 0.75, 0.25});
    list.add("by_hand", attrsOf(9, 3), {boxes, scores},
             {{1, 0, 5, 4, 10, 10, 12, 12, 0, 0, 0, 0}, {0.75, 0.25, kNone}});
    list.add("less_overlap_by_hand", attrsOf(9, 3, 0.625), {boxes, scores},
             {{1, 0, 5, 4, 0, 0, 4, 4, 10, 10, 12, 12}, {0.75, 0.5, 0.25}});
    list.add("limit_by_hand", attrsOf(2, 2), {boxes, scores}, {{1, 0, 5, 4, 0, 0, 0, 0}, {0.75, kNone}});
    list.add("keep_by_hand", attrsOf(9, 1), {boxes, scores}, {{1, 0, 5, 4}, {0.75}});
    list.add("classes_by_hand", attrsOf(9, 4), {boxes, scores, absent(), i32({1, 3}, {2, 1, 1})},
             {{1, 0, 5, 4, 1, 0.75, 0, 0, 4, 4, 2, 0.5, 10, 10, 12, 12, 1, 0.25, 0, 0, 0, 0, -1, 0},
              {0.75, 0.5, 0.25, kNone}});
    Attrs thresholds = attrsOf(9, 3, 1);
    thresholds.least = 0.5;
    list.add("least_by_hand", thresholds, {boxes, scores}, {{1, 0, 5, 4, 0, 0, 4, 4, 0, 0, 0, 0}, {0.75, 0.5, kNone}});
    thresholds.above = 0.5;
    list.add("above_by_hand", thresholds, {boxes, scores},
             {{1, 0, 5, 4, 0, 0, 0, 0, 0, 0, 0, 0}, {0.75, kNone, kNone}});
    list.add("ties_by_hand", attrsOf(2, 3),
             {f32({1, 3, 4}, {0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5}), f32({1, 3}, {-0.0, 0, 0})},
             {{0, 0, 1, 1, 2, 2, 3, 3, 0, 0, 0, 0}, {0, 0, kNone}});
    Attrs moved = attrsOf(9, 1);
    moved.weights = {0.5, 0.25, 1, 1};
    list.add("deltas_by_hand", moved, {f32({1, 1, 4}, {2, 2, 6, 10}), f32({1, 1}, {1}), f32({1, 1, 4}, {1, -1, 0, 0})},
             {{4, 0, 8, 8}, {1}});
    moved.plus = 1;
    moved.limits = {7, 20};
    list.add("plus_by_hand", moved, {f32({1, 1, 4}, {2, 2, 5, 9}), f32({1, 1}, {1}), f32({1, 1, 4}, {1, -1, 0, 0})},
             {{4, 0, 7, 7}, {1}});
    moved.mostGrowth = 0;
    list.add("growth_by_hand", moved, {f32({1, 1, 4}, {2, 2, 5, 9}), f32({1, 1}, {1}), f32({1, 1, 4}, {0, 0, 3, 9})},
             {{2, 2, 5, 9}, {1}});
    Attrs sides = attrsOf(9, 3, 1);
    sides.areaPlus = 1;
    sides.minSide = 3;
    list.add("images_by_hand", sides,
             {f32({1, 3, 4}, {-1, -1, 30, 30, 0, 0, 4, 5, 0, 0, 5, 5}), f32({1, 3}, {1, 2, 3}), absent(), absent(),
              f32({1, 3}, {20, 11, 2})},
             {{0, 0, 5, 5, 0, 0, 10, 19, 0, 0, 0, 0}, {3, 1, kNone}});
    sides.minSide = 6;
    sides.isMinStrict = true;
    list.add("strict_by_hand", sides, {f32({1, 2, 4}, {0, 0, 5, 9, 0, 0, 6, 6}), f32({1, 2}, {2, 1})},
             {{0, 0, 6, 6, 0, 0, 0, 0, 0, 0, 0, 0}, {1, kNone, kNone}});
    list.add("plus_of_areas_by_hand",
             [&] {
                 Attrs a = attrsOf(9, 2, 0.25);
                 a.areaPlus = 1;
                 return a;
             }(),
             {f32({1, 2, 4}, {0, 0, 1, 1, 1, 0, 2, 1}), f32({1, 2}, {2, 1})}, {{0, 0, 1, 1, 0, 0, 0, 0}, {2, kNone}});
    list.add("not_numbers_by_hand",
             [&] {
                 Attrs a = attrsOf(9, 3);
                 a.limits = {10, 10};
                 return a;
             }(),
             {f32({1, 4, 4}, {NAN, 1, INFINITY, -INFINITY, 0, 0, 1, 1, 0, 0, 2, 2, 0, 0, 3, 3}),
              f32({1, 4}, {INFINITY, NAN, -INFINITY, 1})},
             {{0, 1, 10, 0, 0, 0, 3, 3, 0, 0, 0, 0}, {INFINITY, 1, kNone}});
    list.add("no_boxes", attrsOf(5, 2), {f32({2, 0, 4}), f32({2, 0})},
             {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, {kNone, kNone, kNone, kNone}});
    list.add("no_images", attrsOf(5, 2), {f32({0, 7, 4}), f32({0, 7})});

    for (int64_t count : {63, 64, 65, 255, 257, 1500})
        for (int64_t limit : {30, 64, 200, 6000}) {
            std::string const name = fmt::format("{}_of_{}", limit, count);
            list.add(name, attrsOf(limit, 50), {f32({2, count, 4}), f32({2, count})});
            list.add(name + "_classes", attrsOf(limit, 300, 0.2),
                     {f32({1, count, 4}), f32({2, count}), f32({2, count, 4}), i32({2, count})});
        }
    Attrs all = attrsOf(300, 40, 0.3);
    all.weights = {0.1, 0.2, 0.3, 0.4};
    all.mostGrowth = 0.2;
    all.least = -5;
    all.above = -10;
    all.plus = all.areaPlus = 1;
    all.minSide = 2.5;
    list.add("all_but_limits", all,
             {f32({3, 700, 4}), f32({3, 700}), f32({3, 700, 4}), i32({3, 700}),
              f32({3, 3}, {9, 12, 1, 12, 9, 0.5, 5, 6, 1})});
    all.limits = {9, 7};
    list.add("all_but_images", all, {f32({1, 700, 4}), f32({3, 700}), f32({3, 700, 4}), i32({3, 700})});
    all.isMinStrict = true;
    list.add("half", all,
             {input(DataType::kHalf, {1, 500, 4}), input(DataType::kHalf, {2, 500}),
              input(DataType::kHalf, {2, 500, 4}), absent(), input(DataType::kHalf, {2, 3}, {12, 11, 1, 11, 12, 0.5})});
    list.add("no_suppression", attrsOf(100, 100, INFINITY), {f32({2, 400, 4}), f32({2, 400})});
    list.add("many", attrsOf(4096, 1000, 0.7), {f32({1, 10000, 4}), f32({1, 10000}), f32({1, 10000, 4})});
}

void randomCase(CaseList& list, Draw& d, std::string const& name)
{
    Attrs a = attrsOf(d.from(1, 300), d.from(1, 100), double(d.from(0, 10)) / 10);
    a.plus = double(d.from(0, 1));
    a.areaPlus = double(d.from(0, 1));
    if (d.chance(40))
        a.limits = {double(d.from(1, 12)), double(d.from(1, 12))};
    if (d.chance(40))
        a.minSide = double(d.from(0, 4));
    if (d.chance(40))
        a.least = double(d.from(-10, 10));
    int64_t const n = d.from(1, 3), count = d.size(300);
    std::vector<CaseInput> in{input(d.type(), {d.chance(50) ? n : 1, count, 4}), input(d.type(), {n, count})};
    if (d.chance(70))
        in.push_back(d.chance(70) ? input(d.type(), {n, count, 4}) : absent());
    if (in.size() > 2 && d.chance(70))
        in.push_back(d.chance(70) ? i32({n, count}) : absent());
    if (in.size() > 3 && d.chance(50))
        in.push_back(f32({n, 3}));
    list.add(name, a, std::move(in));
}

} // namespace tw::ops::proposals
