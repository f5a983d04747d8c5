// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

#include "cases/draw.h"
#include "ops/slice/op.h"

namespace tw::ops::slice {

void cases(CaseList& list)
{
    auto slice = [&](std::string const& name, CaseInput x, std::vector<int64_t> start, std::vector<int64_t> size,
                     std::vector<int64_t> stride, Mode mode = Mode::kStrict,
                     std::vector<std::vector<double>> expected = {}, std::vector<CaseInput> more = {}) {
        Attrs a;
        a.start = std::move(start);
        a.size = std::move(size);
        a.stride = std::move(stride);
        a.mode = mode;
        more.insert(more.begin(), std::move(x));
        list.add(name, a, std::move(more), std::move(expected));
    };
    CaseInput const half = input(DataType::kHalf, {2, 40, 5, 6});
    slice("half_channels", half, {0, 16, 0, 0}, {2, 24, 5, 6}, {1, 1, 1, 1});
    slice("half_channels_odd", half, {0, 3, 0, 0}, {2, 21, 5, 6}, {1, 1, 1, 1});
    slice("half_image", half, {0, 8, 1, 0}, {2, 16, 2, 3}, {1, 1, 2, 2});
    CaseInput const row = f32({4}, {10, 11, 12, 13});
    slice("by_hand", f32({2, 3}, {1, 2, 3, 4, 5, 6}), {1, 0}, {1, 2}, {1, 2}, Mode::kStrict, {{4, 6}});
    slice("images_of_a_constant", constant(DataType::kFloat, {1, 2, 12, 1}), {0, 0, 0, 0}, {3, 2, 12, 1}, {0, 1, 1, 1});
    slice("negative_stride", row, {3}, {4}, {-1}, Mode::kStrict, {{13, 12, 11, 10}});
    slice("stride_0", row, {2}, {3}, {0}, Mode::kStrict, {{12, 12, 12}});
    slice("wrap", row, {-3}, {9}, {1}, Mode::kWrap, {{11, 12, 13, 10, 11, 12, 13, 10, 11}});
    slice("clamp", row, {-2}, {8}, {1}, Mode::kClamp, {{10, 10, 10, 11, 12, 13, 13, 13}});
    slice("fill_zero", row, {-1}, {6}, {1}, Mode::kFill, {{0, 10, 11, 12, 13, 0}});
    slice("fill_value", row, {5}, {4}, {-2}, Mode::kFill, {{7, 13, 11, 7}},
          {absent(), absent(), absent(), f32({}, {7})});
    slice("reflect", row, {-4}, {12}, {1}, Mode::kReflect, {{12, 13, 12, 11, 10, 11, 12, 13, 12, 11, 10, 11}});
    slice("reflect_one", f32({1}, {5}), {-2}, {4}, {1}, Mode::kReflect, {{5, 5, 5, 5}});
    slice("size_0_unchecked", row, {99}, {0}, {-7}, Mode::kStrict, {{}});
    slice("empty_fill", f32({0}), {0}, {3}, {1}, Mode::kFill, {{0, 0, 0}});
    slice("empty_to_empty", f32({0, 3}), {0, 0}, {0, 2}, {1, 1});
    slice("scalar", f32({}), {}, {}, {});
    slice("batch", f32({5, 3, 4}), {1, 0, 0}, {3, 3, 4}, {1, 1, 1});
    slice("channels", f32({2, 6, 3, 5}), {0, 2, 0, 0}, {2, 3, 3, 5}, {1, 1, 1, 1});
    slice("channel_lines", f32({2, 70, 3, 5}), {0, 32, 0, 0}, {2, 32, 3, 5}, {1, 1, 1, 1});
    slice("channel_tail", f32({2, 70, 3, 5}), {0, 48, 1, 4}, {2, 19, 2, 3}, {1, 1, 1, -2});
    slice("channel_volume", f32({3, 24, 2, 3, 4}), {2, 16, 1, 0, 1}, {2, 7, 1, 2, 2}, {-2, 1, 1, 2, 2});
    slice("every_other_channel", f32({2, 6, 3, 5}), {0, 5, 0, 0}, {2, 3, 3, 5}, {1, -2, 1, 1});
    slice("all_dims", f32({4, 5, 6, 7}), {1, 4, 0, 6}, {2, 2, 3, 4}, {2, -3, 2, -2});
    slice("whole", f32({3, 4}), {0, 0}, {3, 4}, {1, 1});
    slice("whole_dimensions", f32({2, 3, 4}), {0, 1, 0}, {kWhole, 2, kWhole}, {1, 1, 1});
    slice("whole_and_turned", f32({3}, {1, 2, 3}), {2}, {kWhole}, {-1}, Mode::kStrict, {{3, 2, 1}});
    slice("rank_8", f32({2, 2, 2, 2, 1, 2, 2, 3}), {0, 1, 0, 1, 0, 1, 0, 1}, {2, 1, 2, 1, 1, 1, 2, 2},
          {1, 1, 1, 1, 1, 1, 1, 1});
    slice("pad_2d_fill", f32({2, 3, 4}), {0, -1, -2}, {2, 6, 8}, {1, 1, 1}, Mode::kFill);
    slice("pad_2d_reflect", f32({2, 3, 4}), {0, -2, -3}, {2, 7, 10}, {1, 1, 1}, Mode::kReflect);
    slice("pad_image_reflect", f32({2, 19, 5, 6}), {0, 0, -2, -1}, {2, 19, 9, 9}, {1, 1, 1, 1}, Mode::kReflect);
    slice("pad_image_reflect_f16", input(DataType::kHalf, {2, 24, 5, 6}), {0, 0, -2, -1}, {2, 24, 9, 9}, {1, 1, 1, 1},
          Mode::kReflect);
    slice("pad_image_clamp_i8", input(DataType::kInt8, {1, 35, 4, 7}), {0, 0, -1, -3}, {1, 35, 6, 12}, {1, 1, 1, 1},
          Mode::kClamp);
    slice("pad_image_wrap_f16", input(DataType::kHalf, {1, 9, 1, 7}), {0, 0, 0, -3}, {1, 9, 1, 12}, {1, 1, 1, 1},
          Mode::kWrap);
    slice("pad_2d_clamp", f32({2, 3, 4}), {0, -2, -3}, {2, 7, 10}, {1, 1, 1}, Mode::kClamp);
    slice("pad_2d_wrap", f32({2, 3, 4}), {0, -2, -3}, {2, 7, 10}, {1, 1, 1}, Mode::kWrap);
    for (DataType t : {DataType::kFloat, DataType::kHalf, DataType::kInt8}) {
        std::string const type = nameOf(t);
        slice("aligned_" + type, input(t, {4, 6, 64}), {1, 5, 16}, {3, 3, 32}, {1, -2, 1});
        slice("aligned_fill_" + type, input(t, {3, 32}), {-1, 0}, {5, 32}, {1, 1}, Mode::kFill);
    }
    slice("expand_rows", f32({2, 5, 1}), {0, 0, 0}, {2, 5, 19}, {1, 1, 0});
    slice("expand_images", f32({2, 3, 1, 1}), {0, 1, 0, 0}, {2, 4, 5, 19}, {1, 0, 0, 0});
    slice("expand_blocks", f32({2, 1, 3, 4}), {0, 0, 0, 0}, {2, 5, 3, 4}, {1, 0, 1, 1});
    slice("fill_constant_rows", f32({2, 1}), {-1, 0}, {4, 9}, {1, 0}, Mode::kFill);
    slice("large_tile", f32({2, 3, 40, 33}), {0, 0, 0, 0}, {2, 3, 80, 99}, {1, 1, 1, 1}, Mode::kWrap);
    slice("large_pad", input(DataType::kHalf, {3, 70, 180}), {0, -3, -2}, {3, 76, 185}, {1, 1, 1}, Mode::kFill);
    slice("large_reflect", f32({40, 3, 180}), {-2, 0, -2}, {44, 3, 185}, {1, 1, 1}, Mode::kReflect);
    slice("large_expand", f32({1, 7, 1, 1}), {0, 0, 0, 0}, {3, 7, 60, 61}, {0, 1, 0, 0});
    for (DataType t : {DataType::kFloat, DataType::kHalf, DataType::kInt8}) {
        std::string const type = nameOf(t);
        slice("reversed_" + type, input(t, {3, 5, 37}), {0, 4, 36}, {3, 5, 37}, {1, -1, -1});
        slice("every_other_" + type, input(t, {3, 5, 64}), {0, 0, 1}, {3, 5, 32}, {1, 1, 2});
        slice("every_third_" + type, input(t, {3, 4, 50}), {2, 0, 49}, {2, 4, 17}, {-1, 1, -3});
        slice("odd_box_" + type, input(t, {3, 6, 41}), {1, 1, 3}, {2, 4, 35}, {1, 1, 1});
        slice("repeated_" + type, input(t, {3, 6, 41}), {1, 1, 3}, {2, 4, 35}, {0, 1, 0});
        slice("frame_" + type, input(t, {3, 6, 48}), {-1, -2, -16}, {5, 9, 96}, {1, 1, 1}, Mode::kFill, {},
              {absent(), absent(), absent(), input(t, {}, {3})});
        slice("odd_frame_" + type, input(t, {3, 6, 41}), {0, -2, -3}, {3, 9, 47}, {1, 1, 1}, Mode::kFill, {},
              {absent(), absent(), absent(), input(t, {}, {3})});
        slice("sparse_frame_" + type, input(t, {3, 6, 41}), {2, 7, -3}, {3, 5, 20}, {-1, -2, 3}, Mode::kFill);
        slice("outside_" + type, input(t, {3, 6, 41}), {0, 7, 0}, {3, 5, 41}, {1, 1, 1}, Mode::kFill,
              {std::vector<double>(3 * 5 * 41, 0)});
    }
    for (DataType t : {DataType::kFloat, DataType::kHalf, DataType::kInt8}) {
        std::string const type = nameOf(t);
        slice("odd_rows_" + type, input(t, {7, 209}), {0, 3}, {7, 197}, {1, 1});
        slice("odd_rows_back_" + type, input(t, {3, 6, 131}), {2, 5, 1}, {3, 5, 129}, {-1, -1, 1});
        slice("odd_line_" + type, input(t, {1001}), {5}, {993}, {1});
        slice("odd_frame_rows_" + type, input(t, {3, 6, 141}), {-1, 4, -3}, {5, 5, 147}, {1, -1, 1}, Mode::kFill, {},
              {absent(), absent(), absent(), input(t, {}, {3})});
    }
    // Enough short rows for blocks that piece them together in shared memory.
    for (DataType t : {DataType::kFloat, DataType::kHalf, DataType::kInt8}) {
        std::string const type = nameOf(t);
        slice("runs_" + type, input(t, {5003, 43}), {0, 1}, {5003, 41}, {1, 1});
        slice("runs_of_end_" + type, input(t, {5003, 43}), {2, 2}, {5001, 41}, {1, 1});
        slice("runs_of_planes_" + type, input(t, {71, 67, 73}), {0, 5, 4}, {71, 60, 69}, {1, 1, 1});
        slice("runs_of_rows_" + type, input(t, {201, 45, 67}), {1, 0, 3}, {200, 22, 63}, {1, 2, 1});
        slice("runs_in_frame_" + type, input(t, {151, 29, 45}), {0, -3, -2}, {151, 35, 51}, {1, 1, 1}, Mode::kFill, {},
              {absent(), absent(), absent(), input(t, {}, {3})});
        slice("runs_in_columns_" + type, input(t, {4801, 39}), {0, -3}, {4801, 49}, {1, 1}, Mode::kFill);
    }
    slice("odd_box_large", input(DataType::kHalf, {40, 31, 59, 59}), {0, 0, 1, 1}, {40, 31, 57, 57}, {1, 1, 1, 1});
    slice("many_reversed", input(DataType::kInt8, {1100, 2003}), {0, 2002}, {1100, 2003}, {1, -1});
    slice("pad_channels_fill", f32({2, 3, 4}), {0, -1, 0}, {2, 5, 4}, {1, 1, 1}, Mode::kFill);
    for (DataType t : {DataType::kFloat, DataType::kInt8}) { // images by pixels
        CaseInput const image = input(t, {2, 20, 4, 5});
        std::string const type = nameOf(t);
        std::vector<CaseInput> const seven{absent(), absent(), absent(), input(t, {}, {7})};
        slice("channels_added_" + type, image, {0, 0, 0, 0}, {2, 37, 4, 5}, {1, 1, 1, 1}, Mode::kFill);
        slice("channels_around_" + type, image, {0, -3, -1, 1}, {2, 40, 6, 3}, {1, 1, 1, 2}, Mode::kFill, {}, seven);
        slice("channels_beyond_" + type, image, {0, 15, 0, 0}, {2, 9, 4, 5}, {1, 1, 1, 1}, Mode::kFill);
        slice("channels_from_anywhere_" + type, image, {0, 7, 1, 4}, {2, 9, 2, 3}, {1, 1, 1, -1});
        for (auto [name, mode] : {std::pair{"fill", Mode::kFill}, std::pair{"wrap", Mode::kWrap},
                                  std::pair{"clamp", Mode::kClamp}, std::pair{"reflect", Mode::kReflect}})
            slice(fmt::format("frame_{}_{}", name, type), image, {0, 0, -2, -3}, {2, 20, 9, 10}, {1, 1, 1, 1}, mode);
    }
    slice("i8_channels", input(DataType::kInt8, {2, 130, 4, 5}), {0, 64, 1, 0}, {2, 66, 3, 3}, {1, 1, 1, 2});
    slice("i8_channels_odd", input(DataType::kInt8, {3, 20, 4, 5}), {1, 3, 0, 1}, {2, 9, 2, 4}, {1, 1, 2, 1});
    for (DataType t : {DataType::kHalf, DataType::kInt8, DataType::kInt32, DataType::kBool, DataType::kUInt8})
        slice(std::string("type_") + nameOf(t), input(t, {3, 7}), {2, -1}, {3, 9}, {-1, 1}, Mode::kFill, {},
              {absent(), absent(), absent(), input(t, {1}, {1})});
    // One element that is not the first of its row, a few times over: across rows, and across planes of them.
    std::vector<double> numbers(20);
    for (size_t i = 0; i < numbers.size(); ++i)
        numbers[i] = double(i % 7);
    for (DataType t :
         {DataType::kFloat, DataType::kHalf, DataType::kInt8, DataType::kInt32, DataType::kBool, DataType::kUInt8})
        for (int64_t n = 1; n <= 5; ++n) {
            std::string const name = fmt::format("{}_{}", n, nameOf(t));
            CaseInput const x = input(t, {4, 5}, t == DataType::kBool ? std::vector<double>() : numbers);
            slice("one_element_" + name, x, {3, 4}, {n, 1}, {0, 1});
            slice("one_element_clamp_" + name, x, {4, 7}, {n, 2}, {1, 1}, Mode::kClamp);
            list.cases.back().isConstant = true; // the last element of x
            slice("one_element_wrap_" + name, x, {3, 4}, {n, 1}, {4, 5}, Mode::kWrap);
            slice("one_element_reflect_" + name, input(t, {5, 3, 1}), {4, 2, -1}, {1, n, 1}, {0, 0, 1}, Mode::kReflect);
            slice("one_element_fill_" + name, x, {3, 2}, {n, n}, {0, 0}, Mode::kFill);
            list.cases.back().isConstant = true;
        }
    slice("one_element_by_hand", f32({4, 5}, numbers), {3, 4}, {3, 1}, {0, 1}, Mode::kStrict, {{5, 5, 5}});
    CaseInput const start = constant(DataType::kInt32, {2}, {2, 4}), size = constant(DataType::kInt32, {2}, {2, 3}),
                    stride = constant(DataType::kInt32, {2}, {-1, -2});
    slice("all_inputs", f32({3, 5}), {}, {}, {}, Mode::kStrict, {}, {start, size, stride});
    slice("start_input", f32({3, 5}), {}, {1, 1}, {1, 1}, Mode::kStrict, {}, {start});
    slice("stride_input", f32({3, 5}), {2, 4}, {2, 3}, {}, Mode::kStrict, {}, {absent(), absent(), stride});
}

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
