// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"
#include "cases/draw.h"
#include "ops/unary/op.h"

namespace tw::ops::unary {

void randomCase(CaseList& list, Draw& d, std::string const& name)
{
    Attrs const a(Operation(d.from(0, kOperationCount - 1)));
    DataType const t = a.operation == Operation::kNot                    ? DataType::kBool
                       : a.operation == Operation::kSign && d.chance(30) ? DataType::kInt32
                                                                         : d.type();
    list.add(name, a, {input(t, d.extents(int(d.from(0, 4)), 24))});
}

} // namespace tw::ops::unary
