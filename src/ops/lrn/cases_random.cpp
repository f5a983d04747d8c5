// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"
#include "cases/draw.h"
#include "ops/lrn/op.h"

namespace tw::ops::lrn {

void randomCase(CaseList& list, Draw& d, std::string const& name)
{
    Attrs a;
    a.window = 2 * d.from(0, 7) + 1;
    a.alpha = float(d.from(0, 8)) / 4;
    a.beta = float(d.from(1, 8)) / 4;
    a.k = float(d.from(1, 8)) / 4;
    list.add(name, a, {input(d.type(), d.extents(int(d.from(3, 4)), 24))});
}

} // namespace tw::ops::lrn
