// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

#include <limits>

#include "cases/draw.h"
#include "ops/parametric_relu/op.h"

namespace tw::ops::parametric_relu {

void cases(CaseList& list)
{
    Attrs const none;
    list.add("by_hand", none, {f32({2, 3}, {-1, 2, -3, 4, -5, 0}), f32({1, 3}, {0.5, 0.5, 2})},
             {{-0.5, 2, -6, 4, -2.5, 0}});
    list.add("slope_is_larger", none, {f32({1, 2}, {-1, 3}), f32({2, 1}, {2, -1})}, {{-2, 3, 1, 3}});
    list.add("i8_by_hand", none,
             {input(DataType::kInt8, {4}, {-100, -3, 5, -128}), input(DataType::kInt8, {4}, {2, 3, 9, -1})},
             {{-128, -9, 5, 127}});
    double const inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
    list.add("specials", none, {f32({5}, {nan, -inf, inf, -2, 3}), f32({5}, {2, 0.5, -1, nan, nan})},
             {{nan, -inf, inf, nan, 3}});
    list.add("x_is_broadcast", none, {f32({1, 20, 1, 1}), f32({2, 20, 3, 5})});
    list.add("pixel_slopes", none, {f32({2, 17, 5, 7}), f32({1, 1, 5, 7})});
    list.add("large", none, {f32({2, 40, 60, 61}), f32({1, 40, 1, 1})});
    for (DataType t : {DataType::kFloat, DataType::kHalf, DataType::kInt8}) {
        std::string const name = nameOf(t);
        list.add("equal_" + name, none, {input(t, {2, 3, 101}), input(t, {2, 3, 101})});
        list.add("channel_" + name, none, {input(t, {2, 3, 5, 7}), input(t, {1, 3, 1, 1})});
        list.add("one_slope_" + name, none, {input(t, {2, 300}), input(t, {1, 1})});
    }
    list.add("scalar", none, {f32({}), f32({})});
    list.add("empty", none, {f32({0, 3}), f32({1, 3})});
}

void randomCase(CaseList& list, Draw& d, std::string const& name)
{
    Extents const x = d.extents(int(d.from(1, 4)), 24);
    Extents slope = x;
    for (int i = 0; i < x.rank; ++i)
        if (d.chance(50))
            slope[i] = 1;
    DataType const t = d.chance(20) ? DataType::kInt8 : d.type();
    list.add(name, ir::NoAttrs(), {input(t, x), d.chance(70) ? constant(t, slope) : input(t, slope)});
}

} // namespace tw::ops::parametric_relu
