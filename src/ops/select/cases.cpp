// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

#include "cases/draw.h"
#include "ops/select/op.h"

namespace tw::ops::select {

void cases(CaseList& list)
{
    auto bools = [](Extents const& e, std::vector<double> v = {}) { return input(DataType::kBool, e, std::move(v)); };
    Attrs const none;
    list.add("by_hand", none, {bools({2, 2}, {1, 0, 0, 1}), f32({2, 2}, {1, 2, 3, 4}), f32({2, 2}, {5, 6, 7, 8})},
             {{1, 6, 7, 4}});
    list.add("broadcast_by_hand", none, {bools({1, 2}, {1, 0}), f32({2, 1}, {1, 2}), f32({1, 1}, {9})}, {{1, 9, 2, 9}});
    for (DataType t : {DataType::kFloat, DataType::kHalf, DataType::kInt8, DataType::kInt32, DataType::kBool}) {
        std::string const name = nameOf(t);
        list.add("equal_" + name, none, {bools({3, 5, 21}), input(t, {3, 5, 21}), input(t, {3, 5, 21})});
        list.add("row_condition_" + name, none, {bools({3, 1, 1}), input(t, {3, 5, 21}), input(t, {1, 5, 21})});
        list.add("scalar_branch_" + name, none, {bools({2, 300}), input(t, {1, 1}), input(t, {2, 300})});
    }
    for (DataType t : {DataType::kFloat, DataType::kHalf, DataType::kInt8, DataType::kBool})
        for (int64_t n : {1, 7, 15, 17, 31, 33, 63, 65, 129}) { // below and above the vectors' widths
            std::string const name = fmt::format("_{}_{}", n, nameOf(t));
            list.add("width" + name, none, {bools({2, n}), input(t, {2, n}), input(t, {2, n})});
            list.add("row_of_each" + name, none, {bools({5, n}), input(t, {5, 1}), input(t, {1, n})});
            list.add("one_condition" + name, none, {bools({4, 1}), input(t, {4, n}), input(t, {4, 1})});
        }
    list.add("long_rows", none, {bools({1, 1, 70, 701}), f32({1, 3, 70, 701}), f32({1, 1, 1, 1})});
    list.add("many_rows", none, {bools({900, 1, 31}), f32({900, 3, 31}), f32({1, 3, 1})});
    list.add("every_axis_differs", none, {bools({1, 3, 4}), f32({2, 1, 4}), f32({2, 3, 1})});
    list.add("scalar", none, {bools({}), f32({}), f32({})});
    list.add("empty", none, {bools({2, 0}), f32({2, 1}), f32({1, 1})});
}

void randomCase(CaseList& list, Draw& d, std::string const& name)
{
    static constexpr DataType kTypes[] = {DataType::kFloat, DataType::kHalf, DataType::kInt8, DataType::kInt32,
                                          DataType::kBool};
    DataType const t = kTypes[d.from(0, std::size(kTypes) - 1)];
    Extents const y = d.extents(int(d.from(0, 4)), 24);
    auto broadcast = [&] {
        Extents x = y;
        for (int i = 0; i < x.rank; ++i)
            if (d.chance(20))
                x[i] = 1;
        return x;
    };
    list.add(name, ir::NoAttrs(), {input(DataType::kBool, broadcast()), input(t, broadcast()), input(t, broadcast())});
}

} // namespace tw::ops::select
