// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

#include <limits>

#include "cases/draw.h"
#include "ops/quantize/op.h"

namespace tw::ops::quantize {

void cases(CaseList& list)
{
    double const nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
    auto scale = [](Extents const& e, std::vector<double> v) { return constant(DataType::kFloat, e, std::move(v)); };
    list.add("ties_and_ends_by_hand", Attrs(),
             {f32({14}, {0.25, 0.75, 1.25, -0.25, -0.75, 63.25, 63.75, 64, -64, -64.25, -65, nan, inf, -inf}),
              scale({}, {0.5})},
             {{0, 2, 2, 0, -2, 126, 127, 127, -128, -128, -128, 0, 127, -128}});
    // In FP32 the first quotient is 3.5 (exactly it is less), the second is less than 15.5 (x times 1 / s is no less).
    list.add("quotient_of_f32_by_hand", Attrs(), {f32({2}, {0.349999994, 1.54999995}), scale({1}, {0.1})}, {{4, 15}});
    list.add("first_axis_by_hand", Attrs(0), {f32({2, 2}, {1, 2, 3, 4}), scale({2}, {1, 0.5})}, {{1, 2, 6, 8}});
    list.add("last_axis_by_hand", Attrs(1), {f32({2, 2}, {1, 2, 3, 4}), scale({2}, {1, 0.5})}, {{1, 4, 3, 8}});
    list.add("half_by_hand", Attrs(), {input(DataType::kHalf, {4}, {1.5, 2.5, -300, nan}), scale({}, {1})},
             {{2, 2, -128, 0}});
    for (DataType t : {DataType::kFloat, DataType::kHalf}) {
        std::string const name = nameOf(t);
        for (int64_t n : {1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 257, 1001})
            list.add(fmt::format("run_of_{}_{}", n, name), Attrs(), {input(t, {n}), scale({}, {0.7})});
        list.add("long_" + name, Attrs(), {input(t, {3, 20011}), scale({1}, {1.1})});
        list.add("image_" + name, Attrs(), {input(t, {2, 13, 5, 7}), scale({}, {0.9})});
        list.add("channels_of_image_" + name, Attrs(1), {input(t, {2, 35, 3, 7}), constant(DataType::kFloat, {35})});
        list.add("filters_" + name, Attrs(0), {input(t, {24, 5, 3, 3}), constant(DataType::kFloat, {24})});
        list.add("columns_" + name, Attrs(1), {input(t, {19, 70}), constant(DataType::kFloat, {70})});
        list.add("rows_" + name, Attrs(0), {input(t, {19, 70}), constant(DataType::kFloat, {19})});
    }
    list.add("sequence", Attrs(), {f32({2, 19, 33}), scale({}, {0.9})});
    list.add("volume", Attrs(), {f32({1, 5, 3, 4, 6}), scale({}, {0.9})});
    list.add("scales_of_an_input", Attrs(2), {f32({2, 3, 9}), f32({9})});
    list.add("scalar", Attrs(), {f32({}, {-3.5}), scale({}, {0.5})}, {{-7}});
    list.add("empty", Attrs(), {f32({0, 5}), scale({}, {1})});
    list.add("empty_axis", Attrs(0), {f32({0, 5}), constant(DataType::kFloat, {0})});
}

void randomCase(CaseList& list, Draw& d, std::string const& name)
{
    Extents const x = d.extents(int(d.from(0, 5)), 24);
    Attrs const a(int32_t(d.from(-1, x.rank - 1)));
    Extents const scale = a.axis < 0 ? Extents{} : Extents{x[a.axis]};
    list.add(name, a, {input(d.type(), x), d.chance(80) ? constant(DataType::kFloat, scale) : f32(scale)});
}

} // namespace tw::ops::quantize
