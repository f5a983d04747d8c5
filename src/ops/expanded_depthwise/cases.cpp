// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

#include "ops/expanded_depthwise/op.h"

namespace tw::ops::expanded_depthwise {

void cases(CaseList& list)
{
    using activation::Kind;
    auto weights = [](Extents const& e, std::vector<double> v = {}) {
        return constant(DataType::kFloat, e, std::move(v));
    };
    KernelWindowAttrs one = KernelWindowAttrs::plain(2);
    // z = relu(2 x - 1) = 1, 0, 5, 0, 0, 7; sums of 2 x 2 windows, less 4.
    list.add("by_hand", Attrs(one, Kind::kRelu, {}),
             {f32({1, 1, 2, 3}, {1, -2, 3, 0, -1, 4}), weights({1, 1, 1, 1}, {2}), weights({1}, {-1}),
              weights({1, 1, 2, 2}, {1, 1, 1, 1}), weights({1}, {-4})},
             {{-3, 8}});
    auto add = [&](char const* name, Extents x, int64_t m, int64_t window, int64_t stride, auto change) {
        KernelWindowAttrs a = KernelWindowAttrs::plain(2);
        a.groups = m;
        a.strides = {stride, stride};
        a.prePadding = a.postPadding = {window / 2, window / 2};
        change(a);
        list.add(name, Attrs(a, FusedActivation(FusedKind::kSwish), FusedActivation(Kind::kClip, 0, 6)),
                 {f32(x), weights({m, x[1], 1, 1}), weights({m}), weights({m, 1, window, window}), weights({m})});
    };
    auto none = [](KernelWindowAttrs&) {};
    add("3x3", {1, 5, 9, 8}, 24, 3, 1, none);
    add("3x3_stride2", {2, 16, 13, 15}, 40, 3, 2, none);
    add("5x5", {1, 9, 12, 7}, 17, 5, 1, none);
    add("5x5_stride2", {2, 24, 11, 29}, 50, 5, 2, none);
    add("even_stride2", {1, 3, 14, 14}, 33, 3, 2, none);
    add("stride3", {1, 8, 17, 9}, 16, 2, 3, none);
    add("asymmetric", {1, 8, 6, 9}, 20, 3, 1, [](KernelWindowAttrs& a) {
        a.prePadding = {2, 0};
        a.postPadding = {0, 2};
    });
    add("dilated", {1, 8, 12, 11}, 18, 3, 1, [](KernelWindowAttrs& a) { a.dilations = {2, 3}; });
    add("much_padding", {1, 4, 3, 2}, 6, 3, 1, [](KernelWindowAttrs& a) { a.prePadding = a.postPadding = {5, 5}; });
    add("same_upper", {1, 4, 8, 7}, 12, 3, 2, [](KernelWindowAttrs& a) { a.paddingMode = PaddingMode::kSameUpper; });
    add("one_pixel", {1, 40, 1, 1}, 24, 3, 1, none);
    add("empty", {0, 4, 5, 5}, 8, 3, 1, none);
    add("wide", {1, 16, 40, 33}, 96, 3, 2, none); // several bands
}

} // namespace tw::ops::expanded_depthwise
