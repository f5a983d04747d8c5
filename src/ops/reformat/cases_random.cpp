// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"
#include "cases/draw.h"
#include "ops/reformat/op.h"

namespace tw::ops::reformat {

void randomCase(CaseList& list, Draw& d, std::string const& name)
{
    static constexpr DataType kTypes[] = {DataType::kFloat, DataType::kHalf, DataType::kInt8, DataType::kInt32};
    list.add(name, Attrs(), {input(kTypes[d.from(0, std::size(kTypes) - 1)], d.extents(int(d.from(3, 4)), 40))});
}

} // namespace tw::ops::reformat
