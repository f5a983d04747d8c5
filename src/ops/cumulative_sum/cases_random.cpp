// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"
#include "cases/draw.h"
#include "ops/cumulative_sum/op.h"

namespace tw::ops::cumulative_sum {

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
