// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"
#include "cases/draw.h"
#include "ops/activation/op.h"

namespace tw::ops::activation {

void randomCase(CaseList& list, Draw& d, std::string const& name)
{
    Attrs const a(Kind(d.from(0, kKindCount - 1)), float(d.from(1, 8)) / 8, float(d.from(1, 8)) / 8);
    list.add(name, a, {input(d.chance(20) ? DataType::kInt8 : d.type(), d.extents(int(d.from(1, 4)), 24))});
}

} // namespace tw::ops::activation
