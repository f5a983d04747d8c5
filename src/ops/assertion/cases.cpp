// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

#include "ops/assertion/op.h"

namespace tw::ops::assertion {

void cases(CaseList& list)
{
    list.add("holds", Attrs("all is well"), {constant(DataType::kBool, {3}, {1, 1, 1})}).isConstant = true;
    list.add("scalar", Attrs(), {constant(DataType::kBool, {}, {1})}).isConstant = true;
    list.add("empty", Attrs(), {constant(DataType::kBool, {0})}).isConstant = true;
}

} // namespace tw::ops::assertion
