// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

#include <limits>

#include "cases/draw.h"
#include "ops/scatter/op.h"

namespace tw::ops::scatter {

void cases(CaseList& list)
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
    auto reducing = [](Attrs a, Reduction r) {
        a.reduction = r;
        return a;
    };
    double const nan = std::numeric_limits<double>::quiet_NaN();
    scatter("add_by_hand", reducing(element(1), Reduction::kAdd), x23, at({2, 4}, {1, 1, -2, 3, 0, 2, 2, -4}),
            f32({2, 4}, {10, 20, 30, 40, 50, 60, 70, 80}), {{1, 62, 3, 54, 5, 136}});
    scatter("mul_by_hand", reducing(element(0), Reduction::kMul), x23, at({3, 2}, {0, 1, 0, 1, 1, -1}),
            f32({3, 2}, {2, 3, 5, 7, 11, 0.5}), {{10, 2, 3, 44, 52.5, 6}});
    scatter("min_by_hand", reducing(element(0), Reduction::kMin), f32({4}, {1, 2, nan, 4}), at({5}, {0, 0, 1, 2, 3}),
            f32({5}, {-1, -2, 3, 0, nan}), {{-2, 2, nan, nan}});
    scatter("max_by_hand", reducing(element(0), Reduction::kMax), f32({4}, {1, 2, nan, 4}), at({5}, {0, 0, 1, 2, 3}),
            f32({5}, {7, 6, 1, 0, nan}), {{7, 2, nan, nan}});
    scatter("add_nd_by_hand", reducing(nd, Reduction::kAdd), x23, at({3, 1}, {1, 1, 2}),
            f32({3, 3}, {10, 20, 30, 1, 2, 3, 9, 9, 9}), {{1, 2, 3, 15, 27, 39}});
    scatter("add_integers_wrap", reducing(element(0), Reduction::kAdd), at({2}, {2147483647, -5}), at({3}, {0, 0, 1}),
            at({3}, {1, 1, -7}), {{-2147483647, -12}});
    scatter("mul_integers_wrap", reducing(element(0), Reduction::kMul), at({2}, {65536, 3}), at({3}, {0, 1, 1}),
            at({3}, {65537, -5, 7}), {{65536, -105}});
    for (Reduction r : {Reduction::kAdd, Reduction::kMul, Reduction::kMin, Reduction::kMax})
        for (DataType t : {DataType::kFloat, DataType::kHalf, DataType::kInt32}) {
            std::string const name = fmt::format("reduce_{}_{}", int(r), nameOf(t));
            scatter(name, reducing(element(1), r), input(t, {3, 5, 7}), at({2, 9, 6}), input(t, {2, 9, 6}));
            scatter(name + "_rows", reducing(nd, r), input(t, {9, 33}), at({5, 1}), input(t, {5, 33}));
            scatter(name + "_tuples", reducing(nd, r), input(t, {3, 4, 5}), at({61, 3}), input(t, {61}));
        }
    Attrs const add = reducing(element(0), Reduction::kAdd);
    scatter("add_no_updates", add, x23, at({0, 3}), f32({0, 3}), {{1, 2, 3, 4, 5, 6}});
    scatter("add_empty_data", add, f32({0, 3}), at({2, 3}), f32({2, 3}), {{}});
    scatter("add_empty_slices", reducing(nd, Reduction::kAdd), f32({2, 0}), at({3, 1}), f32({3, 0}), {{}});
    scatter("add_shared_lines", add, f32({70, 700}), at({290, 699}), f32({290, 699}));
    scatter("add_shared_rows", reducing(nd, Reduction::kAdd), f32({300, 768}), at({700, 1}), f32({700, 768}));
    // Rows whose updates are found in lists; one that has all of them; slots in several slices.
    scatter("add_listed_rows", reducing(nd, Reduction::kAdd), f32({5000, 24}), at({6000, 1}), f32({6000, 24}));
    scatter("max_listed_rows", reducing(nd, Reduction::kMax), input(DataType::kHalf, {9001, 150}), at({2500, 1}),
            input(DataType::kHalf, {2500, 150}));
    scatter("add_to_one_row", reducing(nd, Reduction::kAdd), f32({6000, 16}),
            at({5000, 1}, std::vector<double>(5000, 77)), f32({5000, 16}));
    scatter("add_listed_tuples", reducing(nd, Reduction::kAdd), f32({70, 80, 17}), at({4000, 2}), f32({4000, 17}));
    scatter("add_wide_rows", reducing(nd, Reduction::kAdd), f32({3, 1300}), at({50, 1}), f32({50, 1300}));
    scatter("add_rank_8", reducing(element(6), Reduction::kAdd), f32({2, 1, 2, 1, 2, 3, 2, 3}),
            at({2, 1, 2, 1, 2, 3, 2, 3}), f32({2, 1, 2, 1, 2, 3, 2, 3}));
    // Distributed among workers; slices of all the widths that are copied in ways of their own.
    scatter("shared_rows", nd, f32({300, 768}), at({70, 1}), f32({70, 768}));
    scatter("shared_one_slice", nd, f32({2, 50000}), at({3, 1}), f32({3, 50000}));
    scatter("shared_tuples", nd, f32({200, 300}), at({30001, 2}), f32({30001}));
    scatter("shared_element_first", element(0), f32({70, 700}), at({90, 301}), f32({90, 301}));
    scatter("shared_element_middle", element(1), f32({9, 70, 120}), at({8, 40, 113}), f32({8, 40, 113}));
    scatter("shared_element_last", element(1), f32({40, 700}), at({35, 1001}), f32({35, 1001}));
    for (int64_t block : {2, 3, 4, 5, 7, 8, 12, 15, 16, 17, 31, 32, 48, 63, 64, 65, 131, 512})
        for (DataType t : {DataType::kFloat, DataType::kHalf, DataType::kInt8})
            scatter(fmt::format("nd_block_{}_{}", block, nameOf(t)), nd, input(t, {7, 3, block}), at({9, 2}),
                    input(t, {9, block}));
    for (DataType t : {DataType::kHalf, DataType::kInt8, DataType::kInt32, DataType::kBool, DataType::kUInt8}) {
        std::string const type = nameOf(t);
        scatter("element_" + type, element(1), input(t, {2, 5}), at({2, 4}), input(t, {2, 4}));
        scatter("nd_" + type, nd, input(t, {5, 3, 3}), at({4, 2}), input(t, {4, 3}));
    }
}

// Indices come from the op's domain: some twice, some outside.
void randomCase(CaseList& list, Draw& d, std::string const& name)
{
    Attrs a;
    Extents const x = d.extents(int(d.from(1, 4)), 20);
    Extents j, u;
    if (d.chance(50)) {
        a.axis = d.from(0, x.rank - 1);
        for (int i = 0; i < x.rank; ++i)
            u.push(i == a.axis ? d.size(30) : d.from(1, x[i]));
        j = u;
    } else {
        a.mode = Mode::kNd;
        int const k = int(d.from(1, x.rank)), more = int(d.from(0, 2));
        for (int i = 0; i < more; ++i)
            u.push(d.size(12));
        j = u;
        j.push(k);
        for (int i = k; i < x.rank; ++i)
            u.push(x[i]);
    }
    if (d.chance(40)) {
        a.reduction = Reduction(d.from(1, 4));
        DataType const t = d.chance(30) ? DataType::kInt32 : d.type();
        list.add(name, a, {input(t, x), input(DataType::kInt32, j), input(t, u)});
        return;
    }
    DataType const t = d.chance(30) ? DataType::kInt8 : d.type();
    list.add(name, a, {input(t, x), input(DataType::kInt32, j), input(t, u)});
}

} // namespace tw::ops::scatter
