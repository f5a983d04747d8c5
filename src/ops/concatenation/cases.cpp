// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

#include "cases/draw.h"
#include "ops/concatenation/op.h"

namespace tw::ops::concatenation {

void cases(CaseList& list)
{
    list.add("by_hand", Attrs(1), {f32({2, 1}, {1, 2}), f32({2, 2}, {3, 4, 5, 6})}, {{1, 3, 4, 2, 5, 6}});
    list.add("one_input_by_hand", Attrs(0), {f32({2}, {1, 2})}, {{1, 2}});
    for (int t = 0; t < kDataTypeCount; ++t) {
        DataType const type = DataType(t);
        std::string const name = nameOf(type);
        list.add("axis0_" + name, Attrs(0), {input(type, {2, 3, 5}), input(type, {1, 3, 5})});
        list.add("axis1_" + name, Attrs(1), {input(type, {2, 3, 5}), input(type, {2, 1, 5}), input(type, {2, 7, 5})});
        list.add("axis2_" + name, Attrs(2), {input(type, {2, 3, 5}), input(type, {2, 3, 1})});
    }
    list.add("empty_part", Attrs(1), {f32({2, 0, 3}), f32({2, 2, 3}), f32({2, 0, 3})});
    list.add("all_empty", Attrs(0), {f32({0, 3}), f32({0, 3})});
    list.add("channels", Attrs(1), {f32({2, 16, 5, 3}), f32({2, 48, 5, 3}), f32({2, 32, 5, 3})});
    list.add("channels_tail", Attrs(1), {f32({2, 32, 3, 7}), f32({2, 19, 3, 7})});
    list.add("channels_odd", Attrs(1), {f32({2, 20, 3, 7}), f32({2, 19, 3, 7})});
    list.add("channels_padded", Attrs(1), {f32({1, 128, 3, 7}), f32({1, 128, 3, 7})});
    DataType const h = DataType::kHalf;
    list.add("channels_half", Attrs(1), {input(h, {2, 16, 5, 3}), input(h, {2, 8, 5, 3}), input(h, {2, 40, 5, 3})});
    list.add("channels_half_tail", Attrs(1), {input(h, {2, 16, 5, 3}), input(h, {2, 19, 5, 3})});
    list.add("channels_half_odd", Attrs(1), {input(h, {2, 5, 3, 3}), input(h, {2, 19, 3, 3}), input(h, {2, 8, 3, 3})});
    list.add("large_rows", Attrs(2), {f32({3, 50, 90}), f32({3, 50, 0}), f32({3, 50, 201})});
    list.add("large_outer", Attrs(0), {input(DataType::kHalf, {3, 50, 91}), input(DataType::kHalf, {8, 50, 91})});
    for (DataType t : {DataType::kFloat, DataType::kHalf, DataType::kInt8})
        for (int64_t n : {64, 61}) {
            std::string const which = fmt::format("{}_{}", n, nameOf(t));
            list.add("many_" + which, Attrs(1),
                     {input(t, {5, n}), input(t, {5, 0}), input(t, {5, 3 * n}), input(t, {5, 16})});
            list.add("nine_" + which, Attrs(0), std::vector<CaseInput>(9, input(t, {n})));
        }
    for (DataType t : {DataType::kFloat, DataType::kHalf, DataType::kInt8}) {
        std::string const type = nameOf(t);
        list.add("odd_rows_" + type, Attrs(1),
                 {input(t, {37, 175}), input(t, {37, 1}), input(t, {37, 0}), input(t, {37, 154})});
        list.add("columns_" + type, Attrs(1), {input(t, {5003, 1}), input(t, {5003, 1})});
        list.add("few_columns_" + type, Attrs(1), {input(t, {3001, 2}), input(t, {3001, 1}), input(t, {3001, 4})});
        list.add("short_and_long_" + type, Attrs(1),
                 {input(t, {9, 3}), input(t, {9, 5}), input(t, {9, 333}), input(t, {9, 2})});
    }
    for (size_t n : {21, 64, 65}) // encodings of positions; as many as a launch takes, and one more
        for (DataType t : {DataType::kFloat, DataType::kHalf}) {
            std::vector<CaseInput> in(n, input(t, {201, 3}));
            in[n / 2] = input(t, {201, 0});
            in[n - 1] = input(t, {201, 10});
            list.add(fmt::format("narrow_{}_{}", n, nameOf(t)), Attrs(1), std::move(in));
        }
    DataType const b = DataType::kInt8;
    list.add("channels_i8", Attrs(1), {input(b, {2, 64, 5, 3}), input(b, {2, 128, 5, 3}), input(b, {2, 70, 5, 3})});
    list.add("channels_i8_odd", Attrs(1), {input(b, {2, 5, 3, 3}), input(b, {2, 19, 3, 3}), input(b, {2, 8, 3, 3})});
    list.add("odd_planes", Attrs(1), {input(h, {3, 120, 9, 7}), input(h, {3, 57, 9, 7})});
    // Enough short rows for blocks that piece them together in shared memory; the last words are not whole.
    for (DataType t : {DataType::kFloat, DataType::kHalf, DataType::kInt8}) {
        std::string const type = nameOf(t);
        list.add("runs_" + type, Attrs(1), {input(t, {4101, 75}), input(t, {4101, 54})});
        list.add("runs_of_three_" + type, Attrs(2),
                 {input(t, {5, 853, 32}), input(t, {5, 853, 0}), input(t, {5, 853, 1}), input(t, {5, 853, 67})});
    }
    list.add("odd_rows_large", Attrs(1), {input(h, {20001, 75}), input(h, {20001, 54})});
    list.add("four_axes", Attrs(1), {f32({2, 3, 4, 5}), f32({2, 5, 4, 5})});
}

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
