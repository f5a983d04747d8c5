// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

#include <cmath>

#include "cases/draw.h"
#include "ops/roi_align/op.h"

namespace tw::ops::roi_align {

namespace {

struct Rule
{
    char const* name;
    Boxes boxes;
    Grid grid;
    Outside outside;
};

// Of all plugins.
constexpr Rule kRules[] = {
    {"half_pixel", Boxes::kScaled, Grid::kHalfPixel, Outside::kFade},
    {"at_least_one", Boxes::kScaled, Grid::kAtLeastOne, Outside::kFade},
    {"crop", Boxes::kNormalized, Grid::kCorners, Outside::kZero},
    {"levels", Boxes::kScaled, Grid::kWhole, Outside::kClamp},
    {"tidied_corners", Boxes::kTidied, Grid::kCorners, Outside::kClamp},
    {"tidied_edges", Boxes::kTidied, Grid::kEdges, Outside::kClamp},
    {"tidied_whole", Boxes::kTidied, Grid::kWhole, Outside::kClamp},
    {"tidied_half_pixel", Boxes::kTidied, Grid::kHalfPixel, Outside::kClamp},
    {"pooled", Boxes::kScaled, Grid::kPooled, Outside::kClamp},
};

Attrs attrsOf(Rule const& rule, int64_t height, int64_t width, int64_t samples)
{
    Attrs a;
    a.boxes = rule.boxes;
    a.grid = rule.grid;
    a.outside = rule.outside;
    a.mode = rule.grid == Grid::kPooled ? Mode::kMax : Mode::kAverage;
    a.height = height;
    a.width = width;
    a.samples = samples;
    return a;
}

CaseInput images(Extents const& dims, std::vector<double> values = {})
{
    return input(DataType::kInt32, dims, std::move(values));
}

// Boxes with their corners in order, in [low, high).
CaseInput boxes(Extents const& dims, double low, double high)
{
    std::vector<double> values;
    uint32_t state = 1;
    for (int64_t i = 0; i < dims.volume(); ++i) {
        state = state * 1664525 + 1013904223;
        double const v = low + (high - low) * double(state >> 8) / double(1 << 24);
        values.push_back(v);
        if (i % 4 > 1 && values[size_t(i - 2)] > v)
            std::swap(values[size_t(i - 2)], values[size_t(i)]);
    }
    return f32(dims, std::move(values));
}

} // namespace

void cases(CaseList& list)
{
    std::vector<double> ramp;
    for (int i = 0; i < 16; ++i)
        ramp.push_back(i);
    CaseInput const map = f32({1, 1, 4, 4}, ramp);
    auto const rule = [](int i) { return attrsOf(kRules[i], 2, 2, 1); };
    list.add("half_pixel_by_hand", rule(0), {f32({1, 4}, {0.5, 0.5, 2.5, 2.5}), images({1}, {0}), map},
             {{2.5, 3.5, 6.5, 7.5}});
    list.add("faded_by_hand", rule(0), {f32({1, 1, 4}, {-4, 0.5, 2, 2.5}), absent(), map}, {{0, 2, 0, 6}});
    list.add("at_least_one_by_hand", rule(1), {f32({1, 1, 4}, {1, 1, 1, 1}), absent(), map},
             {{6.25, 6.75, 8.25, 8.75}});
    list.add("crop_by_hand",
             [&] {
                 Attrs a = rule(2);
                 a.isRowFirst = true;
                 return a;
             }(),
             {f32({1, 2, 4}, {0, 0, 1, 1, -1, 0, 1, 1}), absent(), map}, {{0, 3, 12, 15, 0, 0, 12, 15}});
    list.add("one_bin_by_hand", attrsOf(kRules[2], 1, 1, 1), {f32({1, 1, 4}, {0, 0, 1, 1}), absent(), map}, {{7.5}});
    list.add("pooled_by_hand", rule(8), {f32({1, 2, 4}, {0, 0, 3, 3, 2.5, 1, 7, 1}), absent(), map},
             {{5, 7, 13, 15, 7, 0, 7, 0}});
    list.add("images_by_hand", rule(0),
             {f32({3, 4}, {0.5, 0.5, 2.5, 2.5, 0.5, 0.5, 2.5, 2.5, 0.5, 0.5, 2.5, 2.5}), images({3}, {-1, 0, 1}), map},
             {{0, 0, 0, 0, 2.5, 3.5, 6.5, 7.5, 0, 0, 0, 0}});
    Attrs largest = rule(0);
    largest.mode = Mode::kMax;
    list.add("max_by_hand", largest, {f32({1, 1, 4}, {0.5, 0.5, 2.5, 2.5}), absent(), map}, {{1.25, 1.5, 2.25, 2.5}});
    list.add("max_below_0_by_hand", largest,
             {f32({1, 1, 4}, {0.5, 0.5, 2.5, 2.5}), absent(), f32({1, 1, 3, 3}, {-1, -2, -3, -4, -5, -6, -7, -8, -9})},
             {{-0.25, -0.5, -1, -1.25}});
    Attrs levels = attrsOf(kRules[3], 1, 1, 1);
    levels.areas = {3, 15};
    levels.isEmptySkipped = true;
    list.add("levels_by_hand", levels,
             {f32({1, 4, 4}, {0, 0, 1, 1, 0, 0, 2, 2, 0, 0, 4, 4, 3, 3, 3, 4}), absent(), f32({1, 1, 1, 1}, {1}),
              f32({1, 1, 1, 2}, {2, 4}), f32({1, 1, 2, 2}, {3, 5, 7, 9})},
             {{1, 3, 6, 0}});
    list.add("not_numbers_by_hand", rule(0),
             {f32({1, 3, 4}, {NAN, 0, 1, 1, 0, -INFINITY, 3, INFINITY, 1e30, 0, 3e38, 2}), absent(), map},
             {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}});
    list.add("adaptive_not_numbers_by_hand", attrsOf(kRules[0], 1, 1, 0),
             {f32({1, 3, 4}, {NAN, 0, 1, 1, 3, 0, 1, 2, 0.5, 0.5, 2.5, 0.5}), absent(), map}, {{0, 0, 0}});
    list.add("tidied_not_numbers_by_hand", attrsOf(kRules[7], 1, 1, 1),
             {f32({1, 2, 4}, {NAN, NAN, NAN, NAN, -INFINITY, 0, INFINITY, 1}), absent(), map}, {{0, 7.5}});
    list.add("pooled_not_numbers_by_hand", attrsOf(kRules[8], 1, 1, 1),
             {f32({1, 3, 4}, {NAN, 0, 1, 1, -3e38, -3e38, 3e38, 3e38, 0, INFINITY, 1, INFINITY}), absent(), map},
             {{0, 15, 0}});

    for (Rule const& r : kRules)
        for (int64_t samples : {0, 1, 2, 3}) {
            if (samples > 0 && r.grid == Grid::kPooled)
                continue;
            std::string const name = fmt::format("{}_{}", r.name, samples);
            Attrs a = attrsOf(r, 3, 2, samples);
            a.scale = r.grid == Grid::kAtLeastOne ? 0.25 : 1;
            list.add(name, a, {f32({2, 9, 4}), absent(), f32({2, 3, 11, 7})});
            list.add(name + "_half", a, {f32({2, 9, 4}), absent(), input(DataType::kHalf, {2, 3, 11, 7})});
            a.isRowFirst = true;
            double const most = r.boxes == Boxes::kScaled ? 10 / a.scale : 1;
            list.add(name + "_images", a, {boxes({13, 4}, 0, most), images({13}), f32({2, 3, 7, 11})});
            if (r.boxes == Boxes::kTidied) {
                a.isAbsolute = a.isPlusOne = true;
                a.imageHeight = 40;
                a.imageWidth = 30;
                a.areas = {0.01, 0.1, 0.3};
                list.add(name + "_absolute", a,
                         {f32({2, 12, 4}), absent(), f32({2, 3, 20, 15}), f32({2, 3, 10, 8}), f32({2, 3, 5, 4}),
                          f32({2, 3, 3, 2})});
            }
            if (r.boxes == Boxes::kScaled && r.grid != Grid::kPooled) {
                a.mode = Mode::kMax;
                list.add(name + "_max", a, {f32({2, 9, 4}), absent(), f32({2, 3, 11, 7})});
                list.add(name + "_max_half", a, {f32({2, 9, 4}), absent(), input(DataType::kHalf, {2, 5, 11, 7})});
            }
            Attrs one = attrsOf(r, 1, 1, samples);
            list.add(name + "_one_bin", one, {f32({1, 30, 4}), absent(), f32({1, 4, 9, 8})});
        }
    for (DataType t : {DataType::kFloat, DataType::kHalf}) {
        std::string const word = wordOf(t);
        for (int64_t channels : {7, 8, 9, 31, 32, 33, 64, 130})
            list.add(fmt::format("channels_{}_{}", channels, word), attrsOf(kRules[0], 7, 7, 2),
                     {boxes({5, 4}, -1, 11), images({5}, {0, 1, 0, 1, 1}), input(t, {2, channels, 10, 12})});
        list.add("many_rois_" + word, attrsOf(kRules[0], 7, 7, 0),
                 {boxes({300, 4}, -1, 13), images({300}), input(t, {2, 40, 12, 13})});
        list.add("wide_" + word, attrsOf(kRules[2], 3, 5, 1), {f32({1, 3, 4}), absent(), input(t, {1, 2, 3, 700})});
        Attrs mask = attrsOf(kRules[3], 14, 14, 1);
        mask.scale = 0.25;
        mask.areas = {100, 400, 900, 1600};
        mask.isRowFirst = mask.isEmptySkipped = true;
        list.add("five_levels_" + word, mask,
                 {boxes({2, 40, 4}, 0, 60), absent(), input(t, {2, 24, 16, 15}), input(t, {2, 24, 8, 8}),
                  input(t, {2, 24, 4, 4}), input(t, {2, 24, 2, 2}), input(t, {2, 24, 1, 1})});
    }
    list.add("half_rois", attrsOf(kRules[0], 3, 3, 2),
             {input(DataType::kHalf, {1, 9, 4}), absent(), input(DataType::kHalf, {1, 3, 11, 7})});
    list.add("half_rois_of_single", attrsOf(kRules[0], 3, 3, 2),
             {input(DataType::kHalf, {1, 9, 4}), absent(), f32({1, 3, 11, 7})});
    list.add("large", attrsOf(kRules[1], 2, 2, 0),
             {f32({1, 2, 4}, {0, 0, 90, 70, -50, 9, 300, 60}), absent(), f32({1, 3, 60, 80})});
    list.add("no_rois", attrsOf(kRules[0], 2, 2, 2), {f32({2, 0, 4}), absent(), f32({2, 3, 4, 5})});
    list.add("no_channels", attrsOf(kRules[0], 2, 2, 2), {f32({2, 3, 4}), absent(), f32({2, 0, 4, 5})});
    list.add("no_pixels", attrsOf(kRules[7], 1, 2, 0), {f32({1, 1, 4}), absent(), f32({1, 1, 0, 5})}, {{0, 0}});
}

void randomCase(CaseList& list, Draw& d, std::string const& name)
{
    Rule const& rule = kRules[d.from(0, 8)];
    Attrs a = attrsOf(rule, d.from(1, 8), d.from(1, 8), d.from(0, 3));
    if (rule.boxes == Boxes::kScaled && d.chance(40))
        a.mode = Mode::kMax;
    a.isRowFirst = d.chance(50);
    a.isEmptySkipped = d.chance(30);
    DataType const type = d.type();
    int64_t const n = d.from(1, 3), channels = d.size(40), rois = d.size(30);
    bool const hasImages = d.chance(50);
    std::vector<CaseInput> in{hasImages ? input(d.type(), {rois, 4}) : input(d.type(), {n, rois, 4}),
                              hasImages ? images({rois}) : absent()};
    for (int64_t level = d.from(1, 3); level > 0; --level) {
        in.push_back(input(type, {n, channels, d.size(20), d.size(20)}));
        a.areas.push_back(double(in.size()) * 4);
    }
    list.add(name, a, std::move(in));
}

} // namespace tw::ops::roi_align
