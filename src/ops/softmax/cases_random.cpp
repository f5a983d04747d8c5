// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"
#include "cases/draw.h"
#include "ops/softmax/op.h"

namespace tw::ops::softmax {

void randomCase(CaseList& list, Draw& d, std::string const& name)
{
    Attrs a;
    Extents const x = d.extents(int(d.from(1, 4)), 24);
    a.axis = d.chance(50) ? x.rank - 1 : d.from(0, x.rank - 1);
    a.log = d.chance(30);
    list.add(name, a, {input(d.type(), x)});
}

} // namespace tw::ops::softmax
