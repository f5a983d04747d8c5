// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"
#include "cases/draw.h"
#include "ops/identity/op.h"

namespace tw::ops::identity {

void randomCase(CaseList& list, Draw& d, std::string const& name)
{
    DataType from{}, to{};
    d.until([&] {
        from = DataType(d.from(0, kDataTypeCount - 1));
        to = DataType(d.from(0, kDataTypeCount - 1));
        return converts(from, to);
    });
    list.add(name, Attrs(to), {input(from, d.extents(int(d.from(0, 4)), 24))});
}

} // namespace tw::ops::identity
