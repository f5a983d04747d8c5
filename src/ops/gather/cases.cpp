// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

#include "cases/draw.h"
#include "ops/gather/op.h"

namespace tw::ops::gather {

void cases(CaseList& list)
{
    auto gather = [&](std::string const& name, Mode mode, int64_t axis, int64_t n, CaseInput x, CaseInput j,
                      std::vector<std::vector<double>> expected = {}) {
        Attrs a;
        a.axis = axis;
        a.mode = mode;
        a.elementWiseDims = n;
        list.add(name, a, {std::move(x), std::move(j)}, std::move(expected));
    };
    auto at = [](Extents const& dims, std::vector<double> v = {}) {
        return input(DataType::kInt32, dims, std::move(v));
    };
    CaseInput const x23 = f32({2, 3}, {1, 2, 3, 4, 5, 6});
    gather("by_hand", Mode::kDefault, 1, 0, x23, at({2}, {2, 0}), {{3, 1, 6, 4}});
    gather("negative_and_outside", Mode::kDefault, 1, 0, x23, at({4}, {-1, 3, -3, -4}), {{3, 0, 1, 0, 6, 0, 4, 0}});
    gather("element_by_hand", Mode::kElement, 1, 0, x23, at({2, 2}, {2, 0, -1, 7}), {{3, 1, 6, 0}});
    gather("nd_by_hand", Mode::kNd, 0, 0, x23, at({3, 2}, {1, 2, 0, -1, 2, 0}), {{6, 3, 0}});
    gather("nd_rows_by_hand", Mode::kNd, 0, 0, x23, at({2, 1}, {1, 5}), {{4, 5, 6, 0, 0, 0}});
    gather("scalar_index", Mode::kDefault, 0, 0, x23, at({}, {1}), {{4, 5, 6}});
    gather("extreme_indices", Mode::kDefault, 0, 0, f32({2}, {1, 2}), at({2}, {-2147483648.0, 2147483647.0}), {{0, 0}});
    gather("axis_0", Mode::kDefault, 0, 0, f32({5, 7}), at({3, 2}));
    gather("axis_middle", Mode::kDefault, 1, 0, f32({3, 5, 4}), at({2, 3}));
    gather("axis_last", Mode::kDefault, 2, 0, f32({3, 2, 6}), at({9}));
    gather("batch", Mode::kDefault, 1, 1, f32({3, 5, 2, 2}), at({3, 4}));
    gather("batch_axis_2", Mode::kDefault, 2, 1, f32({3, 2, 5, 2}), at({3, 4}));
    gather("batch_one_index_each", Mode::kDefault, 1, 1, f32({3, 5, 2}), at({3}));
    gather("batch_broadcast_data", Mode::kDefault, 1, 1, f32({1, 5, 2}), at({3, 4}));
    gather("batch_broadcast_indices", Mode::kDefault, 1, 1, f32({3, 5, 2}), at({1, 4}));
    gather("no_indices", Mode::kDefault, 1, 0, x23, at({0}), {{}});
    gather("empty_axis", Mode::kDefault, 1, 0, f32({2, 0}), at({2}, {0, -1}), {{0, 0, 0, 0}});
    gather("empty_block", Mode::kDefault, 0, 0, f32({2, 0}), at({3}));
    gather("element_axis_0", Mode::kElement, 0, 0, f32({4, 3, 5}), at({2, 3, 5}));
    gather("element_axis_1", Mode::kElement, 1, 0, f32({4, 3, 5}), at({3, 7, 4}));
    gather("element_axis_2", Mode::kElement, 2, 0, f32({4, 3, 5}), at({4, 3, 9}));
    gather("element_1d", Mode::kElement, 0, 0, f32({4}), at({6}));
    gather("nd_all", Mode::kNd, 0, 0, f32({3, 4, 2}), at({5, 3}));
    gather("nd_block", Mode::kNd, 0, 0, f32({3, 4, 2, 5}), at({2, 3, 2}));
    gather("nd_batch", Mode::kNd, 0, 1, f32({3, 4, 2, 5}), at({3, 6, 2}));
    gather("nd_batch_2", Mode::kNd, 0, 2, f32({3, 2, 4, 5}), at({3, 2, 1}));
    gather("nd_1d_indices", Mode::kNd, 0, 0, f32({3, 4}), at({2}));
    // Rows distributed among workers; blocks of all the widths that are copied in ways of their own.
    gather("shared_rows", Mode::kDefault, 0, 0, f32({300, 768}), at({1, 70}));
    gather("shared_elements", Mode::kDefault, 1, 0, f32({2, 5000}), at({20011}));
    gather("shared_element_mode", Mode::kElement, 0, 0, f32({70, 700}), at({90, 301}));
    gather("shared_element_mode_last", Mode::kElement, 1, 0, f32({40, 700}), at({35, 1001}));
    gather("shared_nd", Mode::kNd, 0, 1, f32({3, 50, 7, 5}), at({3, 3001, 2}));
    gather("shared_nd_all", Mode::kNd, 0, 0, f32({50, 7}), at({30001, 2}));
    for (int64_t block : {2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 127, 128, 131, 200, 512, 515, 1029}) {
        gather(fmt::format("bytes_{}", block), Mode::kDefault, 1, 0, input(DataType::kInt8, {2, 9, block}), at({23}));
        gather(fmt::format("floats_{}", block), Mode::kNd, 0, 0, f32({3, 3, block}), at({23, 2}));
    }
    for (int64_t n : {7, 8, 9, 15, 16, 17, 33}) {
        gather(fmt::format("elements_{}", n), Mode::kDefault, 1, 0, f32({2, 11}), at({n}));
        gather(fmt::format("element_mode_{}", n), Mode::kElement, 0, 0, f32({5, 40}), at({7, n}));
    }
    for (int64_t n : {5, 64, 1001})
        for (DataType t : {DataType::kFloat, DataType::kHalf, DataType::kInt8}) {
            std::string const which = fmt::format("{}_{}", n, nameOf(t));
            gather("innermost_" + which, Mode::kDefault, 2, 0, input(t, {3, 2, n}), at({2, 515}));
            gather("odd_rows_" + which, Mode::kDefault, 1, 0, input(t, {2, 6, n / 2 * 2 + 1}), at({13}));
            gather("innermost_few_" + which, Mode::kDefault, 1, 0, input(t, {3, n * 4}), at({3}));
        }
    for (DataType t : {DataType::kFloat, DataType::kHalf, DataType::kInt8}) { // columns
        gather(std::string("innermost_one_") + nameOf(t), Mode::kDefault, 2, 0, input(t, {3, 700, 2}), at({}, {1}));
        gather(std::string("innermost_four_") + nameOf(t), Mode::kDefault, 2, 0, input(t, {3, 41, 5}),
               at({4}, {-1, 5, 0, 2}));
        gather(std::string("innermost_batch_") + nameOf(t), Mode::kDefault, 2, 1, input(t, {3, 41, 5}), at({3, 2}));
    }
    gather("odd_rows_large", Mode::kDefault, 0, 0, input(DataType::kHalf, {300, 75}), at({30001}));
    gather("nd_odd_rows", Mode::kNd, 0, 1, input(DataType::kHalf, {3, 6, 5, 71}), at({3, 19, 2}));
    for (DataType t : {DataType::kFloat, DataType::kHalf, DataType::kInt8})
        for (int64_t rows : {1, 7, 8, 300})
            gather(fmt::format("innermost_rows_{}_{}", rows, nameOf(t)), Mode::kDefault, 1, 0, input(t, {rows, 208}),
                   at({1040}));
    gather("innermost_ring_f16", Mode::kDefault, 1, 0, input(DataType::kHalf, {25, 12000}), at({12008}));
    gather("innermost_ring_i8", Mode::kDefault, 1, 0, input(DataType::kInt8, {9, 40000}), at({70032}));
    gather("innermost_ring_f32", Mode::kDefault, 1, 0, f32({140, 40000}), at({40004}));
    gather("innermost_long", Mode::kDefault, 1, 0, input(DataType::kHalf, {3, 30000}), at({40001}));
    gather("innermost_outside", Mode::kDefault, 1, 0, f32({2, 3}, {1, 2, 3, 4, 5, 6}), at({5}, {-1, 3, -3, -4, 2}),
           {{3, 0, 1, 0, 3, 6, 0, 4, 0, 6}});
    gather("element_empty_axis", Mode::kElement, 0, 0, f32({0, 3}), at({2, 3}));
    gather("extreme_many", Mode::kElement, 1, 0, f32({1, 3}, {1, 2, 3}),
           at({1, 9}, {-2147483648.0, 2147483647.0, -3, -4, 2, 3, -1, 0, -2147483647.0}),
           {{0, 0, 1, 0, 3, 0, 3, 1, 0}});
    for (DataType t : {DataType::kHalf, DataType::kInt8, DataType::kInt32, DataType::kBool, DataType::kUInt8}) {
        std::string const type = nameOf(t);
        gather("default_" + type, Mode::kDefault, 1, 0, input(t, {2, 5, 3}), at({4}));
        gather("element_" + type, Mode::kElement, 1, 0, input(t, {2, 5}), at({2, 4}));
        gather("nd_" + type, Mode::kNd, 0, 0, input(t, {2, 5, 3}), at({4, 2}));
    }
}

void randomCase(CaseList& list, Draw& d, std::string const& name)
{
    static constexpr DataType kTypes[] = {DataType::kFloat, DataType::kHalf, DataType::kInt8,
                                          DataType::kInt32, DataType::kBool, DataType::kUInt8};
    Attrs a;
    a.mode = Mode(d.from(0, 2));
    Extents const x = d.extents(int(d.from(1, 4)), 20);
    Extents j;
    if (a.mode == Mode::kNd) {
        for (int64_t more = d.from(0, 2); more > 0; --more)
            j.push(d.size(12));
        j.push(d.from(1, x.rank));
    } else {
        a.axis = d.from(0, x.rank - 1);
        if (a.mode == Mode::kDefault)
            j = d.extents(int(d.from(0, 2)), 12);
        else
            for (int i = 0; i < x.rank; ++i)
                j.push(i == a.axis ? d.size(24) : x[i]);
    }
    list.add(name, a, {input(kTypes[d.from(0, std::size(kTypes) - 1)], x), input(DataType::kInt32, j)});
}

} // namespace tw::ops::gather
