// SPDX-License-Identifier: Apache-2.0
#include "ops/pooling/op.h"

#include "families/convolution/layer_facts.h"
#include "ir/signs.h"
#include "tactic/domain.h"
#include "tactic/registry.h"

namespace tw::ops::pooling {

namespace {

Result<void> infer(ir::InferContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    int const kind = int(a.kind), windowRank = int(a.window.size());
    if (kind < 0 || kind > int(Kind::kMaxAverageBlend))
        return ctx.error("pooling type {} does not exist (allowed: 0..2)", kind);
    if (windowRank != 2 && windowRank != 3)
        return ctx.error("the window must have 2 or 3 dimensions, it has {}", windowRank);
    for (auto const* list : {&a.strides, &a.prePadding, &a.postPadding})
        if (int(list->size()) != windowRank)
            return ctx.error("strides and paddings need {} entries", windowRank);
    if (!(a.blend >= 0 && a.blend <= 1))
        return ctx.error("blend factor {} must be in [0, 1]", a.blend);
    if (!isReal(ctx.type(0)))
        return ctx.error(ctx.describe(0) + " must be f32, f16 or i8");
    if (ctx.rank(0) < windowRank + 1)
        return ctx.error("{} must have at least {} dimensions", ctx.describe(0), windowRank + 1);
    ir::Shape y = ctx.shape(0);
    for (int i = 0; i < windowRank; ++i) {
        ir::Dim& d = y[y.size() - size_t(windowRank) + size_t(i)];
        WindowParams const p = a.axis(i);
        if (std::string why = checkWindow(WindowKind::kPooling, a.paddingMode, p); !why.empty())
            return ctx.error("window axis {}: {}", i, why);
        ir::Dim const out = windowOutput(WindowKind::kPooling, a.paddingMode, d, p);
        if (std::string why = windowMisfit(WindowKind::kPooling, d, out, p); !why.empty())
            return ctx.error("window axis {}: {}", i, why);
        d = out;
    }
    ctx.output(0, ctx.type(0), std::move(y));
    return {};
}

// The whole range of i8; floats as everywhere.
void domain(ir::Node const& node, int, Domain& d)
{
    if (DataType const type = node.inputs[0]->type; isQuantized(type))
        d = Domain::all(type);
}

} // namespace

Geometry geometryOf(Attrs const& a, Extents const& x, Extents const& y)
{
    Geometry g;
    int const windowRank = int(a.window.size()), first = x.rank - windowRank, shift = 3 - windowRank;
    bool const caffe = a.paddingMode == PaddingMode::kCaffeRoundDown || a.paddingMode == PaddingMode::kCaffeRoundUp;
    g.batch = x.volume(0, first);
    for (int i = 0; i < windowRank; ++i) {
        WindowParams const p = a.axis(i);
        int64_t const in = x[first + i];
        WindowPadding const padding = windowPadding(WindowKind::kPooling, a.paddingMode, in, p);
        g.in[shift + i] = in;
        g.out[shift + i] = y[first + i];
        g.window[shift + i] = p.size;
        g.stride[shift + i] = p.stride;
        g.before[shift + i] = padding.before;
        g.after[shift + i] = caffe ? padding.before : padding.after; // these modes pad both ends alike
    }
    return g;
}

namespace {

void inspect(LayerFacts& facts)
{
    auto const& a = facts.attrs<Attrs>();
    constexpr char const* kTypes[] = {"MAX", "AVERAGE", "MAX_AVERAGE_BLEND"};
    facts.kind(facts.tacticHas("plain") ? "CudaPooling" : "CaskPooling", "Pooling");
    facts.add("PoolingType", kTypes[int(a.kind)]);
    facts.add("WindowSize", a.window);
    facts.add("PaddingMode", publishedName(a.paddingMode));
    facts.add("PrePadding", a.prePadding);
    facts.add("PostPadding", a.postPadding);
    facts.add("Stride", a.strides);
    facts.add("BlendFactor", double(a.blend));
    facts.addFlag("AverageCountExcludesPadding", a.excludePadding);
}

} // namespace

constinit ir::OpDef const kDef{
    .name = "pooling",
    TW_OP_PARTS(Attrs),
    .domain = domain,
    .isNonNegative = ir::ofFirstInput,
    .inspect = inspect,
};

} // namespace tw::ops::pooling
