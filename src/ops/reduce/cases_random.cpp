// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"
#include "cases/draw.h"
#include "ops/reduce/op.h"

namespace tw::ops::reduce {

void randomCase(CaseList& list, Draw& d, std::string const& name)
{
    Attrs a;
    Extents const x = d.extents(int(d.from(1, 4)), 24);
    a.kind = Kind(d.from(0, 4));
    a.axes = d.from(1, (1 << x.rank) - 1);
    a.keepDims = d.chance(50);
    list.add(name, a, {input(d.type(), x)});
}

} // namespace tw::ops::reduce
