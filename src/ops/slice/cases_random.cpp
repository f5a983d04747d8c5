// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"
#include "cases/draw.h"
#include "ops/slice/op.h"

namespace tw::ops::slice {

// Every mode; parts of x of a few elements, from anywhere in any direction, start and stride as attributes or inputs.
void randomCase(CaseList& list, Draw& d, std::string const& name)
{
    static constexpr DataType kTypes[] = {DataType::kFloat, DataType::kHalf, DataType::kInt8,
                                          DataType::kInt32, DataType::kBool, DataType::kUInt8};
    Attrs a;
    a.mode = Mode(d.from(0, int(Mode::kReflect)));
    DataType const t = kTypes[d.from(0, std::size(kTypes) - 1)];
    bool const anywhere = a.mode != Mode::kStrict;
    Extents x;
    for (int64_t rank = d.from(1, 4); x.rank < rank;) {
        int64_t const length = d.chance(20) ? 1 : d.chance(80) ? d.from(1, 6) : d.size(40);
        int64_t size = d.chance(5) ? 0 : d.chance(80) ? d.from(1, 5) : d.size(40), start = d.from(0, length - 1);
        int64_t stride = d.chance(40) ? 1 : d.from(-2, 2);
        if (d.chance(20)) // whole
            size = length, start = 0, stride = 1;
        else if (d.chance(30)) // one element, again and again
            stride = 0;
        else if (anywhere)
            start = d.from(-length - 2, 2 * length + 2);
        else if (stride != 0)
            size = std::min(size, (stride > 0 ? length - 1 - start : start) / std::abs(stride) + 1);
        x.push(length);
        a.start.push_back(start);
        a.size.push_back(size);
        a.stride.push_back(stride);
    }
    auto list32 = [&](std::vector<int64_t> const& v) {
        return constant(DataType::kInt32, {int64_t(v.size())}, std::vector<double>(v.begin(), v.end()));
    };
    std::vector<CaseInput> in{input(t, x), absent(), absent(), absent(), absent()};
    if (d.chance(20))
        in[1] = list32(a.start);
    if (d.chance(20))
        in[3] = list32(a.stride);
    if (a.mode == Mode::kFill && d.chance(50))
        in[4] = input(t, {}, {1});
    list.add(name, a, in);
}

} // namespace tw::ops::slice
