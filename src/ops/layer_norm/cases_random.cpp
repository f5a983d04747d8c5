// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "cases/cases.h"
#include "cases/draw.h"
#include "ops/layer_norm/op.h"

namespace tw::ops::layer_norm {

// Any set of dimensions; often those of a layer, group or instance norm.
void randomCase(CaseList& list, Draw& d, std::string const& name)
{
    Attrs a;
    Extents x = d.extents(int(d.from(2, 4)), d.chance(80) ? 24 : 60);
    int const last = x.rank - 1;
    DataType const t = d.type();
    a.axis = d.from(1, last);
    a.rms = d.chance(25);
    if (d.chance(50))
        a.kept = d.from(0, (1 << x.rank) - 1) & ~((2 << a.axis) - 1);
    if (d.chance(60)) {
        a.channel = d.chance(50) ? std::min(1, last) : last;
        if (d.chance(60) && a.isNormalized(int(a.channel))) {
            a.groups = d.from(1, 8);
            x[int(a.channel)] = a.groups * d.from(1, 12);
        }
    }
    int64_t n = a.channel >= 0 ? x[int(a.channel)] : 1;
    for (int i = 0; a.channel < 0 && i < x.rank; ++i)
        n *= a.isNormalized(i) ? x[i] : 1;
    a.hasGamma = d.chance(80);
    a.hasBeta = d.chance(80);
    if (d.chance(50))
        a.activation = activationOf(d);
    std::vector<CaseInput> in{input(t, x)};
    for (bool has : {a.hasGamma, a.hasBeta})
        if (has)
            in.push_back(constant(t, {n}));
    list.add(name, a, in);
}

} // namespace tw::ops::layer_norm
