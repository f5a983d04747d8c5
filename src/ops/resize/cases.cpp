// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

#include <limits>

#include "cases/draw.h"
#include "ops/resize/op.h"

namespace tw::ops::resize {

void cases(CaseList& list)
{
    auto to = [&](std::string name, CaseInput x, std::vector<int64_t> dims, Attrs a,
                  std::vector<std::vector<double>> expected = {}) {
        a.outputDims = std::move(dims);
        list.add(std::move(name), a, {std::move(x)}, std::move(expected));
    };
    auto by = [&](std::string name, CaseInput x, std::vector<double> scales, Attrs a,
                  std::vector<std::vector<double>> expected = {}) {
        a.scales = std::move(scales);
        to(std::move(name), std::move(x), {}, std::move(a), std::move(expected));
    };
    auto with = [](Mode mode, Coordinates coordinates, Rounding rounding = Attrs().rounding) {
        Attrs a;
        a.mode = mode;
        a.coordinates = coordinates;
        a.rounding = rounding;
        return a;
    };
    auto const linearHalf = with(Mode::kLinear, Coordinates::kHalfPixel);
    auto const cubicHalf = with(Mode::kCubic, Coordinates::kHalfPixel);
    auto const linearAlign = with(Mode::kLinear, Coordinates::kAlignCorners);
    by("nearest_channels", f32({2, 35, 3, 5}), {1, 1, 2, 2}, {});
    by("linear_channels", f32({2, 35, 3, 5}), {1, 1, 2, 2}, linearHalf);
    for (int64_t c : {1, 35, 64, 130})
        by(fmt::format("nearest_i8_channels_{}", c), input(DataType::kInt8, {2, c, 3, 5}), {1, 1, 2, 3}, {});
    to("nearest_i8_down", input(DataType::kInt8, {1, 70, 7, 5}), {1, 70, 3, 4}, {});
    by("linear_i8_channels", input(DataType::kInt8, {2, 35, 3, 5}), {1, 1, 2, 2}, linearHalf);
    to("linear_channels_align", f32({1, 16, 4, 5}), {1, 16, 7, 3}, linearAlign);
    to("nearest_channels_down", f32({1, 70, 7, 5}), {1, 70, 3, 4}, {});
    for (double f : {1., 2., 3.})
        for (DataType t : {DataType::kFloat, DataType::kHalf, DataType::kInt8})
            by(fmt::format("nearest_by_{}_{}", int(f), nameOf(t)), input(t, {2, 3, 50, 67}), {1, 1, 2, f}, {});
    CaseInput const two = f32({1, 2}, {0, 4}), four = f32({4}, {1, 2, 3, 4});
    to("nearest_by_hand", f32({2, 2}, {1, 2, 3, 4}), {4, 4}, {}, {{1, 1, 2, 2, 1, 1, 2, 2, 3, 3, 4, 4, 3, 3, 4, 4}});
    to("linear_half_pixel_by_hand", two, {1, 4}, linearHalf, {{0, 1, 3, 4}});
    to("linear_asymmetric_by_hand", two, {1, 4}, with(Mode::kLinear, Coordinates::kAsymmetric), {{0, 2, 4, 4}});
    to("linear_align_corners_by_hand", two, {1, 5}, linearAlign, {{0, 1, 2, 3, 4}});
    // At distance 1/2 and 3/2 the weights are 19/32 and -3/32; the edge is repeated, or left out.
    by("cubic_by_hand", f32({1, 4}, {1, 2, 3, 4}), {1, 0.5}, cubicHalf, {{1.40625, 3.59375}});
    Attrs inside = cubicHalf;
    inside.excludeOutside = true;
    by("cubic_exclude_outside_by_hand", f32({1, 4}, {1, 2, 3, 4}), {1, 0.5}, inside,
       {{1.5 / 1.09375, 5 - 1.5 / 1.09375}});
    // Four elements to one: the coordinate is 3/2 by formula.
    to("single_pixel_formula", four, {1}, linearHalf, {{2.5}});
    Attrs upper = linearHalf;
    upper.selector = Selector::kUpper;
    to("single_pixel_upper", four, {1}, upper, {{1}});
    to("single_pixel_align_corners", four, {1}, linearAlign, {{1}});
    // Four to three in half pixels: coordinates 1/6, 3/2, 17/6. The half is what the four roundings disagree on.
    std::pair<Rounding, std::vector<double>> const roundings[] = {{Rounding::kHalfUp, {1, 3, 4}},
                                                                  {Rounding::kHalfDown, {1, 2, 4}},
                                                                  {Rounding::kFloor, {1, 2, 3}},
                                                                  {Rounding::kCeil, {2, 3, 4}}};
    for (auto const& r : roundings)
        to(fmt::format("rounding_{}", int(r.first)), four, {3}, with(Mode::kNearest, Coordinates::kHalfPixel, r.first),
           {r.second});
    // 1 / 3 and 0.7 are no floats; the sizes and the elements are those of the fractions.
    by("scale_third", f32({9}, {0, 1, 2, 3, 4, 5, 6, 7, 8}), {double(1.0f / 3)}, {}, {{0, 3, 6}});
    by("scale_0.7", f32({10}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}), {double(0.7f)}, {}, {{0, 1, 2, 4, 5, 7, 8}});
    // 0.6 of four elements: two, at 0 and 5/3.
    by("scale_0.6_linear", four, {double(0.6f)}, with(Mode::kLinear, Coordinates::kAsymmetric), {{1, 1 + 5.0 / 3}});
    by("scale_same_size", four, {double(1.2f)}, linearHalf); // 4.8: still four elements, at other places
    for (auto [modeName, mode] :
         {std::pair{"nearest", Mode::kNearest}, std::pair{"linear", Mode::kLinear}, std::pair{"cubic", Mode::kCubic}})
        for (auto [coordName, coords] :
             {std::pair{"align", Coordinates::kAlignCorners}, std::pair{"asymmetric", Coordinates::kAsymmetric},
              std::pair{"half_pixel", Coordinates::kHalfPixel}}) {
            std::string const k = std::string(modeName) + "_" + coordName;
            auto const plain = with(mode, coords);
            to(k + "_up", f32({2, 3, 4, 5}), {2, 3, 8, 15}, plain);
            to(k + "_odd", f32({2, 3, 4, 5}), {2, 3, 7, 9}, plain);
            to(k + "_down", f32({1, 2, 9, 16}), {1, 2, 4, 5}, plain);
            to(k + "_to_one", f32({1, 2, 5, 7}), {1, 2, 1, 1}, plain);
            to(k + "_from_one", f32({1, 2, 1, 1}), {1, 2, 4, 3}, plain);
            to(k + "_same", f32({1, 2, 3, 4}), {1, 2, 3, 4}, plain);
            to(k + "_rows_only", f32({1, 2, 3, 4}), {1, 2, 5, 4}, plain);
            by(k + "_scales", f32({1, 2, 5, 7}), {1, 1, 1.5, double(0.6f)}, plain);
            to(k + "_keeps_size", f32({3, 2, 3, 4}), {-1, 2, 5, -1}, plain);
            to(k + "_rank_1", f32({6}), {11}, plain);
            to(k + "_f16", input(DataType::kHalf, {1, 2, 4, 5}), {1, 2, 7, 9}, plain);
            to(k + "_f16_to_one", input(DataType::kHalf, {1, 3, 5, 2}), {1, 3, 4, 1}, plain);
            to(k + "_f16_pixels", input(DataType::kHalf, {2, 20, 4, 5}), {2, 20, 8, 11}, plain);
            to(k + "_i8", input(DataType::kInt8, {1, 2, 4, 5}), {1, 2, 8, 12}, plain);
            to(k + "_i8_odd", input(DataType::kInt8, {1, 2, 4, 5}), {1, 2, 6, 9}, plain);
            to(k + "_empty_batch", f32({0, 2, 4, 5}), {0, 2, 7, 9}, plain);
            Attrs sharper = plain;
            sharper.excludeOutside = true;
            sharper.cubicCoeff = -0.5f;
            to(k + "_exclude_outside", f32({1, 2, 4, 5}), {1, 2, 7, 9}, sharper);
            for (int rounding = 0; mode == Mode::kNearest && rounding < 4; ++rounding)
                to(fmt::format("{}_rounding_{}", k, rounding), f32({1, 2, 8, 9}), {1, 2, 6, 6},
                   with(mode, coords, Rounding(rounding)));
            if (mode != Mode::kCubic)
                to(k + "_3_axes", f32({2, 3, 4, 5}), {2, 5, 6, 7}, plain);
            list.add(k + "_dims_constant", plain, {f32({1, 2, 4, 5}), constant(DataType::kInt32, {4}, {1, 2, 7, 9})});
            list.add(k + "_dims_input", plain, {f32({1, 2, 4, 5}), input(DataType::kInt32, {4}, {1, 2, 3, 9})});
        }
    // Several bands of rows and planes for a block of threads; rows that begin anywhere; columns for several turns.
    struct Planes
    {
        char const* name;
        Extents x;
        std::vector<int64_t> y;
    };
    for (Planes const& p :
         {Planes{"doubled", {2, 5, 32, 64}, {2, 5, 64, 128}}, Planes{"tripled", {1, 3, 15, 21}, {1, 3, 45, 63}},
          Planes{"odd", {3, 3, 37, 45}, {3, 3, 56, 67}}, Planes{"even", {1, 7, 41, 30}, {1, 7, 59, 46}},
          Planes{"two_thirds", {2, 3, 51, 96}, {2, 3, 34, 64}}, Planes{"far_down", {1, 5, 90, 70}, {1, 5, 17, 11}},
          Planes{"half_again", {2, 3, 34, 50}, {2, 3, 51, 75}}, Planes{"long_rows", {1, 2, 9, 700}, {1, 2, 13, 1403}},
          Planes{"tall", {1, 9, 190, 7}, {1, 9, 283, 9}}})
        for (DataType t : {DataType::kFloat, DataType::kHalf}) {
            std::string const name = std::string("planes_") + p.name + "_" + nameOf(t);
            to(name + "_linear", input(t, p.x), p.y, linearHalf);
            to(name + "_align", input(t, p.x), p.y, linearAlign);
            to(name + "_nearest", input(t, p.x), p.y, with(Mode::kNearest, Attrs().coordinates, Rounding::kCeil));
        }
    to("nearest_8_axes", f32({2, 1, 2, 1, 2, 1, 2, 3}), {3, 2, 1, 1, 4, 2, 2, 5}, {});
    double const nan = std::nan("");
    to("weight_zero_takes_no_part", f32({3}, {nan, 1, 2}), {5}, linearAlign, {{nan, nan, 1, 1.5, 2}});
    double const inf = std::numeric_limits<double>::infinity();
    to("weight_zero_takes_no_part_of_planes", f32({3, 3}, {nan, 1, 2, 3, inf, 4, 5, 6, 7}), {5, 5}, linearAlign,
       {{nan, nan, 1, 1.5, 2, nan, nan, inf, inf, 3, 3, inf, inf, inf, 4, 4, inf, inf, inf, 5.5, 5, 5.5, 6, 6.5, 7}});
}

void randomCase(CaseList& list, Draw& d, std::string const& name)
{
    Attrs a;
    a.mode = Mode(d.from(0, 2));
    a.coordinates = Coordinates(d.from(0, 2));
    a.rounding = Rounding(d.from(0, 3));
    a.excludeOutside = a.mode == Mode::kCubic && d.chance(50);
    Extents const x = d.extents(4, 20);
    for (int i = 0; i < x.rank; ++i)
        a.outputDims.push_back(i >= 2 && d.chance(80) ? d.size(40) : x[i]);
    list.add(name, a, {input(d.type(), x)});
}

} // namespace tw::ops::resize
