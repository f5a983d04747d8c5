// SPDX-License-Identifier: Apache-2.0
#include "ops/convolution/cases.h"

#include <limits>

#include "cases/cases.h"
#include "cases/draw.h"
#include "cases/integer_sums.h"
#include "cases/programs.h"
#include "cases/sparse_weights.h"
#include "ops/convolution/op.h"

namespace tw::ops::convolution {

Attrs Form::attrs(int axes, bool transposed) const
{
    Attrs a = Attrs::plain(axes, transposed);
    auto set = [&](std::vector<int64_t>& to, std::vector<int64_t> const& v) {
        if (v.size() == 1)
            to.assign(size_t(axes), v[0]);
        else if (!v.empty())
            to = v;
    };
    set(a.prePadding, pad);
    set(a.postPadding, pad);
    set(a.prePadding, pre);
    set(a.postPadding, post);
    set(a.strides, strides);
    set(a.dilations, dilations);
    a.groups = groups;
    a.paddingMode = mode;
    return a;
}

void add(CaseList& list, DataType type, std::string const& name, Extents const& x, Extents const& w, bool bias,
         Form const& form, bool transposed, bool known)
{
    std::vector<CaseInput> in{input(type, x), input(type, w)};
    if (bias)
        in.push_back(input(type, {transposed ? w[1] * form.groups : w[0]}));
    for (size_t i = 1; i < in.size(); ++i)
        in[i].constant = known;
    list.add(name, form.attrs(w.rank - 2, transposed), std::move(in));
}

namespace {

// Convolutions whose filters follow 2:4 along their channels: what they mean is the dense convolution.
void sparseCases(CaseList& list)
{
    using activation::Kind;
    constexpr DataType kType = DataType::kHalf;
    auto add = [&](std::string const& name, Extents const& x, Extents const& w, int64_t padding, int64_t stride,
                   int64_t dilation, bool residual, FusedActivation f) {
        Attrs a(evenly(stride, padding, dilation).attrs(2), f);
        auto out = [&](int axis) { return (x[axis] + 2 * padding - dilation * (w[axis] - 1) - 1) / stride + 1; };
        Extents const y{x[0], w[0], out(2), out(3)};
        std::vector<CaseInput> in{input(kType, x), twoOfFour(kType, w, 1), constant(kType, {w[0]})};
        if (residual)
            in.push_back(input(kType, y));
        list.add("sparse_" + name, a, std::move(in));
        IntegerSums end{.f = Kind::kRelu, .innerScale = dilation > 1};
        if (residual)
            end.residual = DataType::kInt8;
        std::vector<CaseInput> bytes{input(DataType::kInt8, x), twoOfFour(DataType::kInt8, w, 1)};
        endIntegers(a.epilogue, bytes, end, y, w[0]);
        list.add("sparse_int8_" + name, std::move(a), std::move(bytes));
    };
    // Steps are 64 channels of a position; tiles 64 to 256 filters and pixels.
    for (bool residual : {false, true}) {
        std::string const r = residual ? "_residual" : "";
        FusedActivation const relu = Kind::kRelu;
        add("1x1" + r, {2, 64, 7, 9}, {64, 64, 1, 1}, 0, 1, 1, residual, relu);
        add("1x1_wide" + r, {3, 128, 14, 14}, {520, 128, 1, 1}, 0, 1, 1, residual, relu);
        add("1x1_odd" + r, {1, 36, 5, 11}, {75, 36, 1, 1}, 0, 1, 1, residual, {});
        add("1x1_stride2" + r, {2, 72, 9, 9}, {136, 72, 1, 1}, 0, 2, 1, residual, relu);
        add("3x3" + r, {2, 64, 9, 7}, {64, 64, 3, 3}, 1, 1, 1, residual, relu);
        add("3x3_channels_100" + r, {1, 100, 13, 12}, {130, 100, 3, 3}, 1, 1, 1, residual, Kind::kTanh);
        add("3x3_stride2" + r, {2, 64, 15, 14}, {256, 64, 3, 3}, 1, 2, 1, residual, relu);
        add("3x3_dilated" + r, {1, 64, 17, 16}, {72, 64, 3, 3}, 2, 1, 2, residual, relu);
        add("3x3_many_pixels" + r, {3, 64, 24, 25}, {136, 64, 3, 3}, 1, 1, 1, residual, relu);
        add("5x5_valid" + r, {2, 40, 11, 9}, {64, 40, 5, 5}, 0, 1, 1, residual, relu);
    }

    list.add("sparse_groups", Form{.groups = 2}.attrs(2),
             {input(kType, {1, 128, 6, 6}), twoOfFour(kType, {64, 64, 1, 1}, 1)});
    list.add("sparse_other_axis", Attrs::plain(2), {input(kType, {1, 64, 6, 6}), twoOfFour(kType, {64, 64, 1, 1}, 0)});
    list.add("sparse_empty", Attrs::plain(2), {input(kType, {0, 64, 6, 6}), twoOfFour(kType, {64, 64, 1, 1}, 1)});
}

// Windows with long rows or many elements, and weights that are no constants.
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
    variable("depthwise_tails", {2, 43, 9, 15}, {43, 1, 5, 3}, false, {.pad = {2, 1}, .strides = {2, 1}, .groups = 43});
    add(list, DataType::kFloat, "single_variable_transposed_depthwise", {1, 20, 5, 6}, {20, 1, 4, 4}, true,
        {.pad = {1, 1}, .strides = {2, 2}, .groups = 20}, true, false);
    variable("depthwise_pairs", {1, 18, 6, 7}, {18, 2, 3, 3}, true, evenly(1, 1, 1, 9));
    // What kernels of products take, which pack them at each run or read them in place.
    variable("1x1_in_place", {2, 64, 9, 11}, {136, 64, 1, 1}, false, evenly(1, 0, 1, 1));
    variable("3x3_channels_64", {2, 64, 9, 11}, {75, 64, 3, 3}, false, evenly(1, 1, 1, 1));
    variable("3x3_channels_20", {2, 20, 9, 12}, {40, 20, 3, 3}, false, evenly(2, 1, 1, 1));
    variable("3x3_larger", {1, 128, 28, 27}, {128, 128, 3, 3}, false, evenly(1, 1, 1, 1));
    variable("5x2_groups", {1, 32, 12, 9}, {64, 16, 5, 2}, false, {.pad = {2, 0}, .groups = 2});
    variable("3x3x3", {1, 6, 4, 5, 6}, {20, 6, 3, 3, 3}, true, {.pre = {1, 1, 1}});
}

} // namespace

void cases(CaseList& list)
{
    auto conv = [&](std::string const& name, Extents const& x, Extents const& w, bool bias, Form const& form) {
        add(list, DataType::kFloat, name, x, w, bias, form);
    };
    // Worked by hand: the sum of each 2x2 window, plus 1.
    list.add("by_hand", Attrs::plain(2),
             {f32({1, 1, 2, 3}, {1, 2, 3, 4, 5, 6}), constant(DataType::kFloat, {1, 1, 2, 2}, {1, 1, 1, 1}),
              constant(DataType::kFloat, {1}, {1})},
             {{13, 17}});
    conv("1x1", {1, 5, 3, 7}, {6, 5, 1, 1}, true, {});
    conv("3x3_valid", {2, 3, 6, 9}, {4, 3, 3, 3}, false, {});
    conv("3x3_pad1", {1, 3, 8, 8}, {8, 3, 3, 3}, true, {.pad = {1, 1}});
    conv("5x3_asymmetric", {1, 2, 9, 8}, {3, 2, 5, 3}, true, {.pre = {2, 0}, .post = {1, 3}, .strides = {2, 3}});
    conv("dilated_2x3", {1, 2, 11, 13}, {3, 2, 3, 3}, false, {.dilations = {2, 3}});
    conv("groups_2", {2, 4, 5, 5}, {6, 2, 3, 3}, true, {.groups = 2});
    conv("depthwise", {1, 6, 7, 7}, {6, 1, 3, 3}, true, {.pad = {1, 1}, .groups = 6});
    conv("round_up", {1, 2, 8, 8}, {2, 2, 3, 3}, false, {.strides = {2, 2}, .mode = PaddingMode::kExplicitRoundUp});
    conv("same_upper", {1, 2, 7, 8}, {2, 2, 4, 4}, false, {.strides = {2, 2}, .mode = PaddingMode::kSameUpper});
    conv("same_lower", {1, 2, 7, 8}, {2, 2, 4, 4}, false, {.strides = {2, 2}, .mode = PaddingMode::kSameLower});
    conv("caffe_down", {1, 1, 8, 8}, {2, 1, 3, 3}, false,
         {.pre = {1, 1}, .strides = {2, 2}, .mode = PaddingMode::kCaffeRoundDown});
    conv("caffe_up", {1, 1, 8, 8}, {2, 1, 3, 3}, false,
         {.pre = {1, 1}, .strides = {2, 2}, .mode = PaddingMode::kCaffeRoundUp});
    conv("3d", {1, 2, 4, 5, 6}, {3, 2, 2, 3, 3}, true, {.pad = {0, 1, 1}});
    conv("batch_dims", {2, 3, 2, 4, 4}, {3, 2, 3, 3}, true, {});
    conv("empty_batch", {0, 2, 4, 4}, {3, 2, 3, 3}, true, {});
    conv("no_channels", {1, 0, 4, 4}, {3, 0, 3, 3}, true, {});
    // Every remainder of output tiles, channel vectors and panels.
    int64_t const channels[] = {1, 3, 17, 40, 64};
    for (int64_t side = 1; side <= 9; ++side) {
        int64_t const c = channels[side % 5], k = channels[(side + 2) % 5];
        conv(fmt::format("3x3_to_{}", side), {1 + side % 2, c, side, 10 - side}, {k, c, 3, 3}, side % 3 != 0,
             {.pad = {1, 1}});
    }
    conv("3x3_asymmetric_pads", {1, 20, 7, 10}, {33, 20, 3, 3}, true, {.pre = {2, 0}, .post = {0, 1}});
    conv("3x3_wide_pads", {1, 4, 3, 2}, {5, 4, 3, 3}, true, {.pre = {6, 9}, .post = {5, 8}});
    conv("3x3_72_to_40", {2, 72, 6, 7}, {40, 72, 3, 3}, true, {.pre = {1, 1}});
    conv("3x3_many_tiles", {1, 16, 21, 42}, {48, 16, 3, 3}, true, {});
    // Emitted kernels: tails of channels, rows of outputs below, at and above each tile, borders, all kinds of steps.
    auto same = [](int64_t pad) { return evenly(1, pad); };
    auto depthwise = [](int64_t c, int64_t pad, int64_t stride, int64_t dilation) {
        return evenly(stride, pad, dilation, c);
    };
    conv("1x1_tails", {2, 17, 5, 6}, {40, 17, 1, 1}, true, {});
    conv("1x1_wide", {1, 24, 9, 11}, {96, 24, 1, 1}, true, {});
    conv("1x1_one_pixel", {1, 40, 1, 1}, {24, 40, 1, 1}, true, {});
    conv("1x1_one_channel", {1, 1, 6, 5}, {17, 1, 1, 1}, false, {});
    conv("1x1_to_one", {1, 33, 6, 5}, {1, 33, 1, 1}, true, {});
    conv("1x1_pad1", {1, 3, 4, 5}, {5, 3, 1, 1}, true, same(1));
    // Few filters: tiles of outputs and what they leave, columns whose window reaches beyond the image.
    for (int64_t k = 1; k <= 4; ++k)
        for (int64_t width : {1, 2, 9, 19, 45})
            conv(fmt::format("few_filters_{}_width{}", k, width), {2, 16 + 8 * (width % 2), 4, width},
                 {k, 16 + 8 * (width % 2), 3, 3}, k != 2, same(1));
    conv("few_filters_7x7", {1, 64, 11, 30}, {3, 64, 7, 7}, true, same(3));
    conv("few_filters_1x1", {3, 32, 5, 21}, {2, 32, 1, 1}, true, {});
    conv("few_filters_stride2", {2, 16, 9, 40}, {3, 16, 5, 5}, true, evenly(2, 2));
    conv("few_filters_dilated", {1, 48, 9, 30}, {1, 48, 3, 3}, false, {.pad = {2, 4}, .dilations = {2, 4}});
    conv("few_filters_much_padding", {1, 16, 2, 3}, {4, 16, 3, 3}, true, same(5));
    conv("few_filters_asymmetric", {1, 40, 6, 33}, {3, 40, 4, 2}, true,
         {.pre = {0, 3}, .post = {3, 0}, .strides = {1, 3}});
    conv("few_filters_empty", {0, 16, 4, 5}, {3, 16, 3, 3}, true, same(1));
    conv("1x1_stride2", {2, 20, 7, 9}, {33, 20, 1, 1}, true, {.strides = {2, 2}});
    for (int64_t width : {1, 2, 6, 7, 13, 14, 15, 28, 29, 43})
        conv(fmt::format("3x3_width{}", width), {1, 5, 4, width}, {18, 5, 3, 3}, true, same(1));
    conv("3x3_many", {2, 24, 5, 16}, {40, 24, 3, 3}, true, same(1));
    conv("3x3_asymmetric", {1, 17, 6, 9}, {24, 17, 3, 3}, false, {.pre = {0, 2}, .post = {2, 1}, .strides = {3, 2}});
    conv("3x3_dilated", {1, 9, 9, 20}, {16, 9, 3, 3}, true, {.pad = {2, 4}, .dilations = {2, 4}});
    conv("3x3_much_padding", {1, 4, 2, 3}, {3, 4, 3, 3}, true, same(5));
    conv("3x3_one_output", {1, 8, 3, 3}, {17, 8, 3, 3}, true, {});
    conv("7x7_stride2", {1, 3, 21, 35}, {24, 3, 7, 7}, true, {.pad = {3, 3}, .strides = {2, 2}});
    conv("1x7", {1, 6, 4, 17}, {32, 6, 1, 7}, true, {.pad = {0, 3}});
    conv("7x1", {1, 6, 17, 4}, {48, 6, 7, 1}, true, {.pad = {3, 0}});
    conv("groups_4_tails", {2, 12, 5, 15}, {20, 3, 3, 3}, true, {.pad = {1, 1}, .groups = 4});
    conv("groups_2_whole", {1, 32, 5, 8}, {64, 16, 3, 3}, true, {.pad = {1, 1}, .groups = 2});
    conv("channel_multiplier", {1, 5, 6, 6}, {15, 1, 3, 3}, true, {.groups = 5});
    for (int64_t width : {1, 2, 7, 8, 13, 14, 15, 30, 57})
        conv(fmt::format("depthwise_width{}", width), {1, 17, 5, width}, {17, 1, 3, 3}, true, depthwise(17, 1, 1, 1));
    conv("depthwise_stride2", {2, 40, 9, 31}, {40, 1, 3, 3}, true, depthwise(40, 1, 2, 1));
    conv("depthwise_stride3", {1, 24, 10, 33}, {24, 1, 3, 3}, false, depthwise(24, 0, 3, 1));
    conv("depthwise_5x5", {1, 48, 6, 29}, {48, 1, 5, 5}, true, depthwise(48, 2, 1, 1));
    conv("depthwise_5x5_stride2", {1, 20, 11, 29}, {20, 1, 5, 5}, true, depthwise(20, 2, 2, 1));
    conv("depthwise_7x7", {1, 33, 8, 20}, {33, 1, 7, 7}, true, depthwise(33, 3, 1, 1));
    conv("depthwise_dilated", {1, 19, 9, 33}, {19, 1, 3, 3}, true, depthwise(19, 2, 1, 2));
    conv("depthwise_1x17", {1, 3, 2, 40}, {3, 1, 1, 17}, true, depthwise(3, 0, 1, 1));
    conv("depthwise_much_padding", {1, 4, 2, 3}, {4, 1, 3, 3}, true, depthwise(4, 5, 1, 1));
    conv("depthwise_asymmetric", {1, 35, 7, 18}, {35, 1, 3, 3}, false,
         {.pre = {0, 2}, .post = {1, 0}, .strides = {1, 2}, .groups = 35});
    conv("depthwise_large", {1, 24, 96, 96}, {24, 1, 3, 3}, true, depthwise(24, 1, 1, 1));
    conv("depthwise_large_stride2", {1, 24, 96, 96}, {24, 1, 3, 3}, true, depthwise(24, 1, 2, 1));
    for (int64_t group : {2, 4})
        for (int64_t groups : {1, 3, 5, 8, 9, 17}) {
            int64_t const c = group * groups;
            std::string const name = fmt::format("groups_{}_of_{}", groups, group);
            conv(name, {2, c, 7, 19}, {c, group, 3, 3}, true, depthwise(groups, 1, 1, 1));
            conv(name + "_stride2", {1, c, 9, 14}, {c, group, 3, 3}, true, depthwise(groups, 1, 2, 1));
            conv(name + "_1x1", {1, c, 5, 6}, {c, group, 1, 1}, false, depthwise(groups, 0, 1, 1));
            conv(name + "_5x5_dilated", {1, c, 11, 12}, {c, group, 5, 5}, true, depthwise(groups, 4, 1, 2));
        }
    conv("groups_of_4_large", {1, 128, 40, 40}, {128, 4, 3, 3}, true, depthwise(32, 1, 1, 1));
    conv("depthwise_empty", {0, 6, 7, 7}, {6, 1, 3, 3}, true, depthwise(6, 1, 1, 1));
    // In FP16 and FP32, as a GPU's tensor units take them.
    auto image = [&](std::string const& name, Extents const& x, Extents const& w, bool bias, Form const& form) {
        for (DataType t : {DataType::kHalf, DataType::kFloat})
            add(list, t, wordOf(t) + "_" + name, x, w, bias, form);
    };
    auto volume = [&](std::string const& name, Extents const& x, Extents const& w, bool bias, Form const& form) {
        image("3d_" + name, x, w, bias, form);
    };
    volume("3x3x3", {2, 24, 5, 7, 9}, {40, 24, 3, 3, 3}, true, evenly(1, 1));
    volume("3x3x3_few", {1, 16, 5, 17, 33}, {16, 16, 3, 3, 3}, true, evenly(1, 1));
    volume("3x3x3_one", {1, 1, 6, 9, 20}, {16, 1, 3, 3, 3}, true, evenly(1, 1));
    volume("1x1x1_to_3", {2, 32, 4, 9, 18}, {3, 32, 1, 1, 1}, true, evenly(1, 0));
    volume("5x3x1", {1, 24, 7, 10, 21}, {20, 24, 5, 3, 1}, true, {.pre = {2, 0, 0}, .post = {1, 2, 0}});
    volume("3x3x3_long", {1, 72, 3, 4, 4}, {136, 72, 3, 3, 3}, true, evenly(1, 1));
    volume("3x3x3_stride2", {1, 17, 6, 7, 8}, {33, 17, 3, 3, 3}, true, evenly(2, 1));
    volume("3x3x3_dilated", {1, 16, 6, 7, 8}, {24, 16, 3, 3, 3}, false, evenly(1, 2, 2));
    volume("3x3x3_padding", {1, 40, 5, 6, 9}, {24, 40, 3, 3, 3}, true, {.pre = {0, 2, 1}, .post = {2, 0, 1}});
    volume("3x3x3_strides", {2, 64, 7, 9, 10}, {72, 64, 3, 3, 3}, true, {.pad = {1, 1, 1}, .strides = {1, 2, 3}});
    volume("1x3x3", {1, 64, 6, 10, 11}, {96, 64, 1, 3, 3}, true, {.pad = {0, 1, 1}});
    volume("2x2x2_stride2", {1, 32, 6, 8, 10}, {64, 32, 2, 2, 2}, true, evenly(2, 0));
    volume("3x3x3_wide", {1, 128, 4, 20, 21}, {256, 128, 3, 3, 3}, true, evenly(1, 1));
    volume("1x1x1", {2, 20, 3, 4, 5}, {70, 20, 1, 1, 1}, true, evenly(1, 0));
    volume("first", {1, 3, 5, 12, 13}, {64, 3, 3, 7, 7}, true, {.pad = {1, 3, 3}, .strides = {1, 2, 2}});
    volume("3x1x1", {1, 32, 6, 5, 5}, {32, 32, 3, 1, 1}, true, {.pre = {2, 0, 0}, .post = {0, 0, 1}});
    volume("groups", {1, 24, 4, 5, 6}, {48, 8, 3, 3, 3}, true, evenly(1, 1, 1, 3));
    volume("groups_odd", {1, 15, 4, 5, 6}, {10, 3, 3, 3, 3}, true, evenly(2, 1, 1, 5));
    volume("depthwise", {1, 16, 4, 5, 6}, {16, 1, 3, 3, 3}, true, evenly(1, 1, 1, 16));
    volume("depthwise_strides", {2, 35, 5, 9, 14}, {35, 1, 3, 3, 3}, true,
           {.pre = {1, 1, 0}, .post = {1, 2, 1}, .strides = {2, 1, 2}, .groups = 35});
    volume("depthwise_planes", {1, 24, 7, 6, 17}, {24, 1, 5, 1, 1}, false, {.pad = {2, 0, 0}, .groups = 24});
    volume("depthwise_dilated", {1, 40, 6, 7, 9}, {40, 1, 3, 3, 3}, true, evenly(1, 2, 2, 40));
    volume("depthwise_much_padding", {1, 17, 1, 2, 3}, {17, 1, 3, 2, 3}, true, evenly(1, 4, 1, 17));
    volume("depthwise_large", {1, 32, 6, 40, 40}, {32, 1, 3, 3, 3}, true, evenly(1, 1, 1, 32));
    volume("groups_of_2", {2, 18, 3, 5, 7}, {18, 2, 3, 3, 3}, true, evenly(1, 1, 1, 9));
    volume("groups_of_4", {1, 32, 4, 6, 7}, {32, 4, 2, 3, 3}, true, evenly(2, 1, 1, 8));
    volume("batch_dims", {2, 3, 8, 3, 4, 5}, {16, 8, 3, 3, 3}, true, evenly(1, 1));
    volume("empty", {0, 8, 3, 4, 5}, {16, 8, 3, 3, 3}, true, evenly(1, 1));
    image("3x3", {1, 4, 6, 6}, {5, 4, 3, 3}, true, {});
    // Products: whole vectors of channels and tails, many rows and few.
    image("1x1", {3, 64, 7, 9}, {72, 64, 1, 1}, true, {});
    image("1x1_tails", {2, 36, 5, 7}, {20, 36, 1, 1}, true, {});
    image("1x1_few_rows", {1, 200, 7, 7}, {136, 200, 1, 1}, false, {});
    image("1x1_one_pixel", {1, 40, 1, 1}, {24, 40, 1, 1}, true, {});
    image("1x1_stride2", {2, 64, 7, 9}, {96, 64, 1, 1}, true, evenly(2, 0));
    image("1x1_pad1", {1, 16, 4, 5}, {8, 16, 1, 1}, true, same(1));
    // Images.
    image("3x3_pad1", {2, 72, 9, 11}, {96, 72, 3, 3}, true, same(1));
    image("3x3_tails", {2, 20, 9, 11}, {33, 20, 3, 3}, true, same(1));
    image("3x3_stride2", {2, 64, 14, 13}, {80, 64, 3, 3}, true, evenly(2, 1));
    image("3x3_deep", {1, 256, 5, 5}, {64, 256, 3, 3}, true, same(1));
    image("3x3_wide", {1, 8, 3, 150}, {16, 8, 3, 3}, true, same(1));
    image("3x3_much_padding", {1, 8, 2, 3}, {8, 8, 3, 3}, true, same(5));
    image("1x7", {1, 24, 4, 17}, {32, 24, 1, 7}, true, {.pad = {0, 3}});
    image("5x3_asymmetric", {1, 24, 9, 8}, {40, 24, 5, 3}, true, {.pre = {2, 0}, .post = {1, 3}, .strides = {2, 3}});
    image("dilated", {1, 16, 11, 13}, {24, 16, 3, 3}, false, {.dilations = {2, 3}});
    image("batch_dims", {2, 3, 16, 5, 5}, {24, 16, 3, 3}, true, {});
    image("empty_batch", {0, 16, 4, 4}, {8, 16, 3, 3}, true, {});
    image("groups_4", {2, 64, 6, 7}, {48, 16, 3, 3}, true, {.groups = 4});
    image("groups_2", {1, 12, 6, 7}, {64, 6, 3, 3}, true, {.groups = 2});
    image("channel_multiplier", {1, 5, 6, 6}, {15, 1, 3, 3}, true, {.groups = 5});
    // First layers.
    image("7x7_first", {2, 3, 53, 104}, {72, 3, 7, 7}, true, evenly(2, 3));
    image("7x7_to_3", {1, 40, 20, 37}, {3, 40, 7, 7}, true, evenly(1, 3));
    image("9x9_of_3", {2, 3, 25, 30}, {32, 3, 9, 9}, true, {});
    image("3x15_to_4", {2, 19, 9, 70}, {4, 19, 3, 15}, true, {.pad = {1, 7}});
    image("5x5_to_1", {1, 72, 9, 17}, {1, 72, 5, 5}, false, evenly(1, 2));
    image("3x2_to_12", {2, 100, 6, 19}, {12, 100, 3, 2}, true, {.pre = {0, 1}, .post = {2, 0}});
    image("3x3_first", {2, 3, 33, 48}, {32, 3, 3, 3}, true, evenly(2, 1));
    image("3x3_first_valid", {1, 4, 33, 40}, {36, 4, 3, 3}, false, evenly(2, 0));
    image("3x3_first_odd", {2, 3, 19, 21}, {20, 3, 3, 3}, true, evenly(2, 0));
    image("3x3_first_stride1", {1, 3, 20, 24}, {64, 3, 3, 3}, true, same(1));
    image("patches", {2, 3, 32, 48}, {40, 3, 16, 16}, true, evenly(16, 0));
    // Channels that stand alone.
    image("depthwise", {2, 40, 9, 11}, {40, 1, 3, 3}, true, depthwise(40, 1, 1, 1));
    image("depthwise_tails", {2, 19, 7, 6}, {19, 1, 3, 3}, false, depthwise(19, 1, 1, 1));
    image("depthwise_stride2", {2, 24, 11, 14}, {24, 1, 3, 3}, true, depthwise(24, 1, 2, 1));
    image("depthwise_5x5", {1, 16, 9, 10}, {16, 1, 5, 5}, true, depthwise(16, 2, 1, 1));
    image("depthwise_5x5_stride2", {1, 16, 9, 13}, {16, 1, 5, 5}, true, depthwise(16, 2, 2, 1));
    image("depthwise_dilated", {1, 16, 9, 10}, {16, 1, 3, 3}, true, depthwise(16, 2, 1, 2));
    image("depthwise_large", {1, 8, 12, 12}, {8, 1, 9, 9}, true, depthwise(8, 4, 1, 1));
    // Of as many tiles as make a GPU choose large ones; infinities and NaN, which stay in their channel.
    image("depthwise_tiles", {11, 88, 17, 49}, {88, 1, 3, 3}, true, depthwise(88, 1, 1, 1));
    image("depthwise_tiles_stride2", {9, 136, 33, 65}, {136, 1, 3, 3}, true, depthwise(136, 1, 2, 1));
    image("depthwise_tiles_5x5_stride2", {9, 136, 33, 65}, {136, 1, 5, 5}, true, depthwise(136, 2, 2, 1));
    image("depthwise_tiles_dilated", {4, 264, 18, 51}, {264, 1, 3, 5}, false,
          {.pre = {2, 3}, .post = {1, 4}, .dilations = {1, 2}, .groups = 264});
    image("depthwise_7x7", {2, 40, 10, 21}, {40, 1, 7, 7}, true, depthwise(40, 3, 1, 1));
    image("depthwise_narrow", {5, 72, 7, 7}, {72, 1, 3, 3}, true, depthwise(72, 1, 1, 1));
    image("depthwise_steps", {2, 24, 13, 27}, {24, 1, 4, 3}, true,
          {.pre = {2, 1}, .strides = {3, 4}, .dilations = {2, 1}, .groups = 24});
    for (DataType t : {DataType::kHalf, DataType::kFloat}) {
        double const inf = std::numeric_limits<double>::infinity();
        std::vector<double> values;
        for (int i = 0; i < 16 * 6 * 21; ++i)
            values.push_back(i % 16 / 8.0 - 1);
        values[0] = values[5 * 126 + 70] = inf;
        values[9 * 126 + 40] = -inf;
        values[12 * 126 + 125] = std::numeric_limits<double>::quiet_NaN();
        list.add(wordOf(t) + "_depthwise_infinities", depthwise(16, 1, 1, 1).attrs(2),
                 {input(t, {1, 16, 6, 21}, values), constant(t, {16, 1, 3, 3})});
    }
    image("depthwise_one_column", {3, 32, 5, 1}, {32, 1, 3, 1}, true, depthwise(32, 0, 1, 1));
    epilogueCases(list);
    programCases(list);
    int8Cases(list);
    sparseCases(list);
    transposedCases(list);
    windowCases(list);
}

// Channels of x and y, window and padding of a convolution, and what stands after it.
void randomCase(CaseList& list, Draw& d, std::string const& name)
{
    KernelWindowAttrs a;
    Extents x, w, y;
    bool const transposed = d.chance(33);
    d.until([&] {
        int const rank = d.chance(85) ? 2 : 3;
        a = KernelWindowAttrs::plain(rank);
        bool const depthwise = d.chance(20);
        int64_t const c = d.size(80), perGroup = depthwise ? 1 : d.size(80);
        a.groups = depthwise ? c : d.chance(25) ? d.from(2, 4) : 1;
        int64_t const in = depthwise ? c : c * a.groups, out = perGroup * a.groups;
        x = rank == 2 ? Extents{d.from(1, 3), in, 0, 0} : Extents{d.from(1, 2), in, 0, 0, 0};
        w = y = x;
        y[1] = out;
        w[0] = transposed ? in : out;
        w[1] = transposed ? perGroup : in / a.groups;
        int64_t work = x[0] * out * (in / a.groups);
        for (int i = 0; i < rank; ++i) {
            size_t const k = size_t(i);
            x[2 + i] = d.size(rank == 2 ? 40 : 9);
            w[2 + i] = d.chance(30) ? 1 : d.chance(60) ? 3 : d.from(1, 7);
            a.strides[k] = d.chance(60) ? 1 : d.from(1, 3);
            a.dilations[k] = d.chance(80) ? 1 : d.from(1, 3);
            a.prePadding[k] = d.from(0, w[2 + i] / 2 + d.chance(10));
            a.postPadding[k] = d.chance(60) ? a.prePadding[k] : d.from(0, w[2 + i] / 2);
            int64_t const reach = a.dilations[k] * (w[2 + i] - 1) + 1, pad = a.prePadding[k] + a.postPadding[k];
            int64_t const o = transposed
                                  ? (x[2 + i] - 1) * a.strides[k] + reach - pad
                                  : (x[2 + i] + pad - reach < 0 ? 0 : (x[2 + i] + pad - reach) / a.strides[k] + 1);
            if (o < 1)
                return false;
            y[2 + i] = o;
            work *= w[2 + i] * (transposed ? x[2 + i] : o);
        }
        return work <= kMostWork;
    });
    DataType const t = d.chance(30) ? DataType::kInt8 : d.type();
    std::vector<CaseInput> in{input(t, x), constant(t, w)};
    in[1].constant = isQuantized(t) || !d.chance(15);
    if (isQuantized(t)) {
        Attrs sums(a, {}, transposed);
        endIntegers(sums.epilogue, in, integerSums(d), y, y[1]);
        list.add(name, sums, in);
        return;
    }
    bool const residual = d.chance(25);
    if (d.chance(60))
        in.push_back(constant(t, {y[1]}));
    else if (residual)
        in.push_back(absent());
    if (residual)
        in.push_back(input(t, y));
    Attrs sums(a, activationOf(d), transposed);
    if (d.chance(20))
        drawProgram(d, residual).setTo(sums.epilogue);
    list.add(name, sums, in);
}

} // namespace tw::ops::convolution
