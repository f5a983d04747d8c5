// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"
#include "cases/draw.h"
#include "ops/layer_norm/op.h"

namespace tw::ops::layer_norm {

void randomCase(CaseList& list, Draw& d, std::string const& name)
{
    Attrs a;
    Extents const x = d.extents(int(d.from(2, 4)), 40);
    DataType const t = d.type();
    a.axis = d.from(1, x.rank - 1);
    int64_t n = 1;
    for (int i = int(a.axis); i < x.rank; ++i)
        n *= x[i];
    a.hasGamma = d.chance(80);
    a.hasBeta = d.chance(80);
    std::vector<CaseInput> in{input(t, x)};
    for (bool has : {a.hasGamma, a.hasBeta})
        if (has)
            in.push_back(constant(t, {n}));
    list.add(name, a, in);
}

} // namespace tw::ops::layer_norm
