// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

#include "cases/draw.h"
#include "ops/nms/op.h"

namespace tw::ops::nms {

void cases(CaseList& list)
{
    auto most = [](double n) { return input(DataType::kInt32, {}, {n}); };
    auto scalar = [](double v) { return f32({}, {v}); };
    auto with = [](BoxFormat format, int64_t limit) {
        Attrs a;
        a.format = format;
        a.limit = limit;
        return a;
    };
    // Boxes 0 and 1 overlap by 12 / 20, box 2 lies apart, box 3 is box 0 by its other corners.
    CaseInput const boxes = f32({1, 4, 4}, {0, 0, 4, 4, 1, 0, 5, 4, 10, 10, 12, 12, 4, 4, 0, 0});
    CaseInput const scores = f32({1, 4, 2}, {0.9, 0.1, 0.8, 0.7, 0.5, 0.2, 0.3, 0});
    Attrs const plain;
    list.add("by_hand", plain, {boxes, scores, most(10)}, {{0, 0, 0, 0, 1, 1, 0, 0, 2, 0, 1, 2}, {4}});
    list.add("thresholds_by_hand", plain, {boxes, scores, most(10), scalar(0.7), scalar(0.4)},
             {{0, 0, 0, 0, 0, 1, 0, 1, 1, 0, 0, 2}, {4}});
    list.add("just_not_more_by_hand", plain,
             {boxes, f32({1, 4, 1}, {4, 3, 2, 1}), most(10), scalar(0.6000001), absent()},
             {{0, 0, 0, 0, 0, 1, 0, 0, 2}, {3}});
    list.add("most_by_hand", plain, {boxes, scores, most(1)}, {{0, 0, 0, 0, 1, 1}, {2}});
    list.add("limit_by_hand", with(BoxFormat::kCornerPairs, 2), {boxes, scores, most(10)},
             {{0, 0, 0, 0, 1, 1, 0, 1, 2}, {3}});
    list.add("centers_by_hand", with(BoxFormat::kCenterSizes, 5000),
             {f32({1, 3, 4}, {2, 2, 4, 4, 3, 2, 4, 4, 11, 11, 2, 2}), f32({1, 3, 1}, {1, 2, 3}), most(5), scalar(0.5)},
             {{0, 0, 2, 0, 0, 1}, {2}});
    list.add("ties_by_hand", plain,
             {f32({1, 3, 4}, {0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5}), f32({1, 3, 2}, {1, 1, 1, 1, 1, 1}), most(5)},
             {{0, 0, 0, 0, 0, 1, 0, 0, 2, 0, 1, 0, 0, 1, 1, 0, 1, 2}, {6}});
    list.add("no_area_by_hand", plain, {f32({1, 2, 4}, {1, 1, 1, 3, 0, 0, 4, 4}), f32({1, 2, 1}, {2, 1}), most(5)},
             {{0, 0, 0, 0, 0, 1}, {2}});
    list.add("below_zero_by_hand", plain,
             {f32({1, 2, 4}, {0, 0, 1, 1, 2, 2, 3, 3}), f32({1, 2, 1}, {-2, -0.0}), most(5), absent(), scalar(-1)},
             {{0, 0, 1}, {1}});
    list.add("nobody", plain, {boxes, scores, most(0)}, {{}, {0}});
    list.add("negative_most", plain, {boxes, scores, most(-3)}, {{}, {0}});
    list.add("no_boxes", plain, {f32({2, 0, 4}), f32({2, 0, 3}), most(5)}, {{}, {0}});
    list.add("no_classes", plain, {f32({2, 5, 4}), f32({2, 5, 0}), most(5)}, {{}, {0}});
    list.add("no_items", plain, {f32({0, 5, 4}), f32({0, 5, 2}), most(5)}, {{}, {0}});
    for (BoxFormat format : {BoxFormat::kCornerPairs, BoxFormat::kCenterSizes}) {
        std::string const name = format == BoxFormat::kCornerPairs ? "corners" : "centers";
        Attrs const a = with(format, 5000);
        list.add(name, a, {f32({3, 40, 4}), f32({3, 40, 5}), most(7), scalar(0.3), scalar(1)});
        list.add(name + "_of_classes", a, {f32({2, 30, 4, 4}), f32({2, 30, 4}), most(9), scalar(0.4), scalar(0)});
        list.add(name + "_shared", a, {f32({2, 30, 1, 4}), f32({2, 30, 4}), most(9), scalar(0.4), scalar(0)});
        list.add(name + "_limit", with(format, 11), {f32({2, 700, 4}), f32({2, 700, 3}), most(20), scalar(0.2)});
        list.add(name + "_many", a, {f32({1, 1500, 4}), f32({1, 1500, 2}), most(100), scalar(0.5), scalar(2)});
        for (int n : {63, 65, 256, 700}) // that stay, by whole blocks and tiles and others
            list.add(fmt::format("{}_stay_{}", name, n), a, {f32({1, 900, 4}), f32({1, 900, 1}), most(n), scalar(0.8)});
        list.add(name + "_below_zero", a, {f32({1, 90, 4}), f32({1, 90, 2}), most(70), scalar(-1)});
        list.add(name + "_half", a,
                 {input(DataType::kHalf, {2, 50, 4}), input(DataType::kHalf, {2, 50, 2}), most(9), scalar(0.4)});
    }
    list.add("half_thresholds", plain,
             {f32({1, 20, 4}), f32({1, 20, 2}), most(9), input(DataType::kHalf, {}, {0.5}),
              input(DataType::kHalf, {}, {2})});
    list.add("no_threshold_but_least", plain, {f32({1, 20, 4}), f32({1, 20, 2}), most(9), absent(), scalar(3)});
}

void randomCase(CaseList& list, Draw& d, std::string const& name)
{
    Attrs a;
    a.format = BoxFormat(d.from(0, 1));
    if (d.chance(50))
        a.limit = d.from(1, 40);
    int64_t const n = d.from(1, 3), boxes = d.size(130), classes = d.from(1, 6);
    Extents const shape = d.chance(60) ? Extents{n, boxes, 4} : Extents{n, boxes, d.chance(50) ? classes : 1, 4};
    std::vector<CaseInput> in{input(d.type(), shape), input(d.type(), {n, boxes, classes}),
                              input(DataType::kInt32, {}, {double(d.from(0, 20))})};
    if (d.chance(70))
        in.push_back(f32({}, {double(d.from(0, 10)) / 10}));
    if (in.size() > 3 && d.chance(70))
        in.push_back(f32({}, {double(d.from(-3, 6))}));
    list.add(name, a, std::move(in));
}

} // namespace tw::ops::nms
