// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/concatenation/op.h"
#include "ops/elementwise/op.h"
#include "ops/matrix_multiply/op.h"
#include "ops/recurrence/op.h"
#include "ops/shuffle/op.h"
#include "ops/slice/op.h"
#include "passes/node_kinds.h"
#include "passes/recurrence/recurrence.h"
#include "passes/rewrite.h"
#include "tactic/registry.h"

namespace tw::passes {

using ir::Dim;
using ir::Shape;

namespace {

constexpr int64_t kMostColumns = 2048;
constexpr int kFirstResolved = 1 << 20; // leaves that are sequences outside the cell

} // namespace

std::optional<Sequence> sequenceOf(ir::Value* v, int axis, bool reverse, Shape const& slice, Dim const& rows)
{
    Sequence q{v, {}, axis, 0, reverse};
    auto const leading = prefixOf(slice, rows);
    size_t const p = leading.value_or(0);
    Dim const width = ir::volume(Shape(slice.begin() + int64_t(p), slice.end()));
    if (!leading || !width.isConst())
        return {};
    // As the graph outside names the dimensions.
    for (size_t d = 0; d < slice.size() + 1 && q.lead.size() < p + 1; ++d)
        if (d < p || size_t(q.axis) == d || size_t(q.axis) < d)
            q.lead.push_back(v->shape[d]);
    if (size_t(q.axis) > p) { // behind columns
        q.lead.assign(v->shape.begin(), v->shape.begin() + int64_t(p));
        q.lead.push_back(v->shape[size_t(q.axis)]);
    }
    q.width = width.value();
    return q;
}

std::optional<int> SequenceReader::resolve(Sequence const& q, CellFactor const& f)
{
    if (auto const sum = q.isBehind() ? std::nullopt : resolveProducts(q, f))
        return sum;
    if (q.width > kMostColumns)
        return {};
    CellFactor product;
    product.kind = CellFactor::Kind::kProduct;
    product.value = diagonal(q.value->type, q.width);
    product.height = product.width = product.rows = q.width;
    product.begin = f.begin;
    product.count = f.count;
    CellFactor x;
    x.leaf = f.leaf;
    x.count = q.width;
    product.sum = terms_.one(x);
    return terms_.one(product);
}

Sequence const* SequenceReader::resolved(int leaf) const
{
    return leaf >= kFirstResolved ? &resolved_[size_t(leaf - kFirstResolved)] : nullptr;
}

ir::Value* SequenceReader::diagonal(DataType type, int64_t n)
{
    ir::Value*& v = diagonals_[n];
    if (v)
        return v;
    Tensor t(type, {n, n});
    for (int64_t i = 0; i < n * n; ++i)
        t.ref().set(i, i % (n + 1) == 0);
    return v = g_.addConstant(name_ + ".diagonal", type, {n, n}, t.data());
}

namespace {

// What products that the value is a sum of are taken of.
void findStops(ir::Value* v, std::set<ir::Value*>& stops, int depth)
{
    ir::Node const* const n = v->producer;
    if (!n || depth > 8)
        return;
    if (ops::matrix_multiply::isBare(*n))
        stops.insert(n->inputs[0]);
    else if (n->op == &ops::elementwise::def() || n->op == &ops::slice::def() || n->op == &ops::shuffle::def() ||
             n->op == &ops::concatenation::def())
        for (ir::Value* in : n->inputs)
            if (in)
                findStops(in, stops, depth + 1);
}

} // namespace

std::optional<int> SequenceReader::resolveProducts(Sequence const& q, CellFactor const& f)
{
    Dim const rows = ir::volume(q.lead);
    if (rows.is(1))
        return {};
    std::set<ir::Value*> stops;
    findStops(q.value, stops, 0);
    if (stops.empty())
        return {};
    CellReader* self = nullptr;
    auto const leaf = [&](ir::Value* v) -> CellReader::Leaf {
        using Kind = CellReader::Leaf::Kind;
        if (v->isConstant())
            return {Kind::kInvariant, -1, v};
        if (stops.contains(v))
            return {Kind::kColumns, leafOf(q, v, *self), nullptr};
        return self->widthOf(v->shape) ? CellReader::Leaf{} : CellReader::Leaf{Kind::kInvariant, -1, v};
    };
    CellReader reader(terms_, rows, q.value->type, refit_, leaf);
    self = &reader;
    auto const sum = reader.columns(q.value, f.begin, f.count);
    bool const free = std::ranges::none_of(reader.nodes(), [](ir::Node const* n) { return hasWish(*n); });
    if (!sum || !free)
        return {};
    for (auto const& [term, scale] : terms_.sumAt(*sum))
        if (!term.empty() && (term.size() > 1 || terms_.factorAt(term[0]).kind == CellFactor::Kind::kColumns ||
                              terms_.factorAt(term[0]).kind == CellFactor::Kind::kFunction))
            return {};
    return sum;
}

int SequenceReader::leafOf(Sequence const& like, ir::Value* v, CellReader const& reader)
{
    for (size_t i = 0; i < resolved_.size(); ++i)
        if (resolved_[i].value == v && resolved_[i].axis == like.axis && resolved_[i].reverse == like.reverse &&
            resolved_[i].lead == like.lead)
            return kFirstResolved + int(i);
    Sequence q = like;
    q.value = v;
    q.width = reader.widthOf(v->shape).value_or(0);
    resolved_.push_back(q);
    return kFirstResolved + int(resolved_.size()) - 1;
}

namespace {

using ir::Permutation;
using ops::recurrence::Attrs;

Permutation const kSwap{1, 0, 2};

// What a shuffle that only swaps the first two of three dimensions reads; null for all others.
ir::Value* swapped(ir::Value const* v)
{
    ir::Node const* const n = v ? v->producer : nullptr;
    if (!isShuffle(n) || hasWish(*n))
        return nullptr;
    auto const& a = n->attrsAs<ops::shuffle::Attrs>();
    bool const one = (a.firstTranspose == kSwap && a.secondTranspose.empty()) ||
                     (a.firstTranspose.empty() && a.secondTranspose == kSwap);
    return one && !a.hasReshape ? n->inputs[0] : nullptr;
}

bool isReadByShuffles(ir::Graph const& g, ir::Value const* y)
{
    auto const readers = readersOf(g, y);
    return !g.isOutput(y) && g.useCount(y) == int(readers.size()) &&
           std::ranges::all_of(readers, [](ir::Node const* n) { return n->op == &ops::shuffle::def(); });
}

// Whether a shuffle of [T,N,H] gives [T,1,N,H] by way of [N,T,H] and [N,T,1,H]: what is left of ONNX's order of one
// direction behind a layer that was turned.
bool isReshapeOfStates(ir::Node const& n)
{
    if (!isShuffle(&n) || n.inputs[0]->rank() != 3)
        return false;
    auto const& a = n.attrsAs<ops::shuffle::Attrs>();
    ir::Shape const &x = n.inputs[0]->shape, &y = n.outputs[0]->shape;
    return a.firstTranspose == kSwap && a.hasReshape && a.secondTranspose == Permutation{1, 2, 0, 3} && y[0] == x[0] &&
           y[1].is(1) && y[2] == x[1] && y[3] == x[2];
}

Result<bool> turn(ir::Graph& g, ir::Node& n)
{
    auto attrs = std::make_unique<Attrs>(n.attrsAs<Attrs>());
    ir::Value* const x = n.inputs[0]->rank() == 3 ? swapped(n.inputs[0]) : nullptr;
    if (!x || hasWish(n) || !isReadByShuffles(g, n.outputs[0]))
        return false;
    attrs->batchFirst = !attrs->batchFirst;
    NodeMaker maker(g, n);
    std::vector<ir::Value*> inputs = n.inputs;
    inputs[ops::recurrence::kX] = x;
    for (size_t i : {size_t(ops::recurrence::kH0), size_t(ops::recurrence::kC0)})
        if (i < inputs.size() && inputs[i])
            TW_SET(inputs[i], maker.transposed(inputs[i], kSwap));
    TW_ASSIGN(ir::Node * turned, g.addNode(*n.op, std::move(attrs), std::move(inputs), n.name, {}, g.positionOf(&n)));
    takePlaceOf(*turned, n);
    for (size_t i = 0; i < n.outputs.size(); ++i) {
        turned->outputs[i]->name = n.outputs[i]->name;
        if (g.useCount(n.outputs[i]) == 0)
            continue;
        TW_ASSIGN(ir::Value * back, maker.transposed(turned->outputs[i], kSwap));
        if (!replaceValue(g, n.outputs[i], back))
            return internalError("layer '{}': output {} cannot be replaced", n.name, i);
    }
    g.eraseNode(&n);
    return true;
}

} // namespace

Result<bool> dropTranspositions(ir::Graph& g)
{
    bool changed = false;
    for (size_t i = 0; i < g.nodes.size(); ++i) {
        ir::Node& n = *g.nodes[i];
        if (isReshapeOfStates(n)) {
            auto& a = n.attrsAs<ops::shuffle::Attrs>();
            auto const reshape = reshapeDims(g, n.inputs[0]->shape, n.outputs[0]->shape);
            if (!reshape)
                continue;
            a.firstTranspose.clear();
            a.secondTranspose.clear();
            a.reshape = reshape->dims;
            a.zeroIsPlaceholder = reshape->placeholder;
            changed = true;
        }
        if (n.op != &ops::recurrence::def())
            continue;
        TW_ASSIGN(bool const turned, turn(g, n));
        if (turned)
            i = size_t(-1); // from the start: nodes have moved
        changed = changed || turned;
    }
    return changed;
}

} // namespace tw::passes
