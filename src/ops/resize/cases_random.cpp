// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"
#include "cases/draw.h"
#include "ops/resize/op.h"

namespace tw::ops::resize {

void randomCase(CaseList& list, Draw& d, std::string const& name)
{
    Attrs a;
    a.mode = Mode(d.from(0, 2));
    a.coordinates = Coordinates(d.from(0, 2));
    a.rounding = Rounding(d.from(0, 3));
    a.excludeOutside = a.mode == Mode::kCubic && d.chance(50);
    Extents const x = d.extents(4, 20);
    for (int i = 0; i < x.rank; ++i)
        a.outputDims.push_back(i >= 2 && d.chance(80) ? d.size(40) : x[i]);
    list.add(name, a, {input(d.type(), x)});
}

} // namespace tw::ops::resize
