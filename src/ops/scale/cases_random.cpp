// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"
#include "cases/draw.h"
#include "ops/scale/op.h"

namespace tw::ops::scale {

void randomCase(CaseList& list, Draw& d, std::string const& name)
{
    Extents const x = d.extents(int(d.from(1, 4)), 24);
    Attrs const a(Mode(d.from(0, 2)), int32_t(d.from(0, x.rank - 1)));
    int64_t count = a.mode == Mode::kUniform ? 1 : x[a.channelAxis];
    for (int i = a.channelAxis + 1; a.mode == Mode::kElementwise && i < x.rank; ++i)
        count *= x[i];
    DataType const t = d.type();
    std::vector<CaseInput> in{input(t, x)};
    for (int i = 0; i < 3; ++i) // shift, scale, power
        in.push_back(d.chance(i < 2 ? 70 : 30) ? constant(t, {count}) : absent());
    list.add(name, a, in);
}

} // namespace tw::ops::scale
