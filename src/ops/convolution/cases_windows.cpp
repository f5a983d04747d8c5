// SPDX-License-Identifier: Apache-2.0
// Cases of windows with long rows or many elements, and of weights that are no constants.
#include "ops/convolution/cases.h"
#include "ops/convolution/op.h"

namespace tw::ops::convolution {

void windowCases(CaseList& list)
{
    auto row = [](int64_t pad, int64_t stride = 1, int64_t dilation = 1, int64_t groups = 1) {
        return Form{.pad = {0, pad}, .strides = {1, stride}, .dilations = {1, dilation}, .groups = groups};
    };
    auto conv = [&](std::string const& name, Extents const& x, Extents const& w, bool bias, Form const& form) {
        for (DataType t : {DataType::kFloat, DataType::kHalf})
            add(list, t, wordOf(t) + "_window_" + name, x, w, bias, form);
    };
    conv("1x128_groups", {1, 48, 1, 49}, {48, 12, 1, 128}, true, row(64, 1, 1, 4));
    conv("1x70_tails", {2, 18, 1, 33}, {15, 6, 1, 70}, true, row(35, 1, 1, 3));
    conv("1x400_one_channel", {2, 1, 1, 1000}, {33, 1, 1, 400}, false, row(200, 160));
    conv("1x66_three_channels", {2, 3, 2, 90}, {20, 3, 1, 66}, true, row(5, 3));
    conv("1x80_dilated", {1, 5, 2, 40}, {17, 5, 1, 80}, true, row(130, 2, 3));
    conv("80x1", {1, 6, 90, 3}, {16, 6, 80, 1}, true, {.pad = {7, 0}});
    conv("13x70", {1, 2, 20, 75}, {8, 2, 13, 70}, true, {.pre = {3, 0}, .post = {0, 9}, .strides = {2, 1}});
    conv("5x5x70", {1, 2, 6, 6, 72}, {8, 2, 5, 5, 70}, true, {.pre = {1, 0, 2}});
    conv("padding_cut", {1, 4, 3, 90}, {8, 4, 1, 65}, true, {.strides = {2, 4}});
    // 3x3 in planes of three axes.
    auto deep = [](int64_t pad, int64_t stride, int64_t dilation) {
        return Form{.pre = {pad, 1, 1}, .post = {pad, 0, 1}, .strides = {stride, 1, 1}, .dilations = {dilation, 1, 1}};
    };
    conv("3x3x3_stride_of_planes", {2, 20, 7, 9, 10}, {33, 20, 3, 3, 3}, true, deep(1, 2, 1));
    conv("2x3x3_dilated_planes", {1, 17, 6, 5, 13}, {16, 17, 2, 3, 3}, true, deep(2, 1, 3));
    conv("3x3x3_one_plane", {2, 40, 1, 7, 7}, {48, 40, 3, 3, 3}, false, deep(1, 1, 1));
    conv("5x3x3_planes_of_zeros", {1, 8, 1, 4, 5}, {16, 8, 5, 3, 3}, true, deep(6, 1, 1));
    conv("3x3x3_pieces", {1, 150, 2, 9, 9}, {64, 150, 3, 3, 3}, true, deep(1, 1, 1));
    // Weights, and a bias, from somewhere else in the network.
    auto variable = [&](std::string const& name, Extents const& x, Extents const& w, bool bias, Form const& form) {
        for (DataType t : {DataType::kFloat, DataType::kHalf})
            add(list, t, wordOf(t) + "_variable_" + name, x, w, bias, form, false, false);
    };
    variable("1x1", {2, 24, 5, 6}, {40, 24, 1, 1}, true, evenly(1, 0, 1, 1));
    variable("3x3", {1, 17, 6, 30}, {33, 17, 3, 3}, false, evenly(1, 1, 1, 1));
    variable("3x3_groups", {2, 12, 5, 7}, {18, 4, 3, 3}, true, evenly(1, 1, 1, 3));
    variable("3x3_dilated", {1, 8, 9, 11}, {16, 8, 3, 3}, true, {.dilations = {2, 3}});
    variable("depthwise", {1, 10, 6, 7}, {10, 1, 3, 3}, true, evenly(1, 1, 1, 10));
    variable("3x3x3", {1, 6, 4, 5, 6}, {20, 6, 3, 3, 3}, true, {.pre = {1, 1, 1}});
}

} // namespace tw::ops::convolution
