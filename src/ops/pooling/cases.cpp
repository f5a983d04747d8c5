// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

#include <limits>

#include "cases/draw.h"
#include "ops/pooling/op.h"

namespace tw::ops::pooling {

void cases(CaseList& list)
{
    double const inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
    struct Form // what differs from steps of 1 without padding
    {
        std::vector<int64_t> pad, pre, post, strides; // pad: pre and post
        float blend = 0;
        bool exclude = true;
        PaddingMode mode = PaddingMode::kExplicitRoundDown;
    };
    auto pool = [&](std::string name, Kind kind, std::vector<int64_t> window, CaseInput x, Form const& f,
                    std::vector<std::vector<double>> expected = {}) {
        Attrs a = Attrs::plain(kind, std::move(window));
        auto set = [](std::vector<int64_t>& to, std::vector<int64_t> const& v) { to = v.empty() ? to : v; };
        set(a.prePadding, f.pad);
        set(a.postPadding, f.pad);
        set(a.prePadding, f.pre);
        set(a.postPadding, f.post);
        set(a.strides, f.strides);
        a.blend = f.blend;
        a.excludePadding = f.exclude;
        a.paddingMode = f.mode;
        list.add(std::move(name), a, {std::move(x)}, std::move(expected));
    };
    Form const none, pad1{.pad = {1, 1}}, pad1Inclusive{.pad = {1, 1}, .exclude = false}, row{.pad = {0, 1}},
        wide{.pad = {0, 2}}, blend{.blend = 0.3f};
    CaseInput const six = f32({1, 2, 3}, {1, 2, 3, 4, 5, 6});
    pool("max_by_hand", Kind::kMax, {2, 2}, six, none, {{5, 6}});
    pool("average_by_hand", Kind::kAverage, {2, 2}, six, none, {{3, 4}});
    pool("blend_by_hand", Kind::kMaxAverageBlend, {2, 2}, six, {.blend = 0.25f}, {{4.5, 5.5}});
    // Windows of 2 in each axis over [1 2 3] padded by one: 1, 1+2, 2+3, 3.
    CaseInput const three = f32({1, 1, 3}, {1, 2, 3});
    pool("average_excludes_padding", Kind::kAverage, {1, 2}, three, row, {{1, 1.5, 2.5, 3}});
    pool("average_counts_padding", Kind::kAverage, {1, 2}, three, {.pad = {0, 1}, .exclude = false},
         {{0.5, 1.5, 2.5, 1.5}});
    // Padding as wide as the window: the outer windows hold no element.
    pool("max_in_padding", Kind::kMax, {1, 2}, three, wide, {{-inf, 1, 2, 3, 3, -inf}});
    pool("max_in_padding_i8", Kind::kMax, {1, 2}, input(DataType::kInt8, {1, 1, 3}, {1, 2, 3}), wide,
         {{-128, 1, 2, 3, 3, -128}});
    pool("average_in_padding", Kind::kAverage, {1, 2}, three, wide, {{0, 1, 1.5, 2.5, 3, 0}});
    pool("max_nan", Kind::kMax, {1, 2}, f32({1, 1, 4}, {1, nan, -inf, -inf}), none, {{nan, nan, -inf}});
    pool("max_nan_4d", Kind::kMax, {1, 3}, f32({1, 1, 1, 6}, {1, nan, -inf, -inf, -inf, 2}), none,
         {{nan, nan, -inf, 2}});
    pool("max_nan_f16", Kind::kMax, {1, 3}, input(DataType::kHalf, {1, 1, 1, 8}, {1, nan, 3, -inf, -inf, -inf, 2, 5}),
         none, {{nan, nan, 3, -inf, 2, 5}});
    // 1+2 over 2 is 1.5, 2+3 over 2 is 2.5, both to even.
    pool("average_ties_i8", Kind::kAverage, {1, 2}, input(DataType::kInt8, {1, 1, 3}, {1, 2, 3}), none, {{2, 2}});
    for (auto [kindName, kind] : {std::pair{"max", Kind::kMax}, std::pair{"average", Kind::kAverage},
                                  std::pair{"blend", Kind::kMaxAverageBlend}}) {
        std::string const k = kindName;
        pool(k + "_3x3_pad1", kind, {3, 3}, f32({2, 3, 9, 8}), pad1);
        pool(k + "_3x3_pad1_inclusive", kind, {3, 3}, f32({1, 3, 9, 8}), pad1Inclusive);
        pool(k + "_global", kind, {7, 9}, f32({2, 5, 7, 9}), blend);
        for (int64_t stride : {1, 2})
            for (int64_t w : {8, 37, 70})
                for (int64_t window : {2, 3, 5})
                    pool(fmt::format("{}_rows_{}_by_{}_stride_{}", k, w, window, stride), kind, {2, window},
                         f32({2, 3, 9, w}), {.pre = {1, window - 1}, .post = {0, 1}, .strides = {1, stride}});
        pool(k + "_volume", kind, {2, 2, 2}, f32({2, 3, 6, 8, 37}), {.strides = {2, 2, 2}});
        pool(k + "_asymmetric", kind, {3, 2}, f32({1, 2, 10, 11}),
             {.pre = {0, 1}, .post = {2, 0}, .strides = {2, 3}, .exclude = false});
        for (int mode = 0; mode < kPaddingModeCount; ++mode)
            for (bool exclude : {false, true})
                pool(fmt::format("{}_mode_{}{}", k, mode, exclude ? "" : "_inclusive"), kind, {3, 4},
                     f32({1, 2, 8, 11}),
                     {.pre = {1, 1},
                      .post = {0, 1},
                      .strides = {2, 3},
                      .blend = 0.3f,
                      .exclude = exclude,
                      .mode = PaddingMode(mode)});
        pool(k + "_3d", kind, {2, 3, 2}, f32({2, 2, 4, 5, 6}), {.pad = {1, 1, 0}, .strides = {1, 2, 2}, .blend = 0.3f});
        pool(k + "_f16", kind, {3, 3}, input(DataType::kHalf, {1, 4, 7, 7}), {.pad = {1, 1}, .blend = 0.3f});
        pool(k + "_f16_c20", kind, {3, 3}, input(DataType::kHalf, {2, 20, 9, 13}), {.pad = {1, 1}, .strides = {2, 2}});
        pool(k + "_f16_2x2", kind, {2, 2}, input(DataType::kHalf, {2, 16, 6, 7}),
             {.pre = {1, 0}, .strides = {2, 2}, .exclude = false});
        pool(k + "_f16_5x5", kind, {5, 5}, input(DataType::kHalf, {1, 24, 11, 6}), {.pad = {2, 2}, .exclude = false});
        pool(k + "_f16_large", kind, {9, 11}, input(DataType::kHalf, {2, 8, 13, 11}), none);
        pool(k + "_i8", kind, {3, 3}, input(DataType::kInt8, {1, 4, 7, 7}),
             {.pad = {1, 1}, .blend = 0.3f, .exclude = false});
        for (int64_t channels : {1, 16, 33, 63, 64, 65, 130}) {
            std::string const c = fmt::format("_i8_c{}", channels);
            CaseInput const x = input(DataType::kInt8, {2, channels, 7, 9});
            pool(k + "_3x3_stride2" + c, kind, {3, 3}, x, {.pad = {1, 1}, .strides = {2, 2}});
            pool(k + "_3x3_inclusive" + c, kind, {3, 3}, x, pad1Inclusive);
            pool(k + "_global" + c, kind, {7, 9}, x, none);
        }
        pool(k + "_i8_3d", kind, {2, 3, 2}, input(DataType::kInt8, {2, 5, 4, 5, 6}),
             {.pad = {1, 1, 0}, .strides = {1, 2, 2}});
        if (kind == Kind::kAverage) // maxima of so many are all the same
            pool(k + "_i8_large", kind, {41, 37}, input(DataType::kInt8, {1, 20, 43, 38}), none);
        for (int64_t channels : {1, 15, 16, 17, 33, 70, 130}) {
            std::string const c = fmt::format("_c{}", channels);
            pool(k + "_3x3_stride2" + c, kind, {3, 3}, f32({1, channels, 7, 9}), {.pad = {1, 1}, .strides = {2, 2}});
            pool(k + "_global" + c, kind, {5, 7}, f32({2, channels, 5, 7}), none);
        }
        // Rows of 16-byte, 8-byte, ... packs and odd ones, of one, two and many threads; rows and columns that end
        // anywhere.
        for (DataType t : {DataType::kHalf, DataType::kFloat})
            for (int64_t width : {3, 14, 28, 35, 64, 272}) {
                if (kind == Kind::kMaxAverageBlend)
                    continue;
                std::string const n = fmt::format("{}_width{}", isNarrowFloat(t) ? "_f16" : "", width);
                if (width == 14 || width == 64)
                    pool(k + "_2x2" + n, kind, {2, 2}, input(t, {2, 3, 6, width}), {.strides = {2, 2}});
                else
                    pool(k + "_3x3" + n, kind, {3, 3}, input(t, {2, 2, 7, width}), pad1);
                pool(k + "_3x3_step2" + n, kind, {3, 3}, input(t, {3, 2, 9, width}),
                     width % 2 == 0 ? Form{.pad = {1, 1}, .strides = {2, 2}, .exclude = false}
                                    : Form{.strides = {2, 2}, .mode = PaddingMode::kExplicitRoundUp});
            }
        // Several bands of a plane, several planes of a block, with what is left of both.
        for (DataType t : {DataType::kHalf, DataType::kFloat}) {
            if (kind == Kind::kMaxAverageBlend)
                continue;
            std::string const n = k + (isNarrowFloat(t) ? "_f16" : "");
            pool(n + "_planes", kind, {3, 3}, input(t, {3, 11, 28, 28}), pad1);
            pool(n + "_planes_odd", kind, {3, 3}, input(t, {3, 7, 15, 13}), pad1Inclusive);
            pool(n + "_bands", kind, {3, 3}, input(t, {1, 2, 131, 66}), pad1);
            pool(n + "_bands_odd", kind, {3, 3}, input(t, {1, 3, 147, 147}), {.strides = {2, 2}});
            pool(n + "_bands_5x5", kind, {5, 5}, input(t, {1, 3, 77, 101}), {.pad = {2, 2}, .strides = {2, 1}});
        }
        pool(k + "_f16_2x3_step3", kind, {2, 3}, input(DataType::kHalf, {2, 3, 7, 50}),
             {.pre = {1, 2}, .post = {0, 1}, .strides = {1, 3}});
        pool(k + "_5x5", kind, {5, 5}, f32({1, 20, 7, 6}), {.pad = {2, 2}});
        pool(k + "_wide_padding", kind, {2, 2}, f32({1, 20, 3, 3}), {.pad = {2, 2}});
        pool(k + "_no_batch", kind, {2, 2}, f32({3, 5, 5}), blend);
        pool(k + "_empty_batch", kind, {2, 2}, f32({0, 3, 5, 5}), none);
        pool(k + "_window_equals_stride", kind, {2, 2}, f32({1, 3, 6, 17}), {.strides = {2, 2}});
    }
}

void randomCase(CaseList& list, Draw& d, std::string const& name)
{
    auto a = Attrs::plain(Kind(d.from(0, 2)), {1, 1});
    Extents x{d.from(1, 3), d.size(70), d.size(24), d.size(24)};
    for (size_t i = 0; i < 2; ++i) {
        a.window[i] = d.chance(15) ? x[2 + int(i)] : d.from(1, std::min<int64_t>(4, x[2 + int(i)]));
        a.strides[i] = d.from(1, 3);
        a.prePadding[i] = d.from(0, std::min<int64_t>(a.window[i] - 1, 2));
        a.postPadding[i] = d.from(0, std::min<int64_t>(a.window[i] - 1, 2));
    }
    a.blend = a.kind == Kind::kMaxAverageBlend ? 0.25F : 0;
    a.excludePadding = d.chance(50);
    list.add(name, a, {input(d.type(), x)});
}

} // namespace tw::ops::pooling
