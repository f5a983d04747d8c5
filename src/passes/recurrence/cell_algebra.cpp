// SPDX-License-Identifier: Apache-2.0
#include "passes/recurrence/cell_algebra.h"

#include <algorithm>

#include "ops/concatenation/op.h"
#include "ops/elementwise/op.h"
#include "ops/matrix_multiply/op.h"
#include "ops/shuffle/op.h"
#include "ops/slice/op.h"
#include "ops/unary/op.h"
#include "passes/fuse_nodes.h"
#include "passes/node_kinds.h"
#include "passes/rewrite.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

constexpr size_t kMostTerms = 64; // of a sum
constexpr size_t kMostFactors = 8;
constexpr int kMostNested = 512;

void add(std::string& key, auto const&... numbers)
{
    ((key.append(reinterpret_cast<char const*>(&numbers), sizeof numbers)), ...);
}

ir::Dim volumeOf(ir::Shape const& s, size_t first, size_t last)
{
    return ir::volume(ir::Shape(s.begin() + int64_t(first), s.begin() + int64_t(last)));
}

} // namespace

int CellTerms::factor(CellFactor const& f)
{
    std::string key;
    add(key, f.kind, f.leaf, f.value, f.transposed, f.begin, f.count, f.row, f.rows, f.sum, f.function.kind,
        f.function.alpha, f.function.beta);
    auto const [at, isNew] = factorIds_.try_emplace(key, int(factors_.size()));
    if (isNew)
        factors_.push_back(f);
    return at->second;
}

int CellTerms::sum(CellSum const& s)
{
    std::string key;
    for (auto const& [term, scale] : s) {
        add(key, term.size(), scale);
        for (int f : term)
            add(key, f);
    }
    auto const [at, isNew] = sumIds_.try_emplace(key, int(sums_.size()));
    if (isNew)
        sums_.push_back(s);
    return at->second;
}

int CellTerms::added(int a, int b, double scaleOfB)
{
    CellSum s = sumAt(a);
    for (auto const& [term, scale] : sumAt(b))
        if ((s[term] += scaleOfB * scale) == 0)
            s.erase(term);
    return sum(s);
}

std::optional<int> CellTerms::multiplied(int a, int b)
{
    CellSum s;
    for (auto const& [first, scale] : sumAt(a))
        for (auto const& [second, other] : sumAt(b)) {
            CellTerm term = first;
            term.insert(term.end(), second.begin(), second.end());
            std::ranges::sort(term);
            if (term.size() > kMostFactors)
                return {};
            if ((s[term] += scale * other) == 0)
                s.erase(term);
        }
    return s.size() <= kMostTerms ? std::optional(sum(s)) : std::nullopt;
}

int CellTerms::onlyFactor(int s) const
{
    CellSum const& terms = sumAt(s);
    bool const one = terms.size() == 1 && terms.begin()->first.size() == 1 && terms.begin()->second == 1;
    return one ? terms.begin()->first[0] : -1;
}

std::optional<size_t> prefixOf(ir::Shape const& s, ir::Dim const& wanted)
{
    for (size_t p = 0; p <= s.size(); ++p)
        if (volumeOf(s, 0, p) == wanted)
            return p;
    return {};
}

int CellReader::prefixOf(ir::Shape const& s) const
{
    auto const p = passes::prefixOf(s, rows_);
    return p ? int(*p) : -1;
}

std::optional<int64_t> CellReader::widthOf(ir::Shape const& s) const
{
    int const p = prefixOf(s);
    ir::Dim const width = p < 0 ? ir::Dim::symbol("none") : volumeOf(s, size_t(p), s.size());
    return width.isConst() ? std::optional(width.value()) : std::nullopt;
}

std::optional<int> CellReader::columns(ir::Value* v, int64_t begin, int64_t count)
{
    auto const width = v->type == type_ ? widthOf(v->shape) : std::nullopt;
    if (!width || begin + count > *width)
        return {};
    Leaf const leaf = leafOf_(v);
    if (leaf.kind == Leaf::Kind::kColumns) {
        CellFactor f;
        f.leaf = leaf.number;
        f.begin = begin;
        f.count = count;
        return terms_.one(f);
    }
    if (leaf.kind == Leaf::Kind::kInvariant) // one row, or it would be another in each
        return rows_.is(1) ? invariant(v, begin, count) : std::nullopt;
    if (!v->producer || depth_ > kMostNested)
        return {};
    ++depth_;
    auto const sum = ofNode(*v->producer, v, begin, count);
    --depth_;
    nodes_.insert(v->producer);
    return sum;
}

std::optional<int> CellReader::ofNode(ir::Node& n, ir::Value*, int64_t begin, int64_t count)
{
    if (n.op == &ops::elementwise::def())
        return ofElementwise(n, begin, count);
    if (n.op == &ops::activation::def())
        return ofActivation(n, begin, count);
    if (n.op == &ops::shuffle::def())
        return ofShuffle(n, begin, count);
    if (n.op == &ops::slice::def())
        return ofSlice(n, begin, count);
    if (n.op == &ops::concatenation::def())
        return ofConcatenation(n, begin, count);
    if (n.op == &ops::identity::def())
        return columns(n.inputs[0], begin, count);
    if (ops::matrix_multiply::isBare(n))
        return ofProduct(n, begin, count);
    if (is(&n, ops::unary::Operation::kNeg))
        if (auto const x = columns(n.inputs[0], begin, count))
            return terms_.added(terms_.sum({}), *x, -1);
    return {};
}

std::optional<int> CellReader::invariant(ir::Value* v, int64_t begin, int64_t count)
{
    if (auto const number = v->isConstant() ? numberOf(v, refit_) : std::nullopt)
        return terms_.sum(*number == 0 ? CellSum{} : CellSum{{{}, *number}});
    Leaf const leaf = leafOf_(v);
    ir::Dim const volume = ir::volume(v->shape);
    if (leaf.kind != Leaf::Kind::kInvariant || v->type != type_ || !volume.isConst() || begin + count > volume.value())
        return {};
    CellFactor f;
    f.kind = CellFactor::Kind::kVector;
    f.value = leaf.value;
    f.begin = begin;
    f.count = count;
    return terms_.one(f);
}

// An operand of the element-wise result `out`, which it may be broadcast to.
std::optional<int> CellReader::operand(ir::Shape const& out, ir::Value* v, int64_t begin, int64_t count)
{
    // An initial state of zeros is a state.
    if (v->isConstant() && v->type == type_ && leafOf_(v).kind != Leaf::Kind::kColumns)
        if (auto const number = numberOf(v, refit_))
            return terms_.sum(*number == 0 ? CellSum{} : CellSum{{{}, *number}});
    int const p = prefixOf(out);
    if (p < 0 || v->shape.size() != out.size() || !std::equal(out.begin() + p, out.end(), v->shape.begin() + p))
        return {};
    if (std::equal(out.begin(), out.begin() + p, v->shape.begin()) && widthOf(v->shape)) {
        Leaf const leaf = leafOf_(v);
        return leaf.kind == Leaf::Kind::kInvariant && rows_.is(1) ? invariant(v, begin, count)
                                                                  : columns(v, begin, count);
    }
    bool const same = std::all_of(v->shape.begin(), v->shape.begin() + p, [](ir::Dim const& d) { return d.is(1); });
    return same ? invariant(v, begin, count) : std::nullopt;
}

std::optional<int> CellReader::ofElementwise(ir::Node& n, int64_t begin, int64_t count)
{
    using ops::elementwise::Operation;
    ir::Shape const& out = n.outputs[0]->shape;
    auto const a = operand(out, n.inputs[0], begin, count), b = operand(out, n.inputs[1], begin, count);
    if (!a || !b)
        return {};
    switch (n.attrsAs<ops::elementwise::Attrs>().operation) {
    case Operation::kSum:
        return terms_.added(*a, *b, 1);
    case Operation::kSub:
        return terms_.added(*a, *b, -1);
    case Operation::kProd:
        return terms_.multiplied(*a, *b);
    case Operation::kDiv: {
        auto const by = n.inputs[1]->isConstant() ? numberOf(n.inputs[1], refit_) : std::nullopt;
        return by && *by != 0 ? std::optional(terms_.added(terms_.sum({}), *a, 1 / *by)) : std::nullopt;
    }
    default:
        return {};
    }
}

std::optional<int> CellReader::ofActivation(ir::Node& n, int64_t begin, int64_t count)
{
    auto const x = columns(n.inputs[0], begin, count);
    if (!x)
        return {};
    CellFactor f;
    f.function = n.attrsAs<ops::activation::Attrs>();
    f.kind = f.function.kind == ops::activation::Kind::kClip ? CellFactor::Kind::kClip : CellFactor::Kind::kFunction;
    f.sum = *x;
    return terms_.one(f);
}

std::optional<int> CellReader::ofShuffle(ir::Node& n, int64_t begin, int64_t count)
{
    bool const same = ops::shuffle::keepsOrder(n) && widthOf(n.inputs[0]->shape) == widthOf(n.outputs[0]->shape);
    return same ? columns(n.inputs[0], begin, count) : std::nullopt;
}

namespace {

// Elements that follow one another, of dimensions [first, rank) of `whole`: where the part starts. None where the part
// is no run.
std::optional<int64_t> startOf(ir::Shape const& whole, ir::Shape const& part, std::vector<int64_t> const& start,
                               size_t first)
{
    int64_t at = 0, stride = 1;
    bool isWhole = true; // all dimensions behind
    for (size_t d = whole.size(); d-- > first;) {
        if (!whole[d].isConst() || !part[d].isConst() || (!isWhole && !part[d].is(1)))
            return {};
        at += start[d] * stride;
        stride *= whole[d].value();
        isWhole = isWhole && part[d] == whole[d];
    }
    return at;
}

} // namespace

std::optional<int> CellReader::ofSlice(ir::Node& n, int64_t begin, int64_t count)
{
    auto const& a = n.attrsAs<ops::slice::Attrs>();
    ir::Value* const x = n.inputs[0];
    ir::Shape const &whole = x->shape, &part = n.outputs[0]->shape;
    int const p = prefixOf(part);
    bool const byInputs =
        std::any_of(n.inputs.begin() + 1, n.inputs.end(), [](ir::Value const* v) { return v != nullptr; });
    if (byInputs || a.mode != ops::slice::Mode::kStrict || p < 0 || a.start.size() != part.size() ||
        !std::equal(whole.begin(), whole.begin() + p, part.begin()))
        return {};
    for (size_t d = 0; d < part.size(); ++d)
        if ((a.stride[d] != 1 && !part[d].is(1)) || (int(d) < p && a.start[d] != 0))
            return {};
    auto const start = startOf(whole, part, a.start, size_t(p));
    return start ? columns(x, *start + begin, count) : std::nullopt;
}

std::optional<int> CellReader::ofConcatenation(ir::Node& n, int64_t begin, int64_t count)
{
    int const axis = n.attrsAs<ops::concatenation::Attrs>().axis;
    ir::Shape const& out = n.outputs[0]->shape;
    int const p = prefixOf(out);
    if (p < 0 || axis < p || !volumeOf(out, size_t(p), size_t(axis)).is(1))
        return {};
    for (ir::Value* part : n.inputs) {
        ir::Dim const size = volumeOf(part->shape, size_t(axis), part->shape.size());
        if (!size.isConst())
            return {};
        if (begin < size.value())
            return begin + count <= size.value() ? columns(part, begin, count) : std::nullopt;
        begin -= size.value();
    }
    return {};
}

void CellReader::joints(ir::Value* v, int64_t at, std::set<int64_t>& list) const
{
    list.insert(at);
    ir::Node const* const n = v->producer;
    if (!n || leafOf_(v).kind != Leaf::Kind::kNone)
        return;
    if ((n->op == &ops::shuffle::def() && ops::shuffle::keepsOrder(*n)) || n->op == &ops::identity::def())
        return joints(n->inputs[0], at, list);
    if (n->op != &ops::concatenation::def())
        return;
    for (ir::Value* part : n->inputs) {
        auto const width = widthOf(part->shape);
        if (!width)
            return;
        joints(part, at, list);
        at += *width;
    }
}

// An invariant value that holds one matrix.
ir::Value* CellReader::matrixOf(ir::Value* v) const
{
    Leaf const leaf = leafOf_(v);
    size_t const rank = v->shape.size();
    bool const one = leaf.kind == Leaf::Kind::kInvariant && rank >= 2 && volumeOf(v->shape, 0, rank - 2).is(1) &&
                     ir::isStatic(v->shape) && v->type == type_;
    return one ? leaf.value : nullptr;
}

std::optional<int> CellReader::productOf(ir::Value* x, CellFactor matrix)
{
    auto const width = widthOf(x->shape);
    if (!width || *width != matrix.height)
        return {};
    std::set<int64_t> parts;
    joints(x, 0, parts);
    parts.insert(*width);
    int total = terms_.sum({});
    for (auto at = parts.begin(); std::next(at) != parts.end(); ++at) {
        matrix.row = *at;
        matrix.rows = *std::next(at) - *at;
        auto const part = columns(x, matrix.row, matrix.rows);
        if (!part)
            return {};
        matrix.sum = *part;
        total = terms_.added(total, terms_.one(matrix), 1);
    }
    return total;
}

std::optional<int> CellReader::ofProduct(ir::Node& n, int64_t begin, int64_t count)
{
    using ops::matrix_multiply::MatrixOperation;
    auto const& a = n.attrsAs<ops::matrix_multiply::Attrs>();
    ir::Value *const left = n.inputs[0], *const right = n.inputs[1];
    CellFactor f;
    f.kind = CellFactor::Kind::kProduct;
    f.begin = begin;
    f.count = count;
    auto const sizes = [&](ir::Value const* m, bool transposed) {
        size_t const rank = m->shape.size();
        f.transposed = transposed;
        f.height = m->shape[rank - (transposed ? 1 : 2)].value();
        f.width = m->shape[rank - (transposed ? 2 : 1)].value();
    };
    if (a.connected) {
        ir::Dim const columns = widthOf(n.outputs[0]->shape).value_or(-1), all = ir::volume(right->shape);
        if (leafOf_(right).kind != Leaf::Kind::kInvariant || right->type != type_ || columns.value() < 1 ||
            !all.isConst())
            return {};
        f.value = leafOf_(right).value;
        f.transposed = true;
        f.width = columns.value();
        f.height = all.value() / f.width;
        auto const y = productOf(left, f);
        ir::Value* const bias = n.inputs.size() > ops::Epilogue::kBias ? n.inputs[ops::Epilogue::kBias] : nullptr;
        auto const b = y && bias ? invariant(bias, begin, count) : std::optional(terms_.sum({}));
        return y && b ? std::optional(terms_.added(*y, *b, 1)) : std::nullopt;
    }
    if (ir::Value* const m = a.b != MatrixOperation::kVector ? matrixOf(right) : nullptr) {
        f.value = m;
        sizes(right, a.b == MatrixOperation::kTranspose);
        bool const rowsStay = a.a != MatrixOperation::kTranspose || rows_.is(1);
        auto const y = rowsStay ? productOf(left, f) : std::nullopt;
        if (y)
            return y;
    }
    ir::Value* const m = a.a != MatrixOperation::kVector && rows_.is(1) ? matrixOf(left) : nullptr;
    if (!m)
        return {};
    f.value = m;
    sizes(left, a.a == MatrixOperation::kNone);
    return productOf(right, f);
}

} // namespace tw::passes
