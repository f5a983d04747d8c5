// SPDX-License-Identifier: Apache-2.0
#include "passes/counted_indices.h"

#include "ops/concatenation/op.h"
#include "ops/elementwise/op.h"
#include "ops/fill/op.h"
#include "ops/identity/op.h"
#include "ops/slice/op.h"
#include "passes/fuse_nodes.h"
#include "passes/node_kinds.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

using ops::elementwise::Operation;

using Known = std::optional<Counting>;

// Nodes between a range and a gather; networks have about ten.
constexpr int kMostIndexNodes = 24;

Known countingOf(ir::Value const* v, int nodes);

// Of a constant's elements `first`, first + `apart` .., which are a tensor of `dims`.
Known ofConstant(TensorRef const& t, Extents const& dims, int64_t first = 0, int64_t apart = 1)
{
    int const rank = dims.rank;
    int64_t const count = dims.volume();
    if (count < 1)
        return std::nullopt;
    auto at = [&](int64_t i) { return t.getInt(first + i * apart); };
    Counting c{at(0), std::vector<ir::Dim>(size_t(rank), 0)};
    int64_t row = 1; // elements of a step along d
    for (int d = rank - 1; d >= 0; row *= dims[d--])
        if (dims[d] > 1)
            c.steps[size_t(d)] = at(row) - at(0);
    // Exporters write whole grids of places: only rows are told apart by divisions.
    int64_t const length = rank > 0 ? dims[rank - 1] : 1, step = rank > 0 ? c.steps.back().value() : 0;
    for (int64_t i = 0; i < count; i += length) {
        int64_t wanted = at(0), rest = i / length;
        for (int d = rank - 2; d >= 0; rest /= dims[d--])
            wanted += c.steps[size_t(d)].value() * (rest % dims[d]);
        for (int64_t k = 0; k < length; ++k, wanted += step)
            if (at(i + k) != wanted)
                return std::nullopt;
    }
    return c;
}

Known ofRange(ir::Node const& n)
{
    auto const& a = n.attrsAs<ops::fill::Attrs>();
    if (a.operation != ops::fill::Operation::kLinspace || n.outputs[0]->rank() != 1)
        return std::nullopt;
    if (!hasInput(n, 1))
        return Counting{int64_t(a.alpha), {int64_t(a.beta)}};
    auto const first = onlyElementOf(n.inputs[1], nullptr), step = onlyElementOf(n.inputs[2], nullptr);
    if (!first || !step)
        return std::nullopt;
    return Counting{*first, {*step}};
}

// Dimensions of 1 come and go.
Known ofReshape(Counting const& x, ir::Shape const& from, ir::Shape const& to)
{
    Counting y{x.first, std::vector<ir::Dim>(to.size(), 0)};
    size_t d = 0;
    for (size_t i = 0; i < to.size(); ++i) {
        if (to[i].is(1))
            continue;
        while (d < from.size() && from[d].is(1))
            ++d;
        if (d == from.size() || !(from[d] == to[i]))
            return std::nullopt;
        y.steps[i] = x.steps[d++];
    }
    return y;
}

Known ofSlice(ir::Node const& n, Counting y)
{
    auto const& a = n.attrsAs<ops::slice::Attrs>();
    if (a.mode != ops::slice::Mode::kStrict || hasInput(n, 1) || hasInput(n, 3))
        return std::nullopt;
    for (size_t d = 0; d < y.steps.size(); ++d) {
        y.first = y.first + y.steps[d] * a.start[d];
        y.steps[d] = n.inputs[0]->shape[d].is(1) ? ir::Dim(0) : y.steps[d] * a.stride[d];
    }
    return y;
}

Known ofTwo(Operation o, Counting x, Counting const& y)
{
    auto isNumber = [](Counting const& c) {
        return std::ranges::all_of(c.steps, [](auto const& s) { return s.is(0); });
    };
    if (o == Operation::kProd && !isNumber(y))
        return isNumber(x) ? ofTwo(o, y, x) : std::nullopt;
    if (o != Operation::kProd && o != Operation::kSum)
        return std::nullopt;
    bool const isSum = o == Operation::kSum;
    x.first = isSum ? x.first + y.first : x.first * y.first;
    for (size_t d = 0; d < x.steps.size(); ++d)
        x.steps[d] = isSum ? x.steps[d] + y.steps[d] : x.steps[d] * y.first;
    return x;
}

Known ofNode(ir::Node const& n, int nodes)
{
    if (n.op == &ops::fill::def())
        return ofRange(n);
    bool const isTwo = n.op == &ops::elementwise::def();
    if (!isTwo && !isReshape(&n) && n.op != &ops::slice::def() && n.op != &ops::identity::def())
        return std::nullopt;
    Known x = countingOf(n.inputs[0], nodes);
    if (!x)
        return x;
    if (n.op == &ops::slice::def())
        return ofSlice(n, *x);
    if (isReshape(&n))
        return ofReshape(*x, n.inputs[0]->shape, n.outputs[0]->shape);
    if (!isTwo)
        return x;
    Known const y = countingOf(n.inputs[1], nodes);
    return y ? ofTwo(n.attrsAs<ops::elementwise::Attrs>().operation, *x, *y) : y;
}

Known countingOf(ir::Value const* v, int nodes)
{
    if (v->type != DataType::kInt32 || nodes == 0)
        return std::nullopt;
    if (auto const number = onlyElementOf(v, nullptr)) // refit reaches no integers
        return Counting{*number, std::vector<ir::Dim>(v->shape.size(), 0)};
    if (TensorRef const t = constantOf(v); t.data)
        return ofConstant(t, t.dims);
    return v->producer ? ofNode(*v->producer, nodes - 1) : std::nullopt;
}

} // namespace

std::optional<Counting> countingOf(ir::Value const* v)
{
    return countingOf(v, kMostIndexNodes);
}

std::vector<Counting> countingsOf(ir::Node const& n, bool isTuples)
{
    ir::Value const* const indices = n.inputs[1];
    ir::Node const* const join = isTuples ? indices->producer : nullptr;
    bool const isJoined = join && join->op == &ops::concatenation::def() &&
                          join->attrsAs<ops::concatenation::Attrs>().axis == indices->rank() - 1;
    std::vector<ir::Value*> const parts = isJoined ? join->inputs : std::vector<ir::Value*>{n.inputs[1]};
    std::vector<Counting> list;
    TensorRef const tuples = isTuples && !isJoined ? constantOf(indices) : TensorRef{};
    if (tuples.data && indices->type == DataType::kInt32 && tuples.dims.rank > 0) {
        Extents dims = tuples.dims;
        int64_t const length = dims[dims.rank - 1];
        --dims.rank;
        for (int64_t k = 0; k < length; ++k) {
            auto c = ofConstant(tuples, dims, k, length);
            if (!c)
                return {};
            list.push_back(std::move(*c));
        }
        return list;
    }
    for (ir::Value const* v : parts) {
        std::optional<Counting> c = !isTuples || v->shape.back().is(1) ? countingOf(v) : std::nullopt;
        if (!c)
            return {};
        if (isTuples)
            c->steps.pop_back();
        list.push_back(std::move(*c));
    }
    return list;
}

bool countThrough(std::vector<Counting> const& indices, ir::Shape const& read, ir::Shape const& over)
{
    size_t left = over.size(); // dimensions of indices
    for (size_t j = read.size(); j-- > 0;) {
        ir::Dim counted = 1;
        while (!(counted == read[j])) {
            while (left > 0 && over[left - 1].is(1))
                --left;
            if (left-- == 0 || !(indices[j].steps[left] == counted))
                return false;
            for (size_t i = 0; i < indices.size(); ++i)
                if (i != j && !indices[i].steps[left].is(0))
                    return false;
            counted = counted * over[left];
        }
        if (!indices[j].first.is(0))
            return false;
    }
    return std::all_of(over.begin(), over.begin() + int64_t(left), [](ir::Dim const& d) { return d.is(1); });
}

} // namespace tw::passes
