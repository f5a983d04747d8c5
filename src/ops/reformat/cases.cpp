// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

#include "cases/draw.h"
#include "ops/reformat/op.h"

namespace tw::ops::reformat {

void cases(CaseList& list)
{
    list.add("by_hand", Attrs(), {f32({1, 2, 2}, {1, 2, 3, 4})}, {{1, 2, 3, 4}});
    for (int t = 0; t < kDataTypeCount; ++t)
        list.add(nameOf(DataType(t)), Attrs(), {input(DataType(t), {2, 19, 3, 7})});
    list.add("one_channel", Attrs(), {f32({3, 1, 5, 4})});
    list.add("vector_of_channels", Attrs(), {f32({2, 256, 1, 1})});
    list.add("wide", Attrs(), {f32({1, 33, 17, 31})});
    for (int64_t c : {1, 7, 8, 9, 15, 16, 17, 40, 70})
        list.add(fmt::format("channels_{}", c), Attrs(), {f32({2, c, 9, 8 + c % 5})});
    for (int64_t c : {3, 8, 30, 72})
        for (int64_t w : {7, 10, 12, 16})
            list.add(fmt::format("half_{}_{}", c, w), Attrs(), {input(DataType::kHalf, {3, c, 5, w})});
    for (int64_t c : {1, 3, 4, 15, 16, 17, 32, 63, 64, 65, 130})
        list.add(fmt::format("i8_{}", c), Attrs(), {input(DataType::kInt8, {2, c, 9, 8 + c % 5})});
    list.add("half_several_tiles", Attrs(), {input(DataType::kHalf, {2, 75, 20, 31})});
    list.add("half_rows_of_16_bytes", Attrs(), {input(DataType::kHalf, {2, 72, 20, 24})});
    for (DataType t : {DataType::kHalf, DataType::kFloat, DataType::kInt8})
        list.add(std::string("odd_planes_") + nameOf(t), Attrs(), {input(t, {2, 150, 21, 23})});
    list.add("half_whole_planes", Attrs(), {input(DataType::kHalf, {2, 200, 14, 14})});
    list.add("pixel", Attrs(), {f32({1, 21, 1, 1})});
    list.add("3d", Attrs(), {f32({2, 16, 3, 2, 5})});
    list.add("matrix", Attrs(), {f32({4, 9})});
    list.add("empty", Attrs(), {f32({2, 0, 3, 3})});
}

void randomCase(CaseList& list, Draw& d, std::string const& name)
{
    static constexpr DataType kTypes[] = {DataType::kFloat, DataType::kHalf, DataType::kInt8, DataType::kInt32};
    list.add(name, Attrs(), {input(kTypes[d.from(0, std::size(kTypes) - 1)], d.extents(int(d.from(3, 4)), 40))});
}

} // namespace tw::ops::reformat
