// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"
#include "cases/draw.h"
#include "ops/fill/op.h"

namespace tw::ops::fill {

void randomCase(CaseList& list, Draw& d, std::string const& name)
{
    Attrs a;
    Extents const y = d.extents(int(d.from(1, 3)), 40);
    a.dims.assign(y.begin(), y.end());
    std::vector<double> steps;
    for (int i = 0; i < y.rank; ++i)
        steps.push_back(double(d.from(-3, 3)));
    DataType const t = d.chance(50) ? DataType::kInt32 : DataType::kFloat;
    list.add(name, a, {absent(), constant(t, {}, {double(d.from(-5, 5))}), constant(t, {y.rank}, steps)});
}

} // namespace tw::ops::fill
