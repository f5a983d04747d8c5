// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"
#include "cases/draw.h"
#include "ops/parametric_relu/op.h"

namespace tw::ops::parametric_relu {

void randomCase(CaseList& list, Draw& d, std::string const& name)
{
    Extents const x = d.extents(int(d.from(1, 4)), 24);
    Extents slope = x;
    for (int i = 0; i < x.rank; ++i)
        if (d.chance(50))
            slope[i] = 1;
    DataType const t = d.chance(20) ? DataType::kInt8 : d.type();
    list.add(name, ir::NoAttrs(), {input(t, x), d.chance(70) ? constant(t, slope) : input(t, slope)});
}

} // namespace tw::ops::parametric_relu
