// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"
#include "cases/draw.h"
#include "ops/gather/op.h"

namespace tw::ops::gather {

void randomCase(CaseList& list, Draw& d, std::string const& name)
{
    static constexpr DataType kTypes[] = {DataType::kFloat, DataType::kHalf, DataType::kInt8,
                                          DataType::kInt32, DataType::kBool, DataType::kUInt8};
    Attrs a;
    a.mode = Mode(d.from(0, 2));
    Extents const x = d.extents(int(d.from(1, 4)), 20);
    Extents j;
    if (a.mode == Mode::kNd) {
        for (int64_t more = d.from(0, 2); more > 0; --more)
            j.push(d.size(12));
        j.push(d.from(1, x.rank));
    } else {
        a.axis = d.from(0, x.rank - 1);
        if (a.mode == Mode::kDefault)
            j = d.extents(int(d.from(0, 2)), 12);
        else
            for (int i = 0; i < x.rank; ++i)
                j.push(i == a.axis ? d.size(24) : x[i]);
    }
    list.add(name, a, {input(kTypes[d.from(0, std::size(kTypes) - 1)], x), input(DataType::kInt32, j)});
}

} // namespace tw::ops::gather
