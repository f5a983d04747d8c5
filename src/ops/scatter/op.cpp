// SPDX-License-Identifier: Apache-2.0
#include "ops/scatter/op.h"

#include <algorithm>

#include "tactic/cases.h"
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
        return ctx.error("axis " + std::to_string(a.axis) + " is out of range for " + ctx.describe(0) +
                         " (allowed: 0.." + std::to_string(r - 1) + ")");
    if (ctx.rank(1) != r || ctx.rank(2) != r)
        return ctx.error("data " + ctx.describe(0) + ", indices " + ctx.describe(1) + " and updates " +
                         ctx.describe(2) + " must have the same rank in element mode");
    for (size_t d = 0; d < x.size(); ++d) {
        if (differ(j[d], u[d]))
            return ctx.error("indices " + ctx.describe(1) + " and updates " + ctx.describe(2) +
                             " must have the same shape in element mode");
        if (int64_t(d) != a.axis && x[d].isConst() && u[d].isConst() && u[d].value() > x[d].value())
            return ctx.error("dimension " + std::to_string(d) + " of updates " + ctx.describe(2) +
                             " is larger than that of data " + ctx.describe(0));
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
        return ctx.error("the last dimension of indices " + ctx.describe(1) + " is " + last.str() + " (allowed: 1 to " +
                         std::to_string(r) + ", the rank of the data)");
    size_t const k = size_t(last.value());
    Shape want(j.begin(), j.end() - 1);
    want.insert(want.end(), x.begin() + int64_t(k), x.end());
    if (want.size() != u.size())
        return ctx.error("updates " + ctx.describe(2) + " must have rank " + std::to_string(want.size()) +
                         ": the indices' dimensions but the last, then the data's from " + std::to_string(k) + " on");
    for (size_t d = 0; d < u.size(); ++d)
        if (differ(want[d], u[d]))
            return ctx.error("dimension " + std::to_string(d) + " of updates " + ctx.describe(2) + " must be " +
                             want[d].str() + ", that of " + (d + 1 < size_t(q) ? "the indices" : "the data"));
    return {};
}

// Known elements written at known places: what exporters do to shapes.
void propagateContent(ir::InferContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    auto const *x = ctx.content(0), *j = ctx.content(1), *u = ctx.content(2);
    if (!x || !j || !u || !isStatic(ctx.shape(0)) || !isStatic(ctx.shape(1)) || !isStatic(ctx.shape(2)))
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
        return ctx.error("mode " + std::to_string(int(a.mode)) + " is unknown (allowed: 0 and 1)");
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

[[gnu::cold]] void cases(CaseList& list)
{
    auto at = [](Extents const& dims, std::vector<double> v = {}) {
        return input(DataType::kInt32, dims, std::move(v));
    };
    auto scatter = [&](std::string const& name, Attrs const& a, CaseInput x, CaseInput j, CaseInput u,
                       std::vector<std::vector<double>> expected = {}) {
        list.add(name, a, {std::move(x), std::move(j), std::move(u)}, std::move(expected));
    };
    auto element = [](int64_t axis) {
        Attrs a;
        a.axis = axis;
        return a;
    };
    Attrs nd;
    nd.mode = Mode::kNd;
    CaseInput const x23 = f32({2, 3}, {1, 2, 3, 4, 5, 6});
    scatter("element_by_hand", element(1), x23, at({2, 2}, {2, 0, -1, 1}), f32({2, 2}, {10, 20, 30, 40}),
            {{20, 2, 10, 4, 40, 30}});
    scatter("element_first_axis_by_hand", element(0), x23, at({1, 2}, {1, 0}), f32({1, 2}, {10, 20}),
            {{1, 20, 3, 10, 5, 6}});
    scatter("element_outside_by_hand", element(1), x23, at({1, 4}, {3, -3, -4, 1}), f32({1, 4}, {10, 20, 30, 40}),
            {{20, 40, 3, 4, 5, 6}});
    scatter("element_last_counts", element(1), x23, at({1, 3}, {1, 1, -2}), f32({1, 3}, {10, 20, 30}),
            {{1, 30, 3, 4, 5, 6}});
    scatter("nd_by_hand", nd, x23, at({3, 2}, {1, 2, 0, -1, 1, -3}), f32({3}, {10, 20, 30}), {{1, 2, 20, 30, 5, 10}});
    scatter("nd_rows_by_hand", nd, x23, at({2, 1}, {-1, 5}), f32({2, 3}, {10, 20, 30, 40, 50, 60}),
            {{1, 2, 3, 10, 20, 30}});
    scatter("nd_slices_of_one_by_hand", nd, f32({3, 1, 1}, {1, 2, 3}), at({2, 1}, {2, 0}), f32({2, 1, 1}, {7, 8}),
            {{8, 2, 7}});
    scatter("nd_last_counts", nd, x23, at({3, 1}, {0, 1, 0}), f32({3, 3}, {1, 1, 1, 2, 2, 2, 7, 8, 9}),
            {{7, 8, 9, 2, 2, 2}});
    scatter("nd_one_tuple", nd, x23, at({2}, {1, 0}), f32({}, {9}), {{1, 2, 3, 9, 5, 6}});
    scatter("nd_one_row", nd, x23, at({1}, {1}), f32({3}, {7, 8, 9}), {{1, 2, 3, 7, 8, 9}});
    scatter("extreme_indices", element(0), f32({2}, {1, 2}), at({3}, {-2147483648.0, 2147483647.0, -2147483647.0}),
            f32({3}, {7, 8, 9}), {{1, 2}});
    scatter("no_updates", element(1), x23, at({2, 0}), f32({2, 0}), {{1, 2, 3, 4, 5, 6}});
    scatter("nd_no_updates", nd, x23, at({0, 1}), f32({0, 3}), {{1, 2, 3, 4, 5, 6}});
    scatter("empty_data", element(0), f32({0, 3}), at({2, 3}), f32({2, 3}), {{}});
    scatter("nd_empty_slices", nd, f32({2, 0}), at({3, 1}), f32({3, 0}), {{}});
    scatter("nd_empty_data", nd, f32({0, 2}), at({3, 1}, {0, -1, 1}), f32({3, 2}), {{}});
    scatter("element_1d", element(0), f32({9}), at({4}), f32({4}));
    for (int64_t axis = 0; axis < 3; ++axis) {
        std::string const name = std::to_string(axis);
        scatter("element_axis_" + name, element(axis), f32({4, 3, 5}), at({4, 3, 5}), f32({4, 3, 5}));
        scatter("element_part_" + name, element(axis), f32({4, 3, 5}), at({3, 2, 4}), f32({3, 2, 4}));
        Extents longer{2, 3, 4};
        longer[int(axis)] = 11;
        scatter("element_more_" + name, element(axis), f32({4, 3, 5}), at(longer), f32(longer));
    }
    scatter("element_rank_4", element(2), f32({2, 3, 7, 5}), at({2, 2, 4, 5}), f32({2, 2, 4, 5}));
    scatter("element_rank_8", element(6), f32({2, 1, 2, 1, 2, 3, 2, 3}), at({2, 1, 2, 1, 2, 3, 2, 3}),
            f32({2, 1, 2, 1, 2, 3, 2, 3}));
    scatter("nd_all", nd, f32({3, 4, 2}), at({5, 3}), f32({5}));
    scatter("nd_blocks", nd, f32({3, 4, 2, 5}), at({2, 3, 2}), f32({2, 3, 2, 5}));
    scatter("nd_four", nd, f32({3, 4, 2, 5}), at({17, 4}), f32({17}));
    scatter("nd_rank_8", nd, f32({2, 1, 2, 1, 2, 3, 2, 3}), at({5, 8}), f32({5}));
    // Shared out among workers; slices of all the widths that are copied in ways of their own.
    scatter("shared_rows", nd, f32({300, 768}), at({70, 1}), f32({70, 768}));
    scatter("shared_one_slice", nd, f32({2, 50000}), at({3, 1}), f32({3, 50000}));
    scatter("shared_tuples", nd, f32({200, 300}), at({30001, 2}), f32({30001}));
    scatter("shared_element_first", element(0), f32({70, 700}), at({90, 301}), f32({90, 301}));
    scatter("shared_element_middle", element(1), f32({9, 70, 120}), at({8, 40, 113}), f32({8, 40, 113}));
    scatter("shared_element_last", element(1), f32({40, 700}), at({35, 1001}), f32({35, 1001}));
    for (int64_t block : {2, 3, 4, 5, 7, 8, 12, 15, 16, 17, 31, 32, 48, 63, 64, 65, 131, 512})
        for (DataType t : {DataType::kFloat, DataType::kHalf, DataType::kInt8})
            scatter("nd_block_" + std::to_string(block) + "_" + nameOf(t), nd, input(t, {7, 3, block}), at({9, 2}),
                    input(t, {9, block}));
    for (DataType t : {DataType::kHalf, DataType::kInt8, DataType::kInt32, DataType::kBool, DataType::kUInt8}) {
        std::string const type = nameOf(t);
        scatter("element_" + type, element(1), input(t, {2, 5}), at({2, 4}), input(t, {2, 4}));
        scatter("nd_" + type, nd, input(t, {5, 3, 3}), at({4, 2}), input(t, {4, 3}));
    }
}

} // namespace

ir::OpDef const& def()
{
    static constexpr ir::OpDef kDef{
        .name = "scatter",
        .minInputs = 3,
        .maxInputs = 3,
        .makeAttrs = [] { return std::unique_ptr<ir::AttrsBase>(std::make_unique<Attrs>()); },
        .infer = infer,
        .reference = reference,
        .domain = domain,
        .cases = cases,
        .cpuTactics = cpuTactics,
        .cudaTactics = cudaTactics,
        .isCheap = true,
    };
    return kDef;
}

} // namespace tw::ops::scatter
