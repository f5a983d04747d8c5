// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

#include <limits>

#include "cases/draw.h"
#include "ops/identity/op.h"

namespace tw::ops::identity {

void cases(CaseList& list)
{
    double const nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
    std::vector<double> const x{1.75, -1.75, 0, -0.25, 300, -300, 3e9, -3e9, nan, inf};
    double const lo = -2147483648.0, hi = 2147483647.0;
    list.add("f32_to_i32_by_hand", Attrs(DataType::kInt32), {f32({10}, x)}, {{1, -1, 0, 0, 300, -300, hi, lo, 0, hi}});
    list.add("f32_to_u8_by_hand", Attrs(DataType::kUInt8), {f32({10}, x)}, {{1, 0, 0, 0, 255, 0, 255, 0, 0, 255}});
    list.add("f32_to_b_by_hand", Attrs(DataType::kBool), {f32({10}, x)}, {{1, 1, 0, 1, 1, 1, 1, 1, 1, 1}});
    list.add("f32_to_f16_by_hand", Attrs(DataType::kHalf), {f32({4}, {1.0 + 0x1p-11, 1.0 + 3 * 0x1p-11, 65520, -1e-9})},
             {{1, 1.0 + 0x1p-9, inf, 0}});
    list.add("i32_to_f32_by_hand", Attrs(DataType::kFloat), {input(DataType::kInt32, {3}, {16777217, 16777219, lo})},
             {{16777216, 16777220, lo}});
    list.add("i32_to_b_by_hand", Attrs(DataType::kBool), {input(DataType::kInt32, {4}, {0, 1, -256, lo})},
             {{0, 1, 1, 1}});
    for (int from = 0; from < kDataTypeCount; ++from)
        for (int to = 0; to < kDataTypeCount; ++to)
            if (converts(DataType(from), DataType(to)))
                list.add(std::string(nameOf(DataType(from))) + "_to_" + nameOf(DataType(to)), Attrs(DataType(to)),
                         {input(DataType(from), {3, 7, 29})});
    for (DataType t : {DataType::kInt32, DataType::kHalf, DataType::kBool}) {
        std::string const name = nameOf(t);
        list.add("long_f32_to_" + name, Attrs(t), {f32({3, 20011})});
        list.add("long_" + name + "_to_f32", Attrs(DataType::kFloat), {input(t, {3, 20011})});
    }
    list.add("f16_to_f32_by_hand", Attrs(DataType::kFloat), {input(DataType::kHalf, {5}, {1.5, -inf, nan, 6e-8, -0.0})},
             {{1.5, -inf, nan, 0x1p-24, 0}});
    list.add("same", Attrs(), {f32({2, 300})});
    list.add("scalar", Attrs(DataType::kInt32), {f32({})});
    list.add("empty", Attrs(DataType::kHalf), {f32({0, 3})});
}

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
