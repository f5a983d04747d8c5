// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"
#include "cases/draw.h"
#include "ops/concatenation/op.h"

namespace tw::ops::concatenation {

void randomCase(CaseList& list, Draw& d, std::string const& name)
{
    static constexpr DataType kTypes[] = {DataType::kFloat, DataType::kHalf, DataType::kInt8,
                                          DataType::kInt32, DataType::kBool, DataType::kUInt8};
    Extents x = d.extents(int(d.from(1, 4)), 24);
    Attrs const a(int32_t(d.from(0, x.rank - 1)));
    DataType const t = kTypes[d.from(0, std::size(kTypes) - 1)];
    std::vector<CaseInput> in;
    for (int64_t parts = d.from(1, 5); parts > 0; --parts) {
        x[a.axis] = d.chance(10) ? 0 : d.size(40);
        in.push_back(d.chance(20) ? constant(t, x) : input(t, x));
    }
    list.add(name, a, in);
}

} // namespace tw::ops::concatenation
