// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

#include "cases/draw.h"
#include "ops/cumulative_sum/op.h"

namespace tw::ops::cumulative_sum {

void cases(CaseList& list)
{
    auto sum = [&](std::string const& name, int64_t axis, bool exclusive, bool reverse, CaseInput x,
                   std::vector<std::vector<double>> expected = {}) {
        Attrs a;
        a.axis = axis;
        a.exclusive = exclusive;
        a.reverse = reverse;
        list.add(name, a, {std::move(x)}, std::move(expected));
    };
    CaseInput const x23 = f32({2, 3}, {1, 2, 3, 4, 5, 6});
    sum("by_hand", 1, false, false, x23, {{1, 3, 6, 4, 9, 15}});
    sum("first_axis_by_hand", 0, false, false, x23, {{1, 2, 3, 5, 7, 9}});
    sum("exclusive_by_hand", 1, true, false, x23, {{0, 1, 3, 0, 4, 9}});
    sum("reverse_by_hand", 1, false, true, x23, {{6, 5, 3, 15, 11, 6}});
    sum("reverse_exclusive_by_hand", 1, true, true, x23, {{5, 3, 0, 11, 6, 0}});
    sum("wraps", 0, false, false, input(DataType::kInt32, {3}, {2147483647, 1, -1}),
        {{2147483647, -2147483648.0, 2147483647}});
    sum("beyond_floats", 0, false, false, input(DataType::kInt32, {3}, {16777216, 1, 1}),
        {{16777216, 16777217, 16777218}});
    sum("infinity_stays_behind", 0, true, false, f32({4}, {1, INFINITY, 2, -INFINITY}), {{0, 1, INFINITY, INFINITY}});
    sum("empty", 1, false, false, f32({2, 0, 3}));
    sum("empty_lines", 0, false, false, f32({4, 0}));
    sum("one", 0, true, false, f32({1}, {7}), {{0}});
    for (DataType t : {DataType::kFloat, DataType::kHalf, DataType::kInt32})
        for (int way = 0; way < 4; ++way) {
            std::string const name =
                std::string(nameOf(t)) + (way & 1 ? "_exclusive" : "") + (way & 2 ? "_reverse" : "");
            for (int64_t n : {31, 32, 33, 127, 1023, 1024, 1025, 2500})
                sum(fmt::format("last_{}_{}", n, name), 1, way & 1, way & 2, input(t, {3, n}));
            sum("middle_" + name, 1, way & 1, way & 2, input(t, {2, 37, 19}));
            sum("first_" + name, 0, way & 1, way & 2, input(t, {9, 257}));
            sum("rank_4_" + name, 2, way & 1, way & 2, input(t, {2, 3, 5, 4}));
        }
    sum("many_lines", 1, false, false, f32({5000, 40}));
    sum("many_columns", 0, false, true, f32({70, 5000}));
    sum("few_long_columns", 0, false, false, f32({5000, 3}));
}

void randomCase(CaseList& list, Draw& d, std::string const& name)
{
    Attrs a;
    Extents const x = d.extents(int(d.from(1, 4)), 24);
    a.axis = d.from(0, x.rank - 1);
    a.exclusive = d.chance(50);
    a.reverse = d.chance(50);
    list.add(name, a, {input(d.chance(30) ? DataType::kInt32 : d.type(), x)});
}

} // namespace tw::ops::cumulative_sum
