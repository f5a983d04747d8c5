// SPDX-License-Identifier: Apache-2.0
// Cases of convolutions transposed.
#include "ops/convolution/cases.h"
#include "ops/convolution/op.h"

namespace tw::ops::convolution {

void transposedCases(CaseList& list)
{
    auto add = [&](std::string const& name, Attrs a, std::vector<CaseInput> in,
                   std::vector<std::vector<double>> expected = {}) {
        list.add("transposed_" + name, std::move(a), std::move(in), std::move(expected));
    };
    auto deconv = [&](std::string const& name, Extents const& x, Extents const& w, bool bias, Form const& form) {
        ops::convolution::add(list, DataType::kFloat, "transposed_" + name, x, w, bias, form, true);
    };
    // Worked by hand: each input adds (x, 10 x) to its place and the next, plus 1.
    add("by_hand", Attrs::plain(2, true),
        {f32({1, 1, 1, 3}, {1, 2, 3}), constant(DataType::kFloat, {1, 1, 1, 2}, {1, 10}),
         constant(DataType::kFloat, {1}, {1})},
        {{2, 13, 24, 31}});
    // Two input channels, one for each of two groups with one and the same window size: K = 2.
    add("groups_by_hand", Form{.groups = 2}.attrs(2, true),
        {f32({1, 2, 1, 1}, {3, 5}), constant(DataType::kFloat, {2, 1, 1, 2}, {1, 2, 10, 20})}, {{3, 6, 50, 100}});
    deconv("1x1", {1, 5, 3, 7}, {5, 6, 1, 1}, true, {});
    deconv("3x3", {2, 3, 6, 9}, {3, 4, 3, 3}, false, {});
    deconv("3x3_pad1", {1, 3, 8, 8}, {3, 8, 3, 3}, true, {.pad = {1, 1}});
    deconv("4x4_stride2", {1, 3, 5, 6}, {3, 2, 4, 4}, true, {.pad = {1, 1}, .strides = {2, 2}});
    deconv("5x3_asymmetric", {1, 2, 9, 8}, {2, 3, 5, 3}, true, {.pre = {2, 0}, .post = {1, 3}, .strides = {2, 3}});
    deconv("stride_beyond_window", {1, 2, 3, 4}, {2, 3, 2, 2}, true, {.strides = {3, 4}});
    deconv("dilated_2x3", {1, 2, 5, 6}, {2, 3, 3, 3}, false, {.strides = {1, 2}, .dilations = {2, 3}});
    deconv("groups_2", {2, 4, 5, 5}, {4, 3, 3, 3}, true, {.groups = 2});
    deconv("depthwise", {1, 6, 7, 7}, {6, 1, 3, 3}, true, {.pad = {1, 1}, .strides = {2, 2}, .groups = 6});
    for (int mode = 0; mode < kPaddingModeCount; ++mode)
        for (int64_t window : {1, 2, 5})
            deconv(fmt::format("mode_{}_window_{}", mode, window), {1, 2, 5, 6}, {2, 2, window, 3}, false,
                   {.pre = {0, 1}, .post = {0, 1}, .strides = {2, 2}, .mode = PaddingMode(mode)});
    // Emitted kernels: phases of every kind, tails of channels, rows of outputs below, at and above each tile.
    for (int64_t width : {1, 2, 13, 14, 15, 29})
        deconv(fmt::format("2x2_stride2_width{}", width), {1, 17, 3, width}, {17, 40, 2, 2}, true, {.strides = {2, 2}});
    deconv("4x4_stride2_many", {2, 24, 7, 17}, {24, 33, 4, 4}, true, {.pad = {1, 1}, .strides = {2, 2}});
    deconv("3x3_stride3_shifted", {1, 9, 4, 16}, {9, 24, 3, 3}, false,
           {.pre = {2, 1}, .post = {0, 2}, .strides = {3, 3}});
    deconv("5x5_dilated2_stride2", {1, 8, 6, 15}, {8, 16, 5, 5}, true,
           {.pad = {3, 2}, .strides = {2, 3}, .dilations = {2, 2}});
    deconv("groups_tails", {2, 6, 5, 9}, {6, 10, 3, 3}, true, {.pad = {1, 1}, .strides = {2, 1}, .groups = 2});
    // One filter for each channel: phases with and without taps, volumes.
    deconv("depthwise_4x4", {2, 35, 7, 16}, {35, 1, 4, 4}, true, {.pad = {1, 1}, .strides = {2, 2}, .groups = 35});
    deconv("depthwise_1x8", {2, 40, 1, 21}, {40, 1, 1, 8}, false, {.pad = {0, 2}, .strides = {1, 4}, .groups = 40});
    deconv("depthwise_2x2_stride3", {1, 17, 5, 6}, {17, 1, 2, 2}, true, {.strides = {3, 3}, .groups = 17});
    deconv("depthwise_5x3_dilated", {1, 24, 6, 9}, {24, 1, 5, 3}, true,
           {.pre = {3, 0}, .post = {1, 2}, .strides = {2, 3}, .dilations = {2, 2}, .groups = 24});
    deconv("depthwise_3x3_stride1", {1, 24, 9, 14}, {24, 1, 3, 3}, true, {.pad = {1, 1}, .groups = 24});
    deconv("depthwise_3d", {1, 19, 3, 5, 6}, {19, 1, 3, 4, 4}, true,
           {.pad = {1, 1, 1}, .strides = {1, 2, 2}, .groups = 19});
    deconv("depthwise_wide_stride", {1, 8, 4, 3}, {8, 1, 16, 16}, true,
           {.pad = {4, 4}, .strides = {8, 8}, .groups = 8});
    deconv("depthwise_large", {1, 32, 40, 40}, {32, 1, 4, 4}, true, {.pad = {1, 1}, .strides = {2, 2}, .groups = 32});
    deconv("3d", {1, 2, 3, 4, 5}, {2, 3, 2, 3, 3}, true, {.pad = {0, 1, 1}, .strides = {1, 2, 2}});
    deconv("batch_dims", {2, 3, 2, 4, 4}, {2, 3, 3, 3}, true, {});
    deconv("empty_batch", {0, 2, 4, 4}, {2, 3, 3, 3}, true, {});
    deconv("no_channels", {1, 0, 4, 4}, {0, 3, 3, 3}, true, {});
    deconv("trimmed_to_nothing", {1, 2, 2, 2}, {2, 3, 2, 2}, true, {.pre = {3, 0}});
    Attrs const beside = evenly(2, 0).attrs(2, true);
    for (DataType t : {DataType::kHalf, DataType::kFloat}) {
        std::string const name = wordOf(t) + "_";
        add(name + "2x2_beside", beside, {input(t, {2, 40, 5, 6}), constant(t, {40, 24, 2, 2}), constant(t, {24})});
        add(name + "2x2_beside_tails", beside, {input(t, {1, 36, 3, 70}), constant(t, {36, 21, 2, 2})});
    }
    add("half_3x3", Form{.strides = {2, 1}}.attrs(2, true),
        {input(DataType::kHalf, {1, 4, 6, 6}), constant(DataType::kHalf, {4, 5, 3, 3}),
         constant(DataType::kHalf, {5})});
    // In FP16 and FP32, as a GPU's tensor cores take them: phases of every kind.
    auto image = [&](std::string const& name, Extents const& x, Extents const& w, bool bias, Form const& form) {
        for (DataType t : {DataType::kHalf, DataType::kFloat})
            ops::convolution::add(list, t, "transposed_" + wordOf(t) + "_" + name, x, w, bias, form, true);
    };
    image("4x4_stride2", {2, 40, 9, 11}, {40, 72, 4, 4}, true, evenly(2, 1));
    image("4x4_from_one", {3, 100, 1, 1}, {100, 64, 4, 4}, false, evenly(1, 0));
    image("3x3_stride2", {1, 17, 8, 6}, {17, 33, 3, 3}, true, evenly(2, 1));
    image("3x3_stride1", {1, 24, 10, 7}, {24, 16, 3, 3}, true, evenly(1, 1));
    image("3x3_dilated", {1, 24, 7, 9}, {24, 20, 3, 3}, true, evenly(1, 2, 2));
    image("5x5_stride2_dilated2", {1, 16, 6, 7}, {16, 12, 5, 5}, true, evenly(2, 3, 2));
    image("5x5_stride2_dilated3", {1, 16, 6, 7}, {16, 12, 5, 5}, true, evenly(2, 3, 3));
    image("2x2_stride3", {1, 20, 5, 4}, {20, 24, 2, 2}, true, evenly(3, 0)); // outputs that nothing reaches
    image("7x7_stride4", {1, 33, 5, 6}, {33, 5, 7, 7}, true, evenly(4, 2));
    image("groups_4", {2, 48, 5, 6}, {48, 8, 4, 4}, true, evenly(2, 1, 1, 4));
    image("groups_odd", {1, 9, 5, 6}, {9, 5, 3, 3}, true, evenly(2, 1, 1, 3));
    image("depthwise_stride2", {1, 24, 6, 9}, {24, 1, 4, 4}, true, evenly(2, 1, 1, 24));
    image("3d_stride2", {2, 20, 3, 5, 4}, {20, 40, 4, 4, 4}, true, evenly(2, 1));
    image("3d_2x2x2", {1, 40, 3, 5, 6}, {40, 24, 2, 2, 2}, true, evenly(2, 0));
    image("batch_dims", {2, 3, 16, 5, 6}, {16, 24, 3, 3}, true, evenly(2, 1));
    image("asymmetric", {1, 16, 9, 8}, {16, 24, 5, 3}, true, {.pre = {2, 0}, .post = {1, 3}, .strides = {2, 3}});
    using activation::Kind;
    Attrs const plain = Attrs::plain(2, true), strided = Form{.pre = {1}, .strides = {2}, .groups = 2}.attrs(2, true);
    add("epilogue_relu_by_hand", Attrs(plain, Kind::kRelu, true),
        {f32({1, 1, 1, 2}, {1, -2}), constant(DataType::kFloat, {1, 1, 1, 2}, {1, 3})}, {{1, 1, 0}});
    for (int k = FusedActivation::kNone; k < kFusedKindCount; ++k) {
        FusedActivation const f(FusedKind(k), 0.3F, 1.25F);
        add(fmt::format("epilogue_kind{}", k + 1), Attrs(strided, f, true),
            {f32({2, 4, 5, 7}), constant(DataType::kFloat, {4, 3, 3, 3}), constant(DataType::kFloat, {6})});
    }
    add("epilogue_half", Attrs(plain, Kind::kSigmoid, true),
        {input(DataType::kHalf, {1, 3, 6, 7}), constant(DataType::kHalf, {3, 5, 3, 3})});
    for (DataType t : {DataType::kHalf, DataType::kFloat})
        add(isNarrowFloat(t) ? "epilogue_half_residual" : "epilogue_residual", Attrs(strided, Kind::kTanh, true),
            {input(t, {2, 4, 5, 7}), constant(t, {4, 3, 3, 3}), constant(t, {6}), input(t, {2, 6, 10, 14})});
    add("epilogue_residual_no_bias", Attrs(plain, Kind::kRelu, true),
        {f32({1, 17, 4, 5}), constant(DataType::kFloat, {17, 33, 2, 2}), absent(), f32({1, 33, 5, 6})});
}

} // namespace tw::ops::convolution
