// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

#include "cases/draw.h"
#include "ops/one_hot/op.h"

namespace tw::ops::one_hot {

void cases(CaseList& list)
{
    auto i32 = [](Extents const& e, std::vector<double> v = {}) { return input(DataType::kInt32, e, std::move(v)); };
    auto depth = [](double d) { return constant(DataType::kInt32, {}, {d}); };
    list.add("by_hand", Attrs(-1), {i32({3}, {1, -1, 5}), f32({2}, {0.5, 2}), depth(3)},
             {{0.5, 2, 0.5, 0.5, 0.5, 2, 0.5, 0.5, 0.5}});
    list.add("axis0_by_hand", Attrs(0), {i32({2}, {1, 0}), f32({2}, {0, 1}), depth(2)}, {{0, 1, 1, 0}});
    list.add("extreme_indices_by_hand", Attrs(1),
             {i32({4}, {-2147483648.0, 2147483647.0, -3, 2}), f32({2}, {0, 1}), depth(2)}, {{0, 0, 0, 0, 0, 0, 0, 0}});
    for (DataType t : {DataType::kFloat, DataType::kHalf, DataType::kInt8, DataType::kInt32, DataType::kBool})
        for (int axis = -4; axis <= 3; ++axis)
            list.add(fmt::format("{}_axis{}", nameOf(t), axis + 4), Attrs(axis),
                     {i32({2, 3, 5}), input(t, {2}, {0, 1}), depth(4)});
    list.add("scalar_index", Attrs(-1), {i32({}, {2}), f32({2}), depth(7)});
    list.add("depth_of_one", Attrs(1), {i32({4, 3}, {0, 1, -1, 0, 0, 2, 0, -2, 0, 0, 1, 0}), f32({2}), depth(1)});
    list.add("depth_in_a_vector", Attrs(1), {i32({4, 3}), f32({2}), constant(DataType::kInt32, {1}, {5})});
    list.add("empty", Attrs(0), {i32({0, 3}), f32({2}), depth(4)});
}

void randomCase(CaseList& list, Draw& d, std::string const& name)
{
    static constexpr DataType kTypes[] = {DataType::kFloat, DataType::kHalf, DataType::kInt8, DataType::kInt32,
                                          DataType::kBool};
    Extents const j = d.extents(int(d.from(0, 3)), 20);
    int64_t const depth = d.from(1, 9);
    list.add(name, Attrs(int32_t(d.from(-j.rank - 1, j.rank))),
             {input(DataType::kInt32, j), input(kTypes[d.from(0, std::size(kTypes) - 1)], {2}, {0, 1}),
              constant(DataType::kInt32, {}, {double(depth)})});
}

} // namespace tw::ops::one_hot
