// SPDX-License-Identifier: Apache-2.0
#include "cuda_row.h"
#include "ops/concatenation/op.h"
#include "ops/gather/op.h"
#include "ops/padding/op.h"
#include "ops/reformat/op.h"
#include "ops/resize/op.h"
#include "ops/select/op.h"
#include "ops/shuffle/op.h"
#include "ops/slice/op.h"
#include "tactic/registry.h"

namespace tw::bench {

namespace {

constexpr DataType h = DataType::kHalf, f = DataType::kFloat, i8 = DataType::kInt8, i32 = DataType::kInt32;

double bytesOf(DataType t, Extents const& dims)
{
    return double(dims.volume()) * double(sizeOf(t));
}

} // namespace

std::vector<Row> movingRows()
{
    using namespace ops;
    std::vector<Row> list;
    auto transpose = [&](char const* name, DataType t, Extents dims, std::vector<int64_t> p) {
        list.push_back(
            {name, shuffle::def(), with<shuffle::Attrs>([=](auto& a) { a.firstTranspose = p; }), {{t, dims}}});
    };
    transpose("transpose_f16", h, {8192, 8192}, {1, 0});
    transpose("transpose_f32", f, {8192, 4096}, {1, 0});
    transpose("transpose_odd_f16", h, {63, 1023, 513}, {0, 2, 1});
    transpose("transpose_odd_f32", f, {127, 511, 259}, {0, 2, 1});
    transpose("transpose_i8", i8, {64, 1024, 1024}, {0, 2, 1});
    transpose("transpose_7_f16", h, {256, 2048, 7, 7}, {0, 2, 3, 1});
    transpose("transpose_from_7_f16", h, {256, 7, 7, 2048}, {0, 3, 1, 2});
    transpose("transpose_to_rgb_f16", h, {256, 3, 224, 224}, {0, 2, 3, 1});
    transpose("transpose_from_rgb_f16", h, {256, 224, 224, 3}, {0, 3, 1, 2});
    transpose("transpose_window_f16", h, {64, 8, 7, 8, 7, 192}, {0, 1, 3, 2, 4, 5});
    transpose("transpose_rows_odd_f16", h, {128, 384, 12, 65}, {0, 2, 1, 3});
    transpose("transpose_rows_odd_f32", f, {64, 384, 12, 65}, {0, 2, 1, 3});
    transpose("transpose_reverse_f32", f, {64, 96, 64, 80}, {3, 2, 1, 0});
    for (auto const& [name, t, dims] : {std::tuple{"reformat_56_f32", f, Extents{64, 256, 56, 56}},
                                        std::tuple{"reformat_7_f32", f, Extents{128, 2048, 7, 7}},
                                        std::tuple{"reformat_odd_f16", h, Extents{64, 250, 57, 57}}})
        list.push_back({name, reformat::def(), std::make_unique<reformat::Attrs>(), {{t, dims}}});
    auto resize = [&](char const* name, DataType t, resize::Mode mode, Extents dims, std::vector<int64_t> to) {
        list.push_back({name,
                        resize::def(),
                        with<resize::Attrs>([=](auto& a) {
                            a.mode = mode;
                            a.coordinates =
                                mode == resize::Mode::kLinear ? resize::Coordinates::kHalfPixel : a.coordinates;
                            a.outputDims = to;
                        }),
                        {{t, dims}}});
    };
    for (auto const& [suffix, t, n] : {std::tuple{"_f16", h, 16}, std::tuple{"_f32", f, 8}}) {
        std::string const s = suffix;
        resize(("resize_nearest" + s).c_str(), t, resize::Mode::kNearest, {n, 128, 64, 64}, {n, 128, 128, 128});
        resize(("resize_linear" + s).c_str(), t, resize::Mode::kLinear, {n, 128, 64, 64}, {n, 128, 128, 128});
        resize(("resize_linear_odd" + s).c_str(), t, resize::Mode::kLinear, {n, 128, 75, 75}, {n, 128, 113, 113});
        resize(("resize_linear_down" + s).c_str(), t, resize::Mode::kLinear, {n, 64, 192, 192}, {n, 64, 128, 128});
    }
    auto slice = [&](char const* name, DataType t, Extents dims, std::vector<int64_t> start, std::vector<int64_t> size,
                     std::vector<int64_t> stride, double read) { // read: of what is written
        Extents out;
        for (int64_t n : size)
            out.push(n);
        list.push_back({name,
                        slice::def(),
                        with<slice::Attrs>([=](auto& a) {
                            a.start = start;
                            a.size = size;
                            a.stride = stride;
                        }),
                        {{t, dims}}});
        list.back().bytes = (1 + read) * bytesOf(t, out);
    };
    slice("slice_channels_f16", h, {64, 320, 56, 56}, {0, 64, 0, 0}, {64, 192, 56, 56}, {1, 1, 1, 1}, 1);
    slice("slice_box_f16", h, {64, 256, 58, 58}, {0, 0, 1, 1}, {64, 256, 56, 56}, {1, 1, 1, 1}, 1);
    slice("slice_box_f32", f, {64, 128, 58, 58}, {0, 0, 1, 1}, {64, 128, 56, 56}, {1, 1, 1, 1}, 1);
    slice("slice_odd_f16", h, {4096, 8209}, {0, 3}, {4096, 8197}, {1, 1}, 1);
    slice("slice_odd_i8", i8, {4096, 16421}, {0, 3}, {4096, 16397}, {1, 1}, 1);
    slice("slice_short_rows_f16", h, {1 << 20, 43}, {0, 1}, {1 << 20, 41}, {1, 1}, 1);
    // Every other element: all of what lies between is read.
    slice("slice_strided_f16", h, {8192, 8192}, {0, 0}, {8192, 4096}, {1, 2}, 2);
    slice("slice_strided_f32", f, {8192, 4096}, {0, 0}, {8192, 2048}, {1, 2}, 2);
    slice("slice_strided_rows_f16", h, {64, 128, 112, 112}, {0, 0, 0, 0}, {64, 128, 56, 112}, {1, 1, 2, 1}, 1);
    slice("slice_reversed_f16", h, {8192, 4096}, {0, 4095}, {8192, 4096}, {1, -1}, 1);
    slice("slice_reversed_f32", f, {8192, 4096}, {0, 4095}, {8192, 4096}, {1, -1}, 1);
    auto gather = [&](char const* name, DataType t, Extents x, Extents j, int64_t axis, Extents read) {
        list.push_back({name, gather::def(), with<gather::Attrs>([=](auto& a) { a.axis = axis; }), {{t, x}, {i32, j}}});
        Extents y;
        for (int d = 0; d < x.rank; ++d)
            if (d == axis)
                for (int64_t n : j)
                    y.push(n);
            else
                y.push(x[d]);
        list.back().bytes = bytesOf(t, y) + bytesOf(t, read.rank ? read : y) + bytesOf(i32, j);
    };
    gather("gather_rows_f16", h, {30522, 1024}, {64, 512}, 0, {});
    gather("gather_rows_64_f16", h, {30000, 64}, {1 << 19}, 0, {});
    gather("gather_rows_8_f32", f, {30000, 8}, {1 << 21}, 0, {30000, 8});
    gather("gather_rows_odd_f16", h, {30000, 75}, {1 << 18}, 0, {});
    gather("gather_rows_odd_f32", f, {30000, 75}, {1 << 17}, 0, {});
    gather("gather_inner_f16", h, {1024, 30000}, {30000}, 1, {1024, 30000});
    gather("gather_inner_f32", f, {512, 30000}, {30000}, 1, {512, 30000});
    gather("gather_middle_f16", h, {4, 30000, 256}, {30000}, 1, {4, 30000, 256});
    auto concat = [&](char const* name, DataType t, int64_t axis, std::vector<Extents> const& dims) {
        list.push_back({name, concatenation::def(), std::make_unique<concatenation::Attrs>(axis), {}});
        for (Extents const& d : dims)
            list.back().inputs.push_back({t, d});
    };
    concat("concat_rows_f16", h, 1, {{1 << 18, 96}, {1 << 18, 32}});
    concat("concat_odd_f16", h, 1, {{64, 120, 57, 57}, {64, 57, 57, 57}});
    concat("concat_odd_rows_f16", h, 1, {{1 << 18, 75}, {1 << 18, 54}});
    concat("concat_odd_rows_f32", f, 1, {{1 << 17, 75}, {1 << 17, 54}});
    concat("concat_f32", f, 1, {{32, 256, 56, 56}, {32, 64, 56, 56}});
    auto pad = [&](char const* name, DataType t, Extents dims) {
        list.push_back({name,
                        padding::def(),
                        with<padding::Attrs>([](auto& a) {
                            a.pre = a.post = {1, 1};
                        }),
                        {{t, dims}}});
    };
    pad("pad_56_f16", h, {64, 256, 56, 56});
    pad("pad_56_f32", f, {32, 256, 56, 56});
    pad("pad_224_f16", h, {16, 64, 224, 224});
    list.push_back({"select_f16",
                    select::def(),
                    std::make_unique<select::Attrs>(),
                    {{DataType::kBool, {64, 128, 56, 56}}, {h, {64, 128, 56, 56}}, {h, {64, 128, 56, 56}}}});
    list.push_back({"select_row_f16",
                    select::def(),
                    std::make_unique<select::Attrs>(),
                    {{DataType::kBool, {64, 1, 1024, 1024}}, {h, {64, 1, 1024, 1024}}, {h, {1, 1, 1, 1}}}});
    transpose("nchw_to_nhwc_f16", h, {128, 256, 56, 56}, {0, 2, 3, 1});
    transpose("nhwc_to_nchw_f32", f, {128, 56, 56, 256}, {0, 3, 1, 2});
    transpose("heads_f16", h, {256, 384, 16, 64}, {0, 2, 1, 3});
    list.push_back({"concat_f16",
                    concatenation::def(),
                    std::make_unique<concatenation::Attrs>(1),
                    {{h, {128, 256, 56, 56}}, {h, {128, 64, 56, 56}}}});
    list.push_back(
        {"embedding_f16", gather::def(), std::make_unique<gather::Attrs>(), {{h, {30522, 768}}, {i32, {256, 384}}}});
    auto reformats = [] { return std::make_unique<reformat::Attrs>(); };
    list.push_back({"reformat_56_f16", reformat::def(), reformats(), {{h, {128, 256, 56, 56}}}});
    list.push_back({"reformat_14_f16", reformat::def(), reformats(), {{h, {256, 1024, 14, 14}}}});
    list.push_back({"reformat_7_f16", reformat::def(), reformats(), {{h, {256, 2048, 7, 7}}}});
    return list;
}

} // namespace tw::bench
