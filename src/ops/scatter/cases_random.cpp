// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"
#include "cases/draw.h"
#include "ops/scatter/op.h"

namespace tw::ops::scatter {

// Indices come from the op's domain: some twice, some outside.
void randomCase(CaseList& list, Draw& d, std::string const& name)
{
    Attrs a;
    Extents const x = d.extents(int(d.from(1, 4)), 20);
    Extents j, u;
    if (d.chance(50)) {
        a.axis = d.from(0, x.rank - 1);
        for (int i = 0; i < x.rank; ++i)
            u.push(i == a.axis ? d.size(30) : d.from(1, x[i]));
        j = u;
    } else {
        a.mode = Mode::kNd;
        int const k = int(d.from(1, x.rank)), more = int(d.from(0, 2));
        for (int i = 0; i < more; ++i)
            u.push(d.size(12));
        j = u;
        j.push(k);
        for (int i = k; i < x.rank; ++i)
            u.push(x[i]);
    }
    if (d.chance(40)) {
        a.reduction = Reduction(d.from(1, 4));
        DataType const t = d.chance(30) ? DataType::kInt32 : d.type();
        list.add(name, a, {input(t, x), input(DataType::kInt32, j), input(t, u)});
        return;
    }
    DataType const t = d.chance(30) ? DataType::kInt8 : d.type();
    list.add(name, a, {input(t, x), input(DataType::kInt32, j), input(t, u)});
}

} // namespace tw::ops::scatter
