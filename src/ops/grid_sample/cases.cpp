// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

#include "cases/draw.h"
#include "ops/grid_sample/op.h"

namespace tw::ops::grid_sample {

void cases(CaseList& list)
{
    using I = Interpolation;
    using O = Outside;
    auto with = [](I interpolation, O outside, bool alignCorners) {
        Attrs a;
        a.interpolation = interpolation;
        a.outside = outside;
        a.alignCorners = alignCorners;
        return a;
    };
    CaseInput const x22 = f32({1, 1, 2, 2}, {1, 2, 3, 4});
    // The centre, the first corner, a point outside.
    CaseInput const points = f32({1, 1, 3, 2}, {0, 0, -1, -1, 2, 0});
    list.add("linear_fill_by_hand", Attrs(), {x22, points}, {{2.5, 0.25, 0}});
    list.add("linear_corners_by_hand", with(I::kLinear, O::kFill, true), {x22, points}, {{2.5, 1, 1.5}});
    list.add("linear_clamp_by_hand", with(I::kLinear, O::kClamp, false), {x22, points}, {{2.5, 1, 3}});
    list.add("linear_reflect_by_hand", with(I::kLinear, O::kReflect, true), {x22, points}, {{2.5, 1, 2.5}});
    // Places -0.5 and 1.5: half to even is 0 and 2.
    list.add("nearest_ties_by_hand", with(I::kNearest, O::kFill, false),
             {x22, f32({1, 2, 2, 2}, {-1, -1, 0.5, -0.5, 1, 1, 0.75, 0.5})}, {{1, 2, 0, 4}});
    list.add("nearest_reflect_by_hand", with(I::kNearest, O::kReflect, false),
             {f32({1, 1, 1, 4}, {1, 2, 3, 4}), f32({1, 1, 4, 2}, {-1.25, 0, 1.25, 0, 2.75, 0, -4.75, 0})},
             {{1, 4, 1, 1}});
    // Weights of a point half-way: -0.09375, 0.59375, 0.59375, -0.09375.
    list.add("cubic_by_hand", with(I::kCubic, O::kFill, false),
             {f32({1, 1, 1, 4}, {1, 2, 4, 8}), f32({1, 1, 1, 2}, {0, 0})}, {{2.71875}});
    list.add("cubic_clamp_by_hand", with(I::kCubic, O::kClamp, true),
             {f32({1, 1, 1, 3}, {1, 2, 4}), f32({1, 1, 1, 2}, {-0.5, 0})}, {{1.3125}});
    list.add("far_away_by_hand", Attrs(), {x22, f32({1, 1, 4, 2}, {1e30, 0, -3e38, 3e38, INFINITY, 0, 0, NAN})},
             {{0, 0, 0, 0}});
    for (I i : {I::kNearest, I::kLinear, I::kCubic})
        for (O o : {O::kClamp, O::kFill, O::kReflect})
            for (bool corners : {false, true}) {
                std::string const name = std::string(i == I::kNearest  ? "nearest"
                                                     : i == I::kLinear ? "linear"
                                                                       : "cubic") +
                                         (o == O::kClamp  ? "_clamp"
                                          : o == O::kFill ? "_fill"
                                                          : "_reflect") +
                                         (corners ? "_corners" : "");
                Attrs const a = with(i, o, corners);
                list.add(name, a, {f32({2, 3, 5, 7}), f32({2, 4, 9, 2})});
                list.add(
                    name + "_far", a,
                    {f32({1, 2, 4, 3}), f32({1, 1, 6, 2}, {-9, 7, 3.3, -2.7, 8.1, 9.2, -5, 5, 40, -31, 0.3, 0.2})});
                list.add(name + "_one_pixel", a, {f32({1, 2, 1, 1}), f32({1, 3, 3, 2})});
                list.add(name + "_half", a, {input(DataType::kHalf, {1, 2, 6, 5}), f32({1, 3, 5, 2})});
            }
    list.add("half_grid", Attrs(), {f32({1, 2, 6, 5}), input(DataType::kHalf, {1, 3, 5, 2})});
    list.add("all_half", Attrs(), {input(DataType::kHalf, {1, 2, 6, 5}), input(DataType::kHalf, {1, 3, 5, 2})});
    list.add("points_63", Attrs(), {f32({1, 2, 9, 9}), f32({1, 7, 9, 2})});
    list.add("points_64", Attrs(), {f32({3, 1, 9, 9}), f32({3, 8, 8, 2})});
    list.add("points_129", Attrs(), {f32({1, 4, 9, 9}), f32({1, 3, 43, 2})});
    list.add("many_channels", Attrs(), {f32({1, 300, 4, 5}), f32({1, 3, 3, 2})});
    list.add("large", Attrs(), {f32({2, 16, 40, 30}), f32({2, 31, 50, 2})});
    list.add("no_images", Attrs(), {f32({0, 3, 4, 5}), f32({0, 2, 2, 2})});
    list.add("no_points", with(I::kLinear, O::kClamp, false), {f32({1, 3, 4, 5}), f32({1, 0, 2, 2})});
    list.add("no_pixels", Attrs(), {f32({1, 1, 0, 5}), f32({1, 1, 2, 2})}, {{0, 0}});
}

void randomCase(CaseList& list, Draw& d, std::string const& name)
{
    Attrs a;
    a.interpolation = Interpolation(d.from(0, 2));
    a.outside = Outside(d.from(2, 4));
    a.alignCorners = d.chance(50);
    Extents const x{d.from(1, 3), d.size(12), d.size(20), d.size(20)};
    list.add(name, a, {input(d.type(), x), input(d.type(), {x[0], d.size(20), d.size(20), 2})});
}

} // namespace tw::ops::grid_sample
