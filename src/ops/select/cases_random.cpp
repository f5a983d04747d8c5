// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"
#include "cases/draw.h"
#include "ops/select/op.h"

namespace tw::ops::select {

void randomCase(CaseList& list, Draw& d, std::string const& name)
{
    static constexpr DataType kTypes[] = {DataType::kFloat, DataType::kHalf, DataType::kInt8, DataType::kInt32,
                                          DataType::kBool};
    DataType const t = kTypes[d.from(0, std::size(kTypes) - 1)];
    Extents const y = d.extents(int(d.from(0, 4)), 24);
    auto broadcast = [&] {
        Extents x = y;
        for (int i = 0; i < x.rank; ++i)
            if (d.chance(20))
                x[i] = 1;
        return x;
    };
    list.add(name, ir::NoAttrs(), {input(DataType::kBool, broadcast()), input(t, broadcast()), input(t, broadcast())});
}

} // namespace tw::ops::select
