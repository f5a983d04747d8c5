// SPDX-License-Identifier: Apache-2.0
#include "ops/expanded_depthwise/op.h"

#include "tactic/cases.h"
#include "tactic/registry.h"

namespace tw::ops::expanded_depthwise {

namespace {

Result<void> infer(ir::InferContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    for (FusedActivation const* f : {&a.inner, &a.outer})
        if (std::string const why = f->check(); !why.empty())
            return ctx.error(why);
    for (int i = 0; i < 5; ++i)
        if (ctx.type(i) != DataType::kFloat)
            return ctx.error(ctx.describe(i) + " must be f32");
    for (int i : {0, 1, 3})
        if (ctx.rank(i) != 4)
            return ctx.error(ctx.describe(i) + " must have rank 4");
    for (auto const* list : {&a.strides, &a.dilations, &a.prePadding, &a.postPadding})
        if (list->size() != 2)
            return ctx.error("strides, dilations and paddings need 2 entries");
    ir::Shape const &x = ctx.shape(0), &w1 = ctx.shape(1), &w2 = ctx.shape(3);
    if (!x[1].isConst() || !(w1[0].isConst() && w1[1] == x[1] && w1[2].is(1) && w1[3].is(1)))
        return ctx.error("kernel " + ctx.describe(1) + " must have one element for each channel of " + ctx.describe(0));
    int64_t const m = w1[0].value();
    if (a.groups != m || !w2[0].is(m) || !w2[1].is(1) || !w2[2].isConst() || !w2[3].isConst())
        return ctx.error("kernel " + ctx.describe(3) + " and groups " + std::to_string(a.groups) +
                         " must have one filter for each of " + std::to_string(m) + " channels");
    for (int i : {2, 4})
        if (ctx.rank(i) != 1 || !ctx.shape(i)[0].is(m))
            return ctx.error("bias " + ctx.describe(i) + " must have shape [" + std::to_string(m) + "]");
    ir::Shape y{x[0], ir::Dim(m)};
    for (int i = 0; i < 2; ++i) {
        WindowParams const p = a.window(i, w2[size_t(2 + i)].value());
        if (std::string why = checkWindow(WindowKind::kConvolution, a.paddingMode, p); !why.empty())
            return ctx.error("window axis " + std::to_string(i) + ": " + why);
        ir::Dim const out = windowOutput(WindowKind::kConvolution, a.paddingMode, x[size_t(2 + i)], p);
        if (std::string why = windowMisfit(WindowKind::kConvolution, x[size_t(2 + i)], out, p); !why.empty())
            return ctx.error("window axis " + std::to_string(i) + ": " + why);
        y.push_back(out);
    }
    ctx.output(0, DataType::kFloat, std::move(y));
    return {};
}

[[gnu::cold]] void cases(CaseList& list)
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

} // namespace

ir::OpDef const& def()
{
    static constexpr ir::OpDef kDef{
        .name = "expanded_depthwise",
        .minInputs = 5,
        .maxInputs = 5,
        .makeAttrs = [] { return std::unique_ptr<ir::AttrsBase>(std::make_unique<Attrs>()); },
        .infer = infer,
        .reference = reference,
        .cases = cases,
        .cpuTactics = cpuTactics,
        .cudaTactics = cudaTactics,
    };
    return kDef;
}

} // namespace tw::ops::expanded_depthwise
