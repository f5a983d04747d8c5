// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"
#include "cases/draw.h"
#include "ops/elementwise/op.h"

namespace tw::ops::elementwise {

void randomCase(CaseList& list, Draw& d, std::string const& name)
{
    Attrs a;
    a.operation = Operation(d.from(0, 5)); // those of floats without a domain of their own, and kDiv
    Extents x = d.extents(int(d.from(1, 4)), 20), y = x;
    for (int i = 0; i < x.rank; ++i)
        if (d.chance(30))
            (d.chance(50) ? x : y)[i] = 1;
    DataType const t = d.type();
    list.add(name, a, {input(t, x), d.chance(30) ? constant(t, y) : input(t, y)});
}

} // namespace tw::ops::elementwise
