// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

#include "cases/draw.h"
#include "ops/dequantize/op.h"

namespace tw::ops::dequantize {

void cases(CaseList& list)
{
    constexpr DataType kInt8 = DataType::kInt8, kHalf = DataType::kHalf;
    auto scale = [](Extents const& e, std::vector<double> v) { return constant(DataType::kFloat, e, std::move(v)); };
    list.add("by_hand", Attrs(), {input(kInt8, {5}, {-128, -1, 0, 3, 127}), scale({}, {0.5})},
             {{-64, -0.5, 0, 1.5, 63.5}});
    list.add("first_axis_by_hand", Attrs(0), {input(kInt8, {2, 2}, {1, 2, 3, 4}), scale({2}, {1, 0.5})},
             {{1, 2, 1.5, 2}});
    list.add("last_axis_by_hand", Attrs(1), {input(kInt8, {2, 2}, {1, 2, 3, 4}), scale({2}, {1, 0.5})}, {{1, 1, 3, 2}});
    list.add("half_by_hand", Attrs(-1, kHalf), {input(kInt8, {3}, {3, -100, 127}), scale({1}, {0.25})},
             {{0.75, -25, 31.75}});
    for (DataType t : {DataType::kFloat, kHalf}) {
        std::string const name = nameOf(t);
        for (int64_t n : {1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 257, 1001})
            list.add(fmt::format("run_of_{}_{}", n, name), Attrs(-1, t), {input(kInt8, {n}), scale({}, {0.7})});
        list.add("long_" + name, Attrs(-1, t), {input(kInt8, {3, 20011}), scale({1}, {1.1})});
        list.add("image_" + name, Attrs(-1, t), {input(kInt8, {2, 13, 5, 7}), scale({}, {0.9})});
        list.add("channels_of_image_" + name, Attrs(1, t),
                 {input(kInt8, {2, 35, 3, 7}), constant(DataType::kFloat, {35})});
        list.add("filters_" + name, Attrs(0, t), {input(kInt8, {24, 5, 3, 3}), constant(DataType::kFloat, {24})});
        list.add("columns_" + name, Attrs(1, t), {input(kInt8, {19, 70}), constant(DataType::kFloat, {70})});
        list.add("rows_" + name, Attrs(0, t), {input(kInt8, {19, 70}), constant(DataType::kFloat, {19})});
    }
    list.add("sequence", Attrs(), {input(kInt8, {2, 19, 33}), scale({}, {0.9})});
    list.add("volume", Attrs(), {input(kInt8, {1, 5, 3, 4, 6}), scale({}, {0.9})});
    list.add("scales_of_an_input", Attrs(2), {input(kInt8, {2, 3, 9}), f32({9})});
    list.add("scalar", Attrs(), {input(kInt8, {}, {-3}), scale({}, {0.5})}, {{-1.5}});
    list.add("empty", Attrs(), {input(kInt8, {0, 5}), scale({}, {1})});
    list.add("empty_axis", Attrs(0), {input(kInt8, {0, 5}), constant(DataType::kFloat, {0})});
}

void randomCase(CaseList& list, Draw& d, std::string const& name)
{
    Extents const x = d.extents(int(d.from(0, 5)), 24);
    Attrs const a(int32_t(d.from(-1, x.rank - 1)), d.type());
    Extents const scale = a.axis < 0 ? Extents{} : Extents{x[a.axis]};
    list.add(name, a, {input(DataType::kInt8, x), d.chance(80) ? constant(DataType::kFloat, scale) : f32(scale)});
}

} // namespace tw::ops::dequantize
