// SPDX-License-Identifier: Apache-2.0
// Cases of convolutions of i8.
#include "cases/integer_sums.h"
#include "ops/convolution/cases.h"
#include "ops/convolution/op.h"

namespace tw::ops::convolution {

namespace {

using activation::Kind;
using enum DataType;

// y of explicit paddings.
Extents outputOf(Attrs const& a, Extents const& x, Extents const& w)
{
    Extents y = x;
    int const axes = w.rank - 2, channels = x.rank - axes - 1;
    y[channels] = a.transposed ? w[1] * a.groups : w[0];
    for (int i = 0; i < axes; ++i) {
        size_t const k = size_t(i);
        int64_t const in = x[channels + 1 + i], extent = a.dilations[k] * (w[2 + i] - 1) + 1;
        int64_t const padding = a.prePadding[k] + a.postPadding[k];
        y[channels + 1 + i] =
            a.transposed ? (in - 1) * a.strides[k] + extent - padding : (in + padding - extent) / a.strides[k] + 1;
    }
    return y;
}

Attrs image(int64_t padding, int64_t stride = 1, int64_t groups = 1, int64_t dilation = 1)
{
    return evenly(stride, padding, dilation, groups).attrs(2);
}

Attrs back(int64_t padding, int64_t stride, int64_t groups = 1)
{
    return evenly(stride, padding, 1, groups).attrs(2, true);
}

// Of an image with rows of one pixel in the window: a convolution along rows, as the importer makes it.
Attrs row(int64_t padding, int64_t stride, int64_t dilation)
{
    return Form{.pad = {0, padding}, .strides = {1, stride}, .dilations = {1, dilation}}.attrs(2);
}

struct Window
{
    char const* name;
    Attrs attrs;
    Extents x, w;
};

std::vector<Window> windows()
{
    Attrs const uneven = Form{.pre = {2, 0}, .post = {1, 3}, .strides = {2, 3}}.attrs(2),
                volume = Form{.pad = {1}}.attrs(3), volumeStrided = Form{.strides = {2, 1, 2}, .groups = 2}.attrs(3),
                volumePlain = Form{}.attrs(3), volumeBack = Form{.strides = {2, 2, 1}}.attrs(3, true),
                backUneven = Form{.pre = {1, 0}, .post = {0, 2}, .strides = {3, 2}, .dilations = {1, 2}}.attrs(2, true);
    return {
        {"1x1", image(0), {2, 64, 7, 9}, {72, 64, 1, 1}},
        {"1x1_64", image(0), {1, 64, 14, 14}, {64, 64, 1, 1}},
        {"1x1_tails", image(0), {2, 37, 5, 7}, {21, 37, 1, 1}},
        {"1x1_deep", image(0), {1, 512, 5, 5}, {136, 512, 1, 1}},
        {"1x1_few_channels", image(0), {1, 5, 6, 6}, {7, 5, 1, 1}},
        {"1x1_one_pixel", image(0), {1, 200, 1, 1}, {65, 200, 1, 1}},
        {"1x1_stride2", image(0, 2), {2, 64, 7, 9}, {96, 64, 1, 1}},
        {"1x1_pad1", image(1), {1, 16, 4, 5}, {8, 16, 1, 1}},
        {"1x1_many_pixels", image(0), {3, 64, 24, 24}, {272, 64, 1, 1}},
        {"3x3_many_pixels", image(1), {3, 48, 25, 25}, {136, 48, 3, 3}},
        {"3x3", image(0), {1, 4, 6, 6}, {5, 4, 3, 3}},
        {"3x3_pad1", image(1), {2, 72, 9, 11}, {96, 72, 3, 3}},
        {"3x3_64", image(1), {1, 64, 13, 15}, {64, 64, 3, 3}},
        {"3x3_tails", image(1), {2, 21, 9, 11}, {33, 21, 3, 3}},
        {"3x3_stride2", image(1, 2), {2, 64, 14, 13}, {80, 64, 3, 3}},
        {"3x3_deep", image(1), {1, 256, 5, 5}, {64, 256, 3, 3}},
        {"3x3_wide", image(1), {1, 8, 3, 150}, {16, 8, 3, 3}},
        {"3x3_much_padding", image(5), {1, 8, 2, 3}, {8, 8, 3, 3}},
        {"3x3_dilated", image(2, 1, 1, 2), {1, 16, 11, 13}, {24, 16, 3, 3}},
        {"5x3_uneven", uneven, {1, 24, 9, 8}, {40, 24, 5, 3}},
        {"first_7x7", image(3, 2), {2, 3, 33, 40}, {64, 3, 7, 7}},
        {"first_3x3", image(1, 2), {1, 3, 32, 33}, {32, 3, 3, 3}},
        {"first_3x3_stride1", image(1), {2, 3, 12, 50}, {20, 3, 3, 3}},
        {"first_patches", image(0, 16), {1, 3, 32, 48}, {40, 3, 16, 16}},
        {"one_channel", image(2), {2, 1, 9, 28}, {6, 1, 5, 5}},
        {"groups_4", image(1, 1, 4), {2, 64, 6, 7}, {48, 16, 3, 3}},
        {"groups_32", image(1, 1, 32), {1, 128, 6, 7}, {128, 4, 3, 3}},
        {"groups_tails", image(1, 2, 3), {2, 15, 6, 7}, {21, 5, 3, 3}},
        {"channel_multiplier", image(0, 1, 5), {1, 5, 6, 6}, {15, 1, 3, 3}},
        {"depthwise", image(1, 1, 40), {2, 40, 9, 11}, {40, 1, 3, 3}},
        {"depthwise_64", image(1, 1, 64), {1, 64, 7, 7}, {64, 1, 3, 3}},
        {"depthwise_144", image(1, 1, 144), {1, 144, 9, 17}, {144, 1, 3, 3}},
        {"depthwise_tails", image(1, 1, 19), {2, 19, 7, 6}, {19, 1, 3, 3}},
        {"depthwise_stride2", image(1, 2, 96), {2, 96, 11, 14}, {96, 1, 3, 3}},
        {"depthwise_5x5_stride2", image(2, 2, 16), {1, 16, 9, 13}, {16, 1, 5, 5}},
        {"depthwise_5x5", image(2, 1, 72), {1, 72, 8, 9}, {72, 1, 5, 5}},
        {"depthwise_7x7", image(3, 1, 40), {1, 40, 10, 12}, {40, 1, 7, 7}},
        {"depthwise_dilated", image(2, 1, 16, 2), {1, 16, 9, 10}, {16, 1, 3, 3}},
        {"depthwise_one_tap", image(0, 1, 24), {1, 24, 4, 5}, {24, 1, 1, 1}},
        {"row_3", row(1, 1, 1), {2, 48, 1, 37}, {40, 48, 1, 3}},
        {"row_9_dilated", row(8, 1, 2), {1, 20, 1, 50}, {24, 20, 1, 9}},
        {"row_stride2", row(2, 2, 1), {1, 80, 1, 64}, {96, 80, 1, 4}},
        {"3d", volume, {1, 20, 4, 5, 6}, {34, 20, 3, 3, 3}},
        {"3d_wide", volume, {2, 48, 4, 7, 9}, {96, 48, 3, 3, 3}},
        {"3d_deep", volume, {1, 256, 3, 5, 6}, {64, 256, 3, 3, 3}},
        {"3d_planes", volume, {1, 64, 5, 10, 11}, {48, 64, 1, 3, 3}},
        {"3d_product", volumePlain, {1, 80, 3, 4, 5}, {112, 80, 1, 1, 1}},
        {"3d_strided_groups", volumeStrided, {2, 16, 5, 4, 7}, {24, 8, 3, 1, 3}},
        {"batch_dims", image(0), {2, 3, 16, 5, 5}, {24, 16, 3, 3}},
        {"back_2x2_stride2", back(0, 2), {2, 32, 5, 6}, {32, 24, 2, 2}},
        {"back_3x3_stride2", back(1, 2), {1, 64, 7, 6}, {64, 40, 3, 3}},
        {"back_4x4_stride2", back(1, 2), {1, 33, 5, 6}, {33, 17, 4, 4}},
        {"back_3x3", back(1, 1), {1, 16, 6, 9}, {16, 64, 3, 3}},
        {"back_1x1_stride3", back(0, 3), {1, 16, 3, 4}, {16, 12, 1, 1}},
        {"back_groups", back(1, 2, 4), {1, 32, 4, 5}, {32, 5, 3, 3}},
        {"back_depthwise", back(1, 2, 24), {1, 24, 5, 6}, {24, 1, 4, 4}},
        {"back_uneven", backUneven, {1, 20, 5, 6}, {20, 18, 4, 3}},
        {"back_3d", volumeBack, {1, 12, 3, 4, 4}, {12, 10, 2, 3, 3}},
    };
}

// Every byte is `value`.
CaseInput filled(Extents const& dims, double value, bool isConstant)
{
    std::vector<double> values(size_t(dims.volume()), value);
    return isConstant ? constant(kInt8, dims, values) : input(kInt8, dims, values);
}

} // namespace

void int8Cases(CaseList& list)
{
    auto add = [&](std::string const& name, Attrs a, Extents const& x, Extents const& w, IntegerSums const& s) {
        std::vector<CaseInput> in{input(kInt8, x), constant(kInt8, w)};
        Extents const y = outputOf(a, x, w);
        endIntegers(a.epilogue, in, s, y, y[x.rank - (w.rank - 2) - 1]);
        list.add("int8_" + name, std::move(a), std::move(in));
    };
    auto byHand = [&](char const* name, Attrs a, DataType out, FusedActivation const& f, std::vector<CaseInput> in,
                      std::vector<double> expected) {
        a.epilogue.outputType = int32_t(out);
        a.epilogue.activation = f;
        list.add(std::string("int8_by_hand_") + name, std::move(a), std::move(in), {std::move(expected)});
    };
    // The sums of the windows are -2, 4, 248 and 252.
    CaseInput const x = input(kInt8, {1, 1, 3, 3}, {1, -2, 3, 0, -1, 4, 127, 122, 127}),
                    ones = constant(kInt8, {1, 1, 2, 2}, {1, 1, 1, 1}), none = absent();
    auto number = [](double v) { return constant(kFloat, {1}, {v}); };
    byHand("f32", image(0), kFloat, {}, {x, ones, none, none, none, none, number(0.5)}, {-1, 2, 124, 126});
    // 0.5 and 2.5 are rounded to even: -0.5, 2.5, 124.5 and 126.5 with the bias.
    byHand("ties", image(0), kInt8, {}, {x, ones, number(0.5), none, none, none, number(0.5)}, {0, 2, 124, 126});
    byHand("clamped", image(0), kInt8, {}, {x, ones, none, none, none, none, number(-1)}, {2, -4, -128, -128});
    byHand("relu", image(0), kInt8, Kind::kRelu, {x, ones, number(-1), none, none, none, number(1)}, {0, 3, 127, 127});
    byHand("residual", image(0), kHalf, {},
           {x, ones, number(1), input(kInt8, {1, 1, 2, 2}, {-128, 2, 3, 4}), none, none, number(1), number(0.25)},
           {-33, 5.5, 249.75, 254});
    byHand("output_scale", image(0), kInt8, {Kind::kClip, -1, 20},
           {x, ones, none, input(kFloat, {1, 1, 2, 2}, {0.5, 1, -240, 9}), none, none, number(1), none, number(3)},
           {-3, 15, 24, 60});
    // 0/0 is no number, and counts as 0 in i8; what is too large is the largest.
    double const inf = std::numeric_limits<double>::infinity();
    byHand("infinite", image(0), kInt8, {},
           {x, ones, none, input(kFloat, {1, 1, 2, 2}, {inf, 1, -inf, std::numeric_limits<double>::quiet_NaN()}), none,
            none, number(1)},
           {127, 5, -128, 0});
    byHand("not_a_number", image(0), kInt8, {}, {x, ones, number(inf), none, none, none, number(-inf)}, {127, 0, 0, 0});

    for (Window const& v : windows()) {
        add(v.name, v.attrs, v.x, v.w, {.f = Kind::kRelu});
        add(std::string(v.name) + "_to_f32", v.attrs, v.x, v.w, {.type = kFloat, .residual = kInt8});
        add(std::string(v.name) + "_residual", v.attrs, v.x, v.w,
            {.f = {Kind::kClip, -20, 90}, .residual = kInt8, .bias = false});
    }
    // Ends of the sum, on kernels of every kind.
    Window const kinds[] = {{"1x1", image(0), {1, 64, 5, 9}, {136, 64, 1, 1}},
                            {"3x3", image(1), {2, 20, 4, 15}, {70, 20, 3, 3}},
                            {"depthwise", image(1, 1, 70), {1, 70, 6, 17}, {70, 1, 3, 3}},
                            {"first", image(1, 2), {1, 3, 14, 30}, {37, 3, 3, 3}},
                            {"groups", image(1, 1, 4), {1, 64, 4, 9}, {64, 16, 3, 3}},
                            {"back", back(1, 2), {1, 20, 4, 5}, {20, 37, 3, 3}}};
    for (Window const& v : kinds) {
        auto end = [&](std::string const& name, IntegerSums const& s) {
            add(std::string("end_") + v.name + "_" + name, v.attrs, v.x, v.w, s);
        };
        for (DataType out : {kInt8, kFloat, kHalf}) {
            std::string const to = nameOf(out);
            end("none_to_" + to, {.type = out});
            end("one_scale_to_" + to, {.type = out, .bias = false, .scaleEach = false});
            end("variable_to_" + to, {.type = out, .residual = kInt8, .constants = false});
            for (DataType r : {kInt8, kFloat, kHalf})
                if (isQuantized(out) || isQuantized(r) || r == out)
                    end("residual_" + std::string(nameOf(r)) + "_to_" + to,
                        {.type = out, .f = Kind::kRelu, .residual = r});
            end("rounded_to_" + to, {.type = out, .f = Kind::kRelu, .residual = kInt8, .innerScale = true});
            end("rounded_alone_to_" + to, {.type = out, .bias = false, .innerScale = true});
            end("scaled_to_" + to, {.type = out, .f = {Kind::kClip, -0.5F, 1.5F}, .outputScale = true});
        }
        end("table", {.table = true});
        end("table_behind_all", {.f = Kind::kRelu, .residual = kInt8, .innerScale = true, .table = true});
        end("table_variable", {.scaleEach = false, .table = true, .constants = false});
        for (int k = 0; k < kFusedKindCount; ++k) {
            FusedActivation const f(FusedKind(k), 0.3F, 1.25F);
            end(fmt::format("kind{}", k + 1), {.f = f, .outputScale = true});
            end(fmt::format("kind{}_to_f32", k + 1), {.type = kFloat, .f = f});
        }
    }
    // Where 16 bits would saturate: every product is the largest there is. The sum of 64 of them is 2^20.
    for (auto [name, c, k] : {std::tuple{"few", 64, 16}, std::tuple{"deep", 1024, 64}})
        for (double weight : {-128., 127.}) {
            Attrs a = image(0);
            std::vector<CaseInput> in{filled({1, c, 3, 7}, -128, false), filled({k, c, 1, 1}, weight, true)};
            endIntegers(a.epilogue, in, {.type = kFloat, .scaleEach = true}, {1, k, 3, 7}, k);
            list.add(std::string("int8_largest_") + name + (weight < 0 ? "" : "_127"), a, in).isConstant = true;
        }
    for (double weight : {-128., 127.}) {
        Attrs a = image(1, 1, 64);
        std::vector<CaseInput> in{filled({1, 64, 9, 9}, -128, false), filled({64, 1, 7, 7}, weight, true)};
        endIntegers(a.epilogue, in, {.type = kFloat}, {1, 64, 5, 5}, 64);
        list.add(std::string("int8_largest_depthwise") + (weight < 0 ? "" : "_127"), a, in).isConstant = true;
    }
    // Four times these sums are the largest that 32 bits hold, nearly.
    for (double weight : {-128., 127.}) {
        Attrs a = image(1);
        std::vector<CaseInput> in{filled({1, 3600, 3, 3}, -128, false), filled({16, 3600, 3, 3}, weight, true)};
        endIntegers(a.epilogue, in, {.type = kFloat}, {1, 16, 3, 3}, 16);
        list.add(std::string("int8_largest_3x3") + (weight < 0 ? "" : "_127"), a, in);
    }
    std::vector<CaseInput> variable{input(kInt8, {2, 20, 6, 7}), input(kInt8, {24, 20, 3, 3})};
    Attrs a = image(1);
    endIntegers(a.epilogue, variable, {.f = Kind::kRelu, .residual = kInt8, .constants = false}, {2, 24, 6, 7}, 24);
    list.add("int8_variable_weights", a, variable);
    add("empty", image(0), {0, 16, 4, 4}, {8, 16, 3, 3}, {});
    add("no_channels", image(0), {1, 0, 4, 4}, {8, 0, 3, 3}, {});
}

} // namespace tw::ops::convolution
