// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

#include "cases/draw.h"
#include "ops/padding/op.h"

namespace tw::ops::padding {

void cases(CaseList& list)
{
    auto pad = [&](std::string name, std::vector<int64_t> pre, std::vector<int64_t> post, CaseInput x,
                   std::vector<std::vector<double>> expected = {}) {
        Attrs a;
        a.pre = std::move(pre);
        a.post = std::move(post);
        list.add(std::move(name), a, {std::move(x)}, std::move(expected));
    };
    CaseInput const six = f32({1, 2, 3}, {1, 2, 3, 4, 5, 6});
    pad("by_hand", {1, 0}, {0, 1}, six, {{0, 0, 0, 0, 1, 2, 3, 0, 4, 5, 6, 0}});
    pad("crop_by_hand", {-1, -1}, {0, 0}, six, {{5, 6}});
    pad("crop_and_pad", {0, -1}, {1, 1}, six, {{2, 3, 0, 5, 6, 0, 0, 0, 0}});
    pad("crop_past_the_end", {0, -5}, {0, 4}, six, {{0, 0, 0, 0}}); // nothing of x is left
    pad("none", {0, 0}, {0, 0}, f32({2, 3, 4, 5}));
    pad("all_sides", {2, 1}, {3, 4}, f32({2, 3, 4, 5}));
    pad("channels_17", {2, 1}, {3, 4}, f32({2, 17, 4, 5}));
    pad("channels_48", {1, 0}, {0, 1}, f32({1, 48, 3, 5}));
    pad("to_nothing", {-2, 0}, {-2, 0}, f32({2, 3, 4, 5}));
    pad("from_nothing", {1, 1}, {1, 1}, f32({2, 0, 3}), {std::vector<double>(20, 0)});
    pad("empty_batch", {1, 1}, {1, 1}, f32({0, 2, 3}));
    for (DataType t : {DataType::kHalf, DataType::kInt8, DataType::kInt32, DataType::kBool, DataType::kUInt8})
        pad(std::string("type_") + nameOf(t), {1, -1}, {0, 3}, input(t, {2, 2, 3, 3}));
    for (int64_t c : {1, 17, 64, 65})
        pad(fmt::format("i8_channels_{}", c), {2, -1}, {3, 4}, input(DataType::kInt8, {2, c, 4, 5}));
    // Rows of many bytes, whose ends lie anywhere in a word.
    for (DataType t : {DataType::kFloat, DataType::kHalf, DataType::kInt8}) {
        std::string const type = nameOf(t);
        pad("frame_" + type, {1, 1}, {1, 1}, input(t, {3, 5, 7, 111}));
        pad("wide_frame_" + type, {3, 29}, {2, 70}, input(t, {2, 5, 7, 55}));
        pad("left_" + type, {0, 3}, {0, 0}, input(t, {5, 6, 93}));
        pad("crop_rows_" + type, {-1, -3}, {0, 1}, input(t, {5, 6, 93}));
        pad("rows_of_border_" + type, {2, -90}, {1, 77}, input(t, {3, 4, 85}),
            {std::vector<double>(3 * 7 * 72, 0)}); // nothing of x is left
    }
    // Enough short rows for blocks that piece them together in shared memory.
    for (DataType t : {DataType::kFloat, DataType::kHalf, DataType::kInt8}) {
        std::string const type = nameOf(t);
        pad("runs_" + type, {1, 1}, {1, 1}, input(t, {5, 15, 56, 56}));
        pad("runs_of_border_" + type, {19, 0}, {22, 9}, input(t, {103, 3, 66}));
        pad("runs_cropped_" + type, {2, -3}, {-3, 1}, input(t, {211, 23, 47}));
    }
    pad("frame_large", {1, 1}, {1, 1}, input(DataType::kHalf, {40, 33, 56, 57}));
}

void randomCase(CaseList& list, Draw& d, std::string const& name)
{
    Attrs a;
    Extents const x = d.extents(int(d.from(3, 4)), 24);
    for (size_t i = 0; i < 2; ++i) {
        int64_t const size = x[x.rank - 2 + int(i)];
        a.pre[i] = d.from(-(size / 2), 5); // negative: cropped
        a.post[i] = d.from(-(size / 2), 5);
    }
    list.add(name, a, {input(d.type(), x)});
}

} // namespace tw::ops::padding
