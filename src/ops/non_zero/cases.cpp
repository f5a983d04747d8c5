// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

#include "cases/draw.h"
#include "ops/non_zero/op.h"

namespace tw::ops::non_zero {

void cases(CaseList& list)
{
    list.add("by_hand", ir::NoAttrs{}, {f32({2, 3}, {0, 5, 0, -1, 0, 0.5})}, {{0, 1, 1, 1, 0, 2}});
    list.add("none", ir::NoAttrs{}, {f32({2, 2}, {0, -0.0, 0, 0})}, {{}});
    list.add("all", ir::NoAttrs{}, {f32({3}, {1, NAN, INFINITY})}, {{0, 1, 2}});
    list.add("scalar", ir::NoAttrs{}, {f32({}, {3})}, {{}});
    list.add("empty", ir::NoAttrs{}, {f32({3, 0})}, {{}});
    list.add("rank_8", ir::NoAttrs{}, {f32({2, 1, 3, 2, 1, 2, 2, 2})});
    for (DataType t :
         {DataType::kFloat, DataType::kHalf, DataType::kInt8, DataType::kInt32, DataType::kBool, DataType::kUInt8})
        list.add(std::string("type_") + nameOf(t), ir::NoAttrs{}, {input(t, {3, 4, 5})});
    list.add("half_negative_zero", ir::NoAttrs{}, {input(DataType::kHalf, {4}, {-0.0, 0, 6e-8, -1})}, {{2, 3}});
}

void randomCase(CaseList& list, Draw& d, std::string const& name)
{
    static constexpr DataType kTypes[] = {DataType::kFloat, DataType::kHalf, DataType::kInt8, DataType::kInt32,
                                          DataType::kBool};
    list.add(name, ir::NoAttrs(), {input(kTypes[d.from(0, std::size(kTypes) - 1)], d.extents(int(d.from(1, 4)), 24))});
}

} // namespace tw::ops::non_zero
