// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

#include <cmath>
#include <limits>

#include "cases/draw.h"
#include "ops/detection/op.h"

namespace tw::ops::detection {

namespace {

template <class F>
Attrs attrs(F set)
{
    Attrs a;
    set(a);
    return a;
}

// Boxes 0 and 1 overlap by 12 / 20, box 2 lies apart, box 3 is box 0 by its other corners.
std::vector<double> const kFourBoxes = {0, 0, 4, 4, 1, 0, 5, 4, 10, 10, 12, 12, 4, 4, 0, 0};
std::vector<double> const kFourScores = {0.5, 0, 0.75, 0.25, 0.375, 0, 0.625, 0.125};

void byHand(CaseList& list)
{
    CaseInput const boxes = f32({1, 4, 4}, kFourBoxes), scores = f32({1, 4, 2}, kFourScores);
    list.add("by_hand", attrs([](Attrs& a) { a.least = 0.2, a.most = 4; }), {boxes, scores},
             {{3}, {1, 0, 5, 4, 10, 10, 12, 12, 1, 0, 5, 4, 0, 0, 0, 0}, {0.75, 0.375, 0.25, 0}, {0, 0, 1, 0}});
    list.add("overlap_by_hand", attrs([](Attrs& a) { a.overlap = 0.7, a.least = 0.3, a.most = 5, a.noClass = -1; }),
             {boxes, scores},
             {{3},
              {1, 0, 5, 4, 4, 4, 0, 0, 10, 10, 12, 12, 0, 0, 0, 0, 0, 0, 0, 0},
              {0.75, 0.625, 0.375, 0, 0},
              {0, 0, 0, -1, -1}});
    // 12 / 20 is 0.6, as the threshold is.
    auto const two = f32({1, 2, 4}, {0, 0, 4, 4, 1, 0, 5, 4});
    list.add("just_as_much_by_hand", attrs([](Attrs& a) { a.overlap = 0.6F, a.most = 2; }),
             {two, f32({1, 2, 1}, {2, 1})}, {{1}, {0, 0, 4, 4, 0, 0, 0, 0}, {2, 0}, {0, 0}});
    list.add("not_more_by_hand", attrs([](Attrs& a) { a.overlap = 0.6F, a.aboveOverlap = true, a.most = 2; }),
             {two, f32({1, 2, 1}, {2, 1})}, {{2}, {0, 0, 4, 4, 1, 0, 5, 4}, {2, 1}, {0, 0}});
    list.add("scores_above_by_hand", attrs([](Attrs& a) { a.least = 1, a.aboveLeast = true, a.most = 2; }),
             {two, f32({1, 2, 1}, {2, 1})}, {{1}, {0, 0, 4, 4, 0, 0, 0, 0}, {2, 0}, {0, 0}});
    list.add("centers_by_hand", attrs([](Attrs& a) { a.coding = Coding::kCenterSizes, a.most = 2; }),
             {f32({1, 3, 4}, {2, 2, 4, 4, 3, 2, 4, 4, 11, 11, 2, 2}), f32({1, 3, 1}, {1, 2, 3})},
             {{2}, {10, 10, 12, 12, 1, 0, 5, 4}, {3, 2}, {0, 0}});
    list.add(
        "anchors_by_hand", attrs([](Attrs& a) { a.most = 2; }),
        {f32({1, 2, 4}, {1, 1, 0, 0, 0, 0, 1, 1}), f32({1, 2, 1}, {1, 2}), f32({1, 2, 4}, {0, 0, 4, 4, 9, 9, 8, 8})},
        {{2}, {8, 8, 10, 10, 0, 0, 5, 5}, {2, 1}, {0, 0}});
    list.add("center_anchors_by_hand", attrs([](Attrs& a) { a.coding = Coding::kCenterSizes, a.most = 1; }),
             {f32({1, 1, 4}, {0.5, -1, 0, 0}), f32({1, 1, 1}, {1}), f32({1, 1, 4}, {8, 8, 4, 2})},
             {{1}, {8, 5, 12, 7}, {1}, {0}});
    list.add("sigmoid_by_hand", attrs([](Attrs& a) { a.sigmoid = true, a.least = 0.5, a.most = 3; }),
             {f32({1, 3, 4}, {0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5}), f32({1, 3, 1}, {0, -1, std::log(3.0)})},
             {{2}, {4, 4, 5, 5, 0, 0, 1, 1, 0, 0, 0, 0}, {0.75, 0.5, 0}, {0, 0, 0}});
    auto const apart = f32({1, 3, 4}, {0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5});
    auto const same = f32({1, 3, 2}, {1, 1, 1, 1, 1, 1});
    list.add("ties_by_hand", attrs([](Attrs& a) { a.most = 3; }), {apart, same},
             {{3}, {0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 3, 3}, {1, 1, 1}, {0, 1, 0}});
    list.add("ties_of_classes_by_hand", attrs([](Attrs& a) { a.most = 4, a.classesFirst = true; }), {apart, same},
             {{4}, {0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 0, 0, 1, 1}, {1, 1, 1, 1}, {0, 0, 0, 1}});
    list.add("background_by_hand", attrs([](Attrs& a) { a.most = 4, a.background = 0; }), {apart, same},
             {{3}, {0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 0, 0, 0, 0}, {1, 1, 1, 0}, {1, 1, 1, 0}});
    list.add("limits_by_hand", attrs([](Attrs& a) { a.most = 4, a.limit = 3, a.limitOfClass = 1; }), {apart, same},
             {{2}, {0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0}, {1, 1, 0, 0}, {0, 1, 0, 0}});
    // Box 1 of class 0 is not written, and suppresses box 2.
    list.add("most_of_class_by_hand", attrs([](Attrs& a) { a.most = 4, a.mostOfClass = 1; }),
             {f32({1, 3, 4}, {0, 0, 1, 1, 2, 2, 3, 3, 2, 2, 3, 3}), f32({1, 3, 2}, {3, -1, 2, -1, 1, 0.5})},
             {{2}, {0, 0, 1, 1, 2, 2, 3, 3, 0, 0, 0, 0, 0, 0, 0, 0}, {3, 0.5, 0, 0}, {0, 1, 0, 0}});
    list.add("clipped_by_hand", attrs([](Attrs& a) { a.most = 1, a.clips = true; }),
             {f32({1, 1, 4}, {-1, 0.5, 2, 0.75}), f32({1, 1, 1}, {1})}, {{1}, {0, 0.5, 1, 0.75}, {1}, {0}});
    list.add("rows_by_hand", attrs([](Attrs& a) { a.most = 3, a.rows = true, a.least = 1; }),
             {f32({3, 2, 4}, {0, 0, 1, 1, 2, 2, 3, 3, 0, 0, 1, 1, 2, 2, 3, 3, 0, 0, 1, 1, 2, 2, 3, 3}),
              f32({3, 2, 2}, {0, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 5})},
             {{0, 0, 1, 0, 1, 0, 2, 1, 1, 2, 1, 1, 2, 1, 1, 2, 1, 1, 2, 1, 1, 2, 1, 1, 2, 1, 1}});
    list.add("no_rows_by_hand", attrs([](Attrs& a) { a.most = 2, a.rows = true, a.least = 9; }),
             {f32({1, 2, 4}, {0, 0, 1, 1, 2, 2, 3, 3}), f32({1, 2, 1}, {1, 2})}, {{-1, -1, -1, -1, -1, -1}})
        .isConstant = true;
}

void pixelsByHand(CaseList& list)
{
    // Sides 4 and 4, shared 3 x 4: 12 / 20; areas of 25: 12 / 38; and of shared 4 x 5: 20 / 30.
    auto const two = f32({1, 2, 4}, {0, 0, 4, 4, 1, 0, 5, 4});
    auto const scores = f32({1, 2, 1}, {2, 1});
    for (auto [pixels, overlap, name] :
         {std::tuple{Pixels::kAreas, 12. / 38, "areas"}, {Pixels::kAll, 20. / 30, "all"}})
        for (bool more : {false, true})
            list.add(std::string("pixels_") + name + (more ? "_more_by_hand" : "_less_by_hand"),
                     attrs([&, pixels = pixels, overlap = overlap](Attrs& a) {
                         a.pixels = pixels;
                         a.overlap = overlap + (more ? 0.01 : -0.01);
                         a.most = 2;
                     }),
                     {two, scores},
                     {{more ? 2. : 1.},
                      more ? std::vector<double>{0, 0, 4, 4, 1, 0, 5, 4} : std::vector<double>{0, 0, 4, 4, 0, 0, 0, 0},
                      {2, more ? 1. : 0.},
                      {0, 0}});
    // Apart, 1 x 1 is shared: 1 / (4 + 4 - 1).
    list.add("pixels_apart_by_hand", attrs([](Attrs& a) { a.pixels = Pixels::kAll, a.overlap = 0.14, a.most = 2; }),
             {f32({1, 2, 4}, {0, 0, 1, 1, 5, 5, 6, 6}), scores}, {{1}, {0, 0, 1, 1, 0, 0, 0, 0}, {2, 0}, {0, 0}});
}

void oddNumbers(CaseList& list)
{
    double const nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
    list.add("scores_by_hand", attrs([inf](Attrs& a) { a.least = -inf, a.most = 6; }),
             {f32({1, 6, 4}, {0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11}),
              f32({1, 6, 1}, {nan, -inf, -0.0, inf, 0, -nan})},
             {{4},
              {6, 6, 7, 7, 4, 4, 5, 5, 8, 8, 9, 9, 2, 2, 3, 3, 0, 0, 0, 0, 0, 0, 0, 0},
              {inf, 0, 0, -inf, 0, 0},
              {0, 0, 0, 0, 0, 0}});
    list.add("boxes_by_hand", attrs([](Attrs& a) { a.overlap = 0.25, a.most = 5; }),
             {f32({1, 5, 4}, {0, 0, inf, inf, 1, 1, 1, 3, nan, 0, 4, 4, -inf, -inf, inf, inf, 0, 0, 4, 4}),
              f32({1, 5, 1}, {5, 4, 3, 2, 1})},
             {{5},
              {0, 0, inf, inf, 1, 1, 1, 3, nan, 0, 4, 4, -inf, -inf, inf, inf, 0, 0, 4, 4},
              {5, 4, 3, 2, 1},
              {0, 0, 0, 0, 0}});
    list.add("overlap_below_zero", attrs([](Attrs& a) { a.overlap = -1, a.most = 5, a.aboveOverlap = true; }),
             {f32({2, 9, 4}), f32({2, 9, 2})});
    list.add("no_boxes", attrs([](Attrs& a) { a.most = 3; }), {f32({2, 0, 4}), f32({2, 0, 3})}).isConstant = true;
    list.add("no_classes", attrs([](Attrs& a) { a.most = 3; }), {f32({2, 5, 4}), f32({2, 5, 0})}).isConstant = true;
    list.add("no_items", attrs([](Attrs& a) { a.most = 3; }), {f32({0, 5, 4}), f32({0, 5, 2})});
    list.add("no_items_rows", attrs([](Attrs& a) { a.most = 3, a.rows = true; }), {f32({0, 5, 4}), f32({0, 5, 2})});
    list.add("nobody", attrs([](Attrs& a) { a.most = 3, a.least = 100; }), {f32({2, 5, 4}), f32({2, 5, 3})})
        .isConstant = true;
}

} // namespace

void cases(CaseList& list)
{
    byHand(list);
    pixelsByHand(list);
    oddNumbers(list);
    DataType const half = DataType::kHalf;
    for (Coding coding : {Coding::kCorners, Coding::kCenterSizes}) {
        std::string const name = coding == Coding::kCorners ? "corners" : "centers";
        Attrs const a = attrs([&](Attrs& v) { v.coding = coding, v.most = 20, v.overlap = 0.3, v.limit = 5000; });
        list.add(name, a, {f32({3, 40, 4}), f32({3, 40, 5})});
        list.add(name + "_of_classes", a, {f32({2, 30, 4, 4}), f32({2, 30, 4})});
        list.add(name + "_shared", a, {f32({2, 30, 1, 4}), f32({2, 30, 4})});
        list.add(name + "_anchors", a, {f32({2, 33, 4}), f32({2, 33, 3}), f32({1, 33, 4})});
        list.add(name + "_own_anchors", a, {f32({2, 33, 4}), f32({2, 33, 3}), f32({2, 33, 4})});
        list.add(name + "_half", a, {input(half, {2, 50, 4}), input(half, {2, 50, 3})});
        list.add(name + "_half_scores", a, {f32({2, 50, 4}), input(half, {2, 50, 3})});
        Attrs b = a;
        b.sigmoid = true;
        list.add(name + "_sigmoid", b, {f32({2, 70, 4}), f32({2, 70, 3})});
        list.add(name + "_sigmoid_half", b, {input(half, {2, 70, 4}), input(half, {2, 70, 3})});
    }
    auto const classical = [](Attrs& a) {
        a.aboveLeast = a.aboveOverlap = a.classesFirst = true;
        a.noClass = -1;
    };
    list.add("classical", attrs([&](Attrs& a) { classical(a), a.limitOfClass = 7, a.background = 1; }),
             {f32({2, 60, 4}), f32({2, 60, 4})});
    list.add("classical_pixels",
             attrs([&](Attrs& a) { classical(a), a.limitOfClass = 30, a.pixels = Pixels::kAll, a.clips = true; }),
             {f32({2, 60, 5, 4}), f32({2, 60, 5})});
    list.add("classical_many", attrs([&](Attrs& a) { classical(a), a.most = 700, a.overlap = 0.9; }),
             {f32({2, 900, 1, 4}), f32({2, 900, 3})});
    list.add("most_of_class", attrs([&](Attrs& a) { a.mostOfClass = 3, a.most = 30; }),
             {f32({2, 90, 4}), f32({2, 90, 4})});
    list.add("rows", attrs([](Attrs& a) { a.rows = true, a.most = 9, a.least = 5; }),
             {f32({5, 30, 4}), f32({5, 30, 2})});
    list.add("count_bits", attrs([](Attrs& a) { a.countBits = true, a.most = 9; }), {f32({2, 30, 4}), f32({2, 30, 2})});
    list.add("one_class_many", attrs([](Attrs& a) { a.limit = 5000, a.most = 300, a.overlap = 0.8; }),
             {f32({1, 10000, 4}), f32({1, 10000, 1})});
    list.add("equal_scores_many",
             attrs([](Attrs& a) { a.limit = 1000, a.least = 3, a.aboveLeast = true, a.most = 100, a.overlap = 0.2; }),
             {f32({2, 3000, 4}), f32({2, 3000, 7})});
    list.add("few_apart", attrs([](Attrs& a) { a.most = 500, a.overlap = 0.05; }),
             {f32({1, 6000, 4}), f32({1, 6000, 2})});
    list.add("yolo", attrs([](Attrs& a) { a.coding = Coding::kCenterSizes, a.limit = 5000, a.least = 0.25; }),
             {f32({1, 2100, 4}), f32({1, 2100, 80})});
}

void randomCase(CaseList& list, Draw& d, std::string const& name)
{
    Attrs a;
    a.coding = Coding(d.from(0, 1));
    a.pixels = Pixels(d.from(0, 2));
    a.sigmoid = d.chance(30);
    a.least = double(d.from(-1, 3)) / (a.sigmoid ? 4 : 1);
    a.overlap = double(d.from(1, 9)) / 10;
    a.aboveLeast = d.chance(50);
    a.aboveOverlap = d.chance(50);
    a.classesFirst = d.chance(50);
    a.clips = d.chance(30);
    a.rows = d.chance(20);
    a.most = d.from(1, 60);
    a.mostOfClass = d.chance(30) ? d.from(1, 5) : 0;
    a.limit = d.chance(50) ? d.from(1, 300) : 0;
    a.limitOfClass = d.chance(30) ? d.from(1, 30) : 0;
    a.background = d.from(-1, 2);
    int64_t const n = d.from(1, 3), boxes = d.size(130), classes = d.from(1, 6);
    Extents const shape = d.chance(60) ? Extents{n, boxes, 4} : Extents{n, boxes, d.chance(50) ? classes : 1, 4};
    std::vector<CaseInput> in{input(d.type(), shape), input(d.type(), {n, boxes, classes})};
    if (d.chance(30))
        in.push_back(f32({d.chance(50) ? n : 1, boxes, 4}));
    list.add(name, a, std::move(in));
}

} // namespace tw::ops::detection
