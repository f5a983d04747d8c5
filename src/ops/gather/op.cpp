// SPDX-License-Identifier: Apache-2.0
#include "ops/gather/op.h"

#include <algorithm>

#include "ir/signs.h"
#include "tactic/domain.h"
#include "tactic/registry.h"

namespace tw::ops::gather {

namespace {

using ir::Dim;
using ir::Shape;

void append(Shape& to, Shape const& from, int begin, int end)
{
    to.insert(to.end(), from.begin() + begin, from.begin() + end);
}

Result<Shape> defaultShape(ir::InferContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    int const n = int(a.elementWiseDims);
    Shape const &x = ctx.shape(0), &j = ctx.shape(1);
    if (n > 1 || n > a.axis)
        return ctx.error("element-wise dimensions {} are not allowed (0, or 1 when the axis {} is above 0)", n, a.axis);
    if (n > ctx.rank(1))
        return ctx.error(ctx.describe(1) + " needs rank 1 at least for one element-wise dimension");
    std::string why;
    auto const batch = ir::broadcast(Shape(x.begin(), x.begin() + n), Shape(j.begin(), j.begin() + n), why);
    if (!batch)
        return ctx.error("element-wise dimension of data and indices: " + why);
    Shape y = *batch;
    append(y, x, n, int(a.axis));
    append(y, j, n, ctx.rank(1));
    append(y, x, int(a.axis) + 1, ctx.rank(0));
    return y;
}

Result<Shape> elementShape(ir::InferContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    Shape const &x = ctx.shape(0), &j = ctx.shape(1);
    if (a.elementWiseDims != 0)
        return ctx.error("element mode takes no element-wise dimensions, {} given", a.elementWiseDims);
    if (x.size() != j.size())
        return ctx.error(ctx.describe(0) + " and " + ctx.describe(1) + " must have the same rank in element mode");
    for (int d = 0; d < ctx.rank(0); ++d)
        if (d != a.axis && x[size_t(d)].isConst() && j[size_t(d)].isConst() &&
            j[size_t(d)].value() > x[size_t(d)].value())
            return ctx.error("dimension {} of indices {} is larger than that of data {}", d, ctx.describe(1),
                             ctx.describe(0));
    return j;
}

Result<Shape> ndShape(ir::InferContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    int const n = int(a.elementWiseDims), r = ctx.rank(0), q = ctx.rank(1);
    Shape const &x = ctx.shape(0), &j = ctx.shape(1);
    if (n >= r || n >= q)
        return ctx.error("element-wise dimensions {} must be fewer than the ranks {} of the data and {} of the indices",
                         n, r, q);
    Dim const& k = j.back();
    if (!k.isConst())
        return ctx.error("the last dimension of indices " + ctx.describe(1) +
                         " must be known when the engine is built");
    if (k.value() < 1 || k.value() > r - n)
        return ctx.error("the last dimension of indices {} is {} (allowed: 1 to {}, the data's dimensions that are not "
                         "element-wise)",
                         ctx.describe(1), k.str(), r - n);
    Shape y;
    for (int d = 0; d < n; ++d) {
        if (x[size_t(d)].isConst() && j[size_t(d)].isConst() && !(x[size_t(d)] == j[size_t(d)]))
            return ctx.error("element-wise dimension {} of {} and {} must be equal", d, ctx.describe(0),
                             ctx.describe(1));
        y.push_back(x[size_t(d)].isConst() ? x[size_t(d)] : j[size_t(d)]);
    }
    append(y, j, n, q - 1);
    append(y, x, n + int(k.value()), r);
    return y;
}

// Default mode on known elements and indices.
void propagateContent(ir::InferContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    auto const *content = ctx.content(0), *indices = ctx.content(1);
    if (!a.isPlain() || !content || !indices || !isStatic(ctx.shape(0)))
        return;
    Extents const x = extentsOf(ctx.shape(0));
    int const axis = int(a.axis);
    int64_t const outer = x.volume(0, axis), size = x[axis], inner = x.volume(axis + 1, x.rank);
    bool const known = std::all_of(indices->begin(), indices->end(), [](Dim const& d) { return d.isConst(); });
    if (!known || int64_t(content->size()) != outer * size * inner ||
        ir::mulSat(outer * inner, int64_t(indices->size())) > ir::kMaxContent)
        return;
    std::vector<Dim> y;
    for (int64_t o = 0; o < outer; ++o) {
        for (Dim const& index : *indices) {
            int64_t const p = index.value() < 0 ? index.value() + size : index.value();
            for (int64_t i = 0; i < inner; ++i)
                y.push_back(p >= 0 && p < size ? (*content)[size_t((o * size + p) * inner + i)] : Dim(0));
        }
    }
    ctx.outputContent(0, std::move(y));
}

Result<void> infer(ir::InferContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    int const r = ctx.rank(0);
    if (a.mode < Mode::kDefault || a.mode > Mode::kNd)
        return ctx.error("mode {} is unknown (allowed: 0 to 2)", int(a.mode));
    if (r < 1)
        return ctx.error(ctx.describe(0) + " must have at least one dimension");
    if (ctx.type(1) != DataType::kInt32)
        return ctx.error("indices " + ctx.describe(1) + " must be i32");
    if (a.mode != Mode::kNd && (a.axis < 0 || a.axis >= r))
        return ctx.error("axis {} is out of range for {} (allowed: 0..{})", a.axis, ctx.describe(0), r - 1);
    if (a.elementWiseDims < 0 || a.elementWiseDims > kMaxRank)
        return ctx.error("element-wise dimensions {} are out of range", a.elementWiseDims);
    TW_ASSIGN(Shape y, a.mode == Mode::kDefault   ? defaultShape(ctx)
                       : a.mode == Mode::kElement ? elementShape(ctx)
                                                  : ndShape(ctx));
    ctx.output(0, ctx.type(0), std::move(y));
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
    size_t first = size_t(a.axis), end = first + 1;
    if (a.mode == Mode::kNd) {
        first = size_t(a.elementWiseDims);
        end = first + size_t(std::max<int64_t>(0, j.back().value()));
    }
    int64_t size = INT32_MAX;
    for (size_t i = first; i < end && i < x.size(); ++i)
        size = std::min(size, x[i].isConst() ? x[i].value() : 1);
    d = Domain{double(-size - 1), double(size), true, false};
}

} // namespace

constinit ir::OpDef const kDef{
    .name = "gather",
    TW_OP_PARTS(Attrs),
    .inputs = {2, 2},
    .domain = domain,
    .isNonNegative = ir::ofFirstInput,
    .isCheap = true,
    .readsPart = true,
    .computesShapes = true,
};

} // namespace tw::ops::gather
