// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"
#include "cases/draw.h"
#include "ops/rotary/op.h"

namespace tw::ops::rotary {

void randomCase(CaseList& list, Draw& d, std::string const& name)
{
    Attrs a;
    a.interleaved = d.chance(50);
    Extents const x = d.extents(int(d.from(1, 5)), 20);
    Extents whole = x;
    int const last = x.rank - 1;
    whole[last] += 1;
    a.size = 2 * d.from(1, whole[last] / 2);
    DataType const t = d.type();
    auto angles = [&] {
        Extents w = whole;
        for (int i = 0; i < last; ++i)
            if (d.chance(50))
                w[i] = 1;
        w[last] = d.chance(50) ? a.size : a.size / 2;
        return d.chance(50) ? constant(t, w) : input(t, w);
    };
    CaseInput const c = angles(), s = angles();
    list.add(name, a, {input(t, whole), c, s});
}

} // namespace tw::ops::rotary
