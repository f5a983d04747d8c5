// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"
#include "cases/draw.h"
#include "ops/non_zero/op.h"

namespace tw::ops::non_zero {

void randomCase(CaseList& list, Draw& d, std::string const& name)
{
    static constexpr DataType kTypes[] = {DataType::kFloat, DataType::kHalf, DataType::kInt8, DataType::kInt32,
                                          DataType::kBool};
    list.add(name, ir::NoAttrs(), {input(kTypes[d.from(0, std::size(kTypes) - 1)], d.extents(int(d.from(1, 4)), 24))});
}

} // namespace tw::ops::non_zero
