// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"
#include "cases/draw.h"
#include "ops/one_hot/op.h"

namespace tw::ops::one_hot {

void randomCase(CaseList& list, Draw& d, std::string const& name)
{
    static constexpr DataType kTypes[] = {DataType::kFloat, DataType::kHalf, DataType::kInt8, DataType::kInt32,
                                          DataType::kBool};
    Extents const j = d.extents(int(d.from(0, 3)), 20);
    int64_t const depth = d.from(1, 9);
    list.add(name, Attrs(int32_t(d.from(-j.rank - 1, j.rank))),
             {input(DataType::kInt32, j), input(kTypes[d.from(0, std::size(kTypes) - 1)], {2}, {0, 1}),
              constant(DataType::kInt32, {}, {double(depth)})});
}

} // namespace tw::ops::one_hot
