// SPDX-License-Identifier: Apache-2.0
#include "ops/scatter/op.h"

#include <algorithm>

#include "tactic/domain.h"
#include "tactic/registry.h"

namespace tw::ops::scatter {

namespace {

using ir::Dim;
using ir::Shape;

bool differ(Dim const& a, Dim const& b)
{
    return a.isConst() && b.isConst() && a.value() != b.value();
}

Result<void> checkElements(ir::InferContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    Shape const &x = ctx.shape(0), &j = ctx.shape(1), &u = ctx.shape(2);
    int const r = ctx.rank(0);
    if (a.axis < 0 || a.axis >= r)
        return ctx.error("axis {} is out of range for {} (allowed: 0..{})", a.axis, ctx.describe(0), r - 1);
    if (ctx.rank(1) != r || ctx.rank(2) != r)
        return ctx.error("data " + ctx.describe(0) + ", indices " + ctx.describe(1) + " and updates " +
                         ctx.describe(2) + " must have the same rank in element mode");
    for (size_t d = 0; d < x.size(); ++d) {
        if (differ(j[d], u[d]))
            return ctx.error("indices " + ctx.describe(1) + " and updates " + ctx.describe(2) +
                             " must have the same shape in element mode");
        if (int64_t(d) != a.axis && x[d].isConst() && u[d].isConst() && u[d].value() > x[d].value())
            return ctx.error("dimension {} of updates {} is larger than that of data {}", d, ctx.describe(2),
                             ctx.describe(0));
    }
    return {};
}

Result<void> checkSlices(ir::InferContext& ctx)
{
    Shape const &x = ctx.shape(0), &j = ctx.shape(1), &u = ctx.shape(2);
    int const r = ctx.rank(0), q = ctx.rank(1);
    if (q < 1)
        return ctx.error("indices " + ctx.describe(1) + " must have at least one dimension");
    Dim const& last = j.back();
    if (!last.isConst())
        return ctx.error("the last dimension of indices " + ctx.describe(1) +
                         " must be known when the engine is built");
    if (last.value() < 1 || last.value() > r)
        return ctx.error("the last dimension of indices {} is {} (allowed: 1 to {}, the rank of the data)",
                         ctx.describe(1), last.str(), r);
    size_t const k = size_t(last.value());
    Shape want(j.begin(), j.end() - 1);
    want.insert(want.end(), x.begin() + int64_t(k), x.end());
    if (want.size() != u.size())
        return ctx.error(
            "updates {} must have rank {}: the indices' dimensions but the last, then the data's from {} on",
            ctx.describe(2), want.size(), k);
    for (size_t d = 0; d < u.size(); ++d)
        if (differ(want[d], u[d]))
            return ctx.error("dimension {} of updates {} must be {}, that of {}", d, ctx.describe(2), want[d].str(),
                             d + 1 < size_t(q) ? "the indices" : "the data");
    return {};
}

// Known elements written at known places: what exporters do to shapes.
void propagateContent(ir::InferContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    auto const *x = ctx.content(0), *j = ctx.content(1), *u = ctx.content(2);
    if (a.reduction != Reduction::kNone || !x || !j || !u || !isStatic(ctx.shape(0)) || !isStatic(ctx.shape(1)) ||
        !isStatic(ctx.shape(2)))
        return;
    Extents const dims = extentsOf(ctx.shape(0)), updates = extentsOf(ctx.shape(2)), strides = stridesOf(dims);
    bool const known = std::all_of(j->begin(), j->end(), [](Dim const& d) { return d.isConst(); });
    if (!known || int64_t(x->size()) != dims.volume() || int64_t(u->size()) != updates.volume())
        return;
    std::vector<Dim> y = *x;
    int const k = a.mode == Mode::kNd ? int(ctx.shape(1).back().value()) : 1;
    int64_t const block = a.mode == Mode::kNd ? dims.volume(k, dims.rank) : 1;
    int64_t const places = int64_t(j->size()) / k;
    Counter c(updates);
    for (int64_t t = 0; t < places; ++t, c.next()) {
        int64_t to = 0;
        bool inside = true;
        auto add = [&](int d, Dim const& index) {
            int64_t const p = index.value() < 0 ? index.value() + dims[d] : index.value();
            inside = inside && p >= 0 && p < dims[d];
            to += p * strides[d];
        };
        if (a.mode == Mode::kNd)
            for (int d = 0; d < k; ++d)
                add(d, (*j)[size_t(t * k + d)]);
        else
            for (int d = 0; d < dims.rank; ++d)
                add(d, d == a.axis ? (*j)[size_t(t)] : Dim(c.at[d]));
        if (inside)
            std::copy_n(u->begin() + t * block, block, y.begin() + to);
    }
    ctx.outputContent(0, std::move(y));
}

Result<void> infer(ir::InferContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    if (a.mode < Mode::kElement || a.mode > Mode::kNd)
        return ctx.error("mode {} is unknown (allowed: 0 and 1)", int(a.mode));
    if (a.reduction < Reduction::kNone || a.reduction > Reduction::kMax)
        return ctx.error("reduction {} is unknown (allowed: 0..4)", int(a.reduction));
    if (a.reduction != Reduction::kNone && !isFloating(ctx.type(0)) && ctx.type(0) != DataType::kInt32)
        return ctx.error("data " + ctx.describe(0) + " must be f32, f16 or i32 where updates are reduced");
    if (ctx.rank(0) < 1)
        return ctx.error("data " + ctx.describe(0) + " must have at least one dimension");
    if (ctx.type(1) != DataType::kInt32)
        return ctx.error("indices " + ctx.describe(1) + " must be i32");
    if (ctx.type(0) != ctx.type(2))
        return ctx.error("data " + ctx.describe(0) + " and updates " + ctx.describe(2) + " must have one type");
    TW_TRY(a.mode == Mode::kElement ? checkElements(ctx) : checkSlices(ctx));
    ctx.output(0, ctx.type(0), ctx.shape(0));
    propagateContent(ctx);
    return {};
}

// Indices from one below the valid ones to one above.
void domain(ir::Node const& node, int input, Domain& d)
{
    if (input != 1)
        return;
    auto const& a = node.attrsAs<Attrs>();
    Shape const &x = node.inputs[0]->shape, &j = node.inputs[1]->shape;
    bool const nd = a.mode == Mode::kNd;
    size_t const first = nd ? 0 : size_t(a.axis);
    size_t const end = nd ? size_t(std::max<int64_t>(0, j.back().value())) : first + 1;
    int64_t size = INT32_MAX;
    for (size_t i = first; i < end && i < x.size(); ++i)
        size = std::min(size, x[i].isConst() ? x[i].value() : 1);
    d = Domain{double(-size - 1), double(size), true, false};
}

constexpr ir::InPlace kInPlace[] = {{0, 0, false}}; // sums go on

} // namespace

Tuples tuplesOf(Attrs const& a, Extents const& x, Extents const& indices)
{
    if (a.mode == Mode::kElement)
        return {indices.volume(), 1};
    int const k = int(indices[indices.rank - 1]);
    return {indices.volume(0, indices.rank - 1), x.volume(k, x.rank)};
}

constinit ir::OpDef const kDef{
    .name = "scatter",
    TW_OP_PARTS(Attrs),
    .inputs = {3, 3},
    .domain = domain,
    .isCheap = true,
    .inPlace = kInPlace,
};

} // namespace tw::ops::scatter
