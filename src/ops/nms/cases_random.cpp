// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"
#include "cases/draw.h"
#include "ops/nms/op.h"

namespace tw::ops::nms {

void randomCase(CaseList& list, Draw& d, std::string const& name)
{
    Attrs a;
    a.format = BoxFormat(d.from(0, 1));
    if (d.chance(50))
        a.limit = d.from(1, 40);
    int64_t const n = d.from(1, 3), boxes = d.size(130), classes = d.from(1, 6);
    Extents const shape = d.chance(60) ? Extents{n, boxes, 4} : Extents{n, boxes, d.chance(50) ? classes : 1, 4};
    std::vector<CaseInput> in{input(d.type(), shape), input(d.type(), {n, boxes, classes}),
                              input(DataType::kInt32, {}, {double(d.from(0, 20))})};
    if (d.chance(70))
        in.push_back(f32({}, {double(d.from(0, 10)) / 10}));
    if (in.size() > 3 && d.chance(70))
        in.push_back(f32({}, {double(d.from(-3, 6))}));
    list.add(name, a, std::move(in));
}

} // namespace tw::ops::nms
