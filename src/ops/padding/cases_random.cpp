// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"
#include "cases/draw.h"
#include "ops/padding/op.h"

namespace tw::ops::padding {

void randomCase(CaseList& list, Draw& d, std::string const& name)
{
    Attrs a;
    Extents const x = d.extents(int(d.from(3, 4)), 24);
    for (size_t i = 0; i < 2; ++i) {
        int64_t const size = x[x.rank - 2 + int(i)];
        a.pre[i] = d.from(-(size / 2), 5); // negative: cropped
        a.post[i] = d.from(-(size / 2), 5);
    }
    list.add(name, a, {input(d.type(), x)});
}

} // namespace tw::ops::padding
