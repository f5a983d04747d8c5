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
    DataType const t = d.type();
    if (isFloating(t) && d.chance(50)) {
        a.before = Before(d.from(0, 3));
        a.after = After(d.from(0, 2));
        if (a.isLogSumExp()) {
            a.kind = Kind::kSum;
            a.after = After::kLog;
        }
    }
    list.add(name, a, {input(t, x)});
}

} // namespace tw::ops::reduce
