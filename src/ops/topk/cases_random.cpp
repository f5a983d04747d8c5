// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"
#include "cases/draw.h"
#include "ops/topk/op.h"

namespace tw::ops::topk {

void randomCase(CaseList& list, Draw& d, std::string const& name)
{
    Attrs a;
    Extents const x = d.extents(int(d.from(1, 4)), 40);
    a.kind = Kind(d.from(0, 1));
    a.axis = d.from(0, x.rank - 1);
    a.k = d.from(1, x[int(a.axis)]);
    list.add(name, a, {input(d.chance(20) ? DataType::kInt8 : d.type(), x)});
}

} // namespace tw::ops::topk
