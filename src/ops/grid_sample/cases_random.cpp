// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"
#include "cases/draw.h"
#include "ops/grid_sample/op.h"

namespace tw::ops::grid_sample {

void randomCase(CaseList& list, Draw& d, std::string const& name)
{
    Attrs a;
    a.interpolation = Interpolation(d.from(0, 2));
    a.outside = Outside(d.from(2, 4));
    a.alignCorners = d.chance(50);
    Extents const x{d.from(1, 3), d.size(12), d.size(20), d.size(20)};
    list.add(name, a, {input(d.type(), x), input(d.type(), {x[0], d.size(20), d.size(20), 2})});
}

} // namespace tw::ops::grid_sample
