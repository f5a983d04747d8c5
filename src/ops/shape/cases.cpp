// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

#include "ops/shape/op.h"

namespace tw::ops::shape {

void cases(CaseList& list)
{
    list.add("by_hand", ir::NoAttrs{}, {f32({2, 3, 5})}, {{2, 3, 5}});
    list.add("scalar", ir::NoAttrs{}, {f32({})}, {{}});
    list.add("empty", ir::NoAttrs{}, {input(DataType::kInt8, {4, 0})}, {{4, 0}});
    list.add("rank_8", ir::NoAttrs{}, {input(DataType::kBool, {1, 2, 1, 2, 1, 2, 1, 3})}, {{1, 2, 1, 2, 1, 2, 1, 3}});
    list.add("half", ir::NoAttrs{}, {input(DataType::kHalf, {7})}, {{7}});
    list.add("of_shape_tensor", ir::NoAttrs{}, {input(DataType::kInt32, {3})}, {{3}});
}

} // namespace tw::ops::shape
