// SPDX-License-Identifier: Apache-2.0
// Scatters that write a slab of a tensor, elements `begin` to `begin + n` of one axis and all of the others, are concatenations of what is left and the
// update:
//   scatter of tuples(x [b, t, 24], all of b and t, 16 .. 23, u [b, t, 8])              ->  concatenation(x[.., :16], u)
//   transpose(scatter of tuples(transpose(x), 0 .. 15, transpose(u)))                   ->  concatenation(u, x[.., 16:])
//   scatter of elements(x, axis, 0 .. 15 everywhere, u)                                 ->  the same
//   scatter of tuples(x, all places, u)                                                 ->  concatenation(u)
// So torch writes parts of an empty tensor (k[..., :16] = a, k[..., 16:] = b: keys of latent attention); what comes of several of them in turn is one
// concatenation, of which nothing is left that was there before. Any form; expects inferred shapes; stands in front of rows_to_cache_update, which takes rows of
// other places. Leaves alone: places that nobody knows, an axis of an open length, inputs of the network, which may be written where they are, sums, wishes of the user.
#include "ops/concatenation/op.h"
#include "ops/scatter/op.h"
#include "ops/slice/op.h"
#include "passes/caches/written_rows.h"
#include "passes/counted_indices.h"
#include "passes/fuse_nodes.h"
#include "passes/list.h"
#include "passes/rewrite.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

// What a scatter writes.
struct Slab
{
    ir::Value *x, *update;
    int axis;
    int64_t begin;

    int64_t extent() const { return x->shape[size_t(axis)].value(); }
    int64_t end() const { return begin + update->shape[size_t(axis)].value(); }
};

// The only axis of another extent; 0 where there is none; -1: there are more.
int axisOf(ir::Shape const& x, ir::Shape const& u)
{
    int axis = -1;
    for (size_t d = 0; d < x.size(); ++d)
        if (!(x[d] == u[d]))
            axis = axis < 0 && x[d].isConst() && u[d].isConst() ? int(d) : int(x.size());
    if (axis < 0)
        return x.empty() ? -1 : 0;
    return axis < int(x.size()) ? axis : -1;
}

// Tuples of all dimensions.
std::optional<Slab> ofTuples(ir::Node const& n)
{
    ir::Shape const &x = n.inputs[0]->shape, &u = n.inputs[2]->shape, &j = n.inputs[1]->shape;
    if (x.size() != u.size() || j.empty())
        return std::nullopt;
    int const axis = axisOf(x, u);
    auto indices = axis < 0 ? std::vector<Counting>() : countingsOf(n, true);
    if (indices.size() <= size_t(std::max(axis, 0)) || !indices[size_t(axis)].first.isConst())
        return std::nullopt;
    int64_t const begin = indices[size_t(axis)].first.value();
    indices[size_t(axis)].first = 0;
    if (!countThrough(indices, {u.begin(), u.begin() + int64_t(indices.size())}, {j.begin(), j.end() - 1}))
        return std::nullopt;
    return Slab{n.inputs[0], n.inputs[2], axis, begin};
}

// Where rows begin that lie one behind the other; -1: nobody knows.
int64_t firstOf(WrittenRows const& rows)
{
    auto const places = countingOf(rows.places);
    ir::Shape const& shape = rows.places->shape;
    if (!places || !places->first.isConst())
        return -1;
    for (size_t d = 0; d < shape.size(); ++d)
        if (!shape[d].is(1) && !(places->steps[d].is(1) && volume(shape) == shape[d]))
            return -1;
    return places->first.value();
}

bool isSlab(Slab const& s)
{
    auto const axis = size_t(s.axis);
    return s.x->shape[axis].isConst() && s.update->shape[axis].isConst() && s.begin >= 0 && s.end() <= s.extent() &&
           s.begin < s.end() && (s.x->producer || s.x->isConstant()) && s.x->type == s.update->type;
}

// Adds elements [begin, end) of the axis: inputs of a concatenation that end there, else a slice.
Result<void> addPart(ir::Graph& g, ir::Node const& n, Slab const& s, int64_t begin, int64_t end,
                     std::vector<ir::Value*>& parts)
{
    if (begin == end)
        return {};
    ir::Node const* const join = s.x->producer;
    if (join && join->op == &ops::concatenation::def() &&
        join->attrsAs<ops::concatenation::Attrs>().axis == int32_t(s.axis)) {
        std::vector<ir::Value*> inside;
        int64_t at = 0;
        bool isWhole = true;
        for (ir::Value* v : join->inputs) {
            ir::Dim const& extent = v->shape[size_t(s.axis)];
            if (!extent.isConst())
                break;
            int64_t const next = at + extent.value();
            isWhole = isWhole && (next <= begin || at >= end || (at >= begin && next <= end));
            if (at >= begin && next <= end)
                inside.push_back(v);
            at = next;
        }
        if (isWhole && at == s.extent()) {
            parts.insert(parts.end(), inside.begin(), inside.end());
            return {};
        }
    }
    auto const a = ops::slice::partOf(s.x->shape, s.axis, begin, end - begin);
    TW_ASSIGN(ir::Node * slice, g.addNode(ops::slice::def(), a.clone(), {s.x}, n.name + ".rest", {}, g.positionOf(&n)));
    takePlaceOf(*slice, n);
    parts.push_back(slice->outputs[0]);
    return {};
}

Result<ir::Node*> join(ir::Graph& g, ir::Node const& n, Slab const& s)
{
    std::vector<ir::Value*> parts;
    TW_TRY(addPart(g, n, s, 0, s.begin, parts));
    parts.push_back(s.update);
    TW_TRY(addPart(g, n, s, s.end(), s.extent(), parts));
    return g.addNode(ops::concatenation::def(), ops::concatenation::Attrs(s.axis).clone(), parts, n.name, {},
                     g.positionOf(&n));
}

Result<bool> toConcatenation(ir::Graph& g, ir::Node& n)
{
    auto const& a = n.attrsAs<ops::scatter::Attrs>();
    if (a.reduction != ops::scatter::Reduction::kNone || hasWish(n))
        return false;
    auto const rows = writtenRows(g, n);
    if (int64_t const begin = rows ? firstOf(*rows) : -1; begin >= 0) {
        TW_ASSIGN(ir::Value * update, asTheCache(g, *rows));
        Slab const s{rows->cache, update, rows->axis, begin};
        if (isSlab(s)) {
            TW_ASSIGN(ir::Node * made, join(g, n, s));
            return takePlace(g, *rows, *made);
        }
    }
    auto const slab = a.mode == ops::scatter::Mode::kNd ? ofTuples(n) : std::nullopt;
    if (!slab || !isSlab(*slab))
        return false;
    TW_ASSIGN(ir::Node * made, join(g, n, *slab));
    replaceNodes(g, {&n}, *made);
    return true;
}

} // namespace

Result<bool> scatterToConcatenation(ir::Graph& g, PassContext const&)
{
    return rewriteEach(
        g, [](ir::Node const& n) { return n.op == &ops::scatter::def(); },
        [&](ir::Node& n) { return toConcatenation(g, n); });
}

} // namespace tw::passes
