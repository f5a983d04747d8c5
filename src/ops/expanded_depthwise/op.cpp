// SPDX-License-Identifier: Apache-2.0
#include "ops/expanded_depthwise/op.h"

#include "families/convolution/layer_facts.h"
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
        if (!isFullFloat(ctx.type(i)))
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
        return ctx.error("kernel {} and groups {} must have one filter for each of {} channels", ctx.describe(3),
                         a.groups, m);
    for (int i : {2, 4})
        if (ctx.rank(i) != 1 || !ctx.shape(i)[0].is(m))
            return ctx.error("bias {} must have shape [{}]", ctx.describe(i), m);
    ir::Shape y{x[0], ir::Dim(m)};
    for (int i = 0; i < 2; ++i) {
        WindowParams const p = a.window(i, w2[size_t(2 + i)].value());
        if (std::string why = checkWindow(WindowKind::kConvolution, a.paddingMode, p); !why.empty())
            return ctx.error("window axis {}: {}", i, why);
        ir::Dim const out = windowOutput(WindowKind::kConvolution, a.paddingMode, x[size_t(2 + i)], p);
        if (std::string why = windowMisfit(WindowKind::kConvolution, x[size_t(2 + i)], out, p); !why.empty())
            return ctx.error("window axis {}: {}", i, why);
        y.push_back(out);
    }
    ctx.output(0, DataType::kFloat, std::move(y));
    return {};
}

double operations(ir::Node const&, std::span<TensorRef const> in, std::span<TensorRef const> out)
{
    double const pixels = double(in[0].count()) / double(std::max<int64_t>(in[0].dims[1], 1));
    double const window = double(in[3].count()) / double(std::max<int64_t>(in[3].dims[0], 1));
    return 2.0 * (pixels * double(in[1].count()) + double(out[0].count()) * window);
}

// Told by the second of its two convolutions.
void inspect(LayerFacts& facts)
{
    auto const& a = facts.attrs<Attrs>();
    Epilogue end;
    end.activation = a.outer;
    addConvolution(facts, WindowKind::kConvolution, a, end, 3);
    facts.layerType = "FusedConvActConvolution";
}

} // namespace

constinit ir::OpDef const kDef{
    .name = "expanded_depthwise",
    TW_OP_PARTS(Attrs),
    .inputs = {5, 5},
    .inspect = inspect,
    .operations = operations,
};

} // namespace tw::ops::expanded_depthwise
