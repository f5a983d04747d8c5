// SPDX-License-Identifier: Apache-2.0
#include "ops/slice/op.h"

#include <algorithm>

#include "tactic/cases.h"
#include "tactic/registry.h"

namespace tw::ops::slice {

namespace {

using ir::Dim;
using ir::Shape;

// With these, start + i * stride stays far inside int64.
constexpr int64_t kMaxMagnitude = int64_t(1) << 31;

// The elements of start, size or stride; empty optional: not known at build time.
Result<std::optional<std::vector<Dim>>> parameter(ir::InferContext& ctx, int i, char const* name,
                                                  std::vector<int64_t> const& attribute)
{
    size_t const rank = ctx.shape(0).size();
    std::optional<std::vector<Dim>> out;
    if (!ctx.has(i)) {
        if (attribute.size() != rank)
            return ctx.error(std::string(name) + " has " + std::to_string(attribute.size()) + " entries, " +
                             ctx.describe(0) + " needs " + std::to_string(rank));
        out.emplace(attribute.begin(), attribute.end());
    } else {
        if (ctx.type(i) != DataType::kInt32 || ctx.rank(i) != 1 || !ctx.shape(i)[0].is(int64_t(rank)))
            return ctx.error(std::string(name) + " " + ctx.describe(i) + " must be i32 with shape [" +
                             std::to_string(rank) + "]");
        if (auto const* content = ctx.content(i))
            out = *content;
        else if (ctx.concrete())
            return ctx.error(std::string("the elements of ") + name + " " + ctx.describe(i) + " are not known");
    }
    if (out)
        for (Dim const& d : *out)
            if (d.isConst() && (d.value() > kMaxMagnitude || d.value() < -kMaxMagnitude))
                return ctx.error(std::string(name) + " " + d.str() + " is out of range (-2^31 to 2^31)");
    return out;
}

// What is wrong with one dimension, when all of it is known; else empty.
std::string checkBounds(Mode mode, int64_t length, int64_t start, int64_t size, int64_t stride)
{
    if (size == 0 || mode == Mode::kFill)
        return {};
    if (length == 0)
        return "the input is empty there, the output takes " + std::to_string(size) + " elements";
    if (mode != Mode::kStrict)
        return {};
    int64_t const last = start + (size - 1) * stride;
    if (start < 0 || start >= length || last < 0 || last >= length)
        return "start " + std::to_string(start) + ", size " + std::to_string(size) + ", stride " +
               std::to_string(stride) + " reach from " + std::to_string(std::min(start, last)) + " to " +
               std::to_string(std::max(start, last)) + ", out of the bounds [0, " + std::to_string(length) + ")";
    return {};
}

int64_t sourceIndex(Mode mode, int64_t p, int64_t length)
{
    int64_t const period = mode == Mode::kReflect ? std::max<int64_t>(1, 2 * (length - 1)) : length;
    if (mode == Mode::kWrap || mode == Mode::kReflect)
        p = (p % period + period) % period;
    if (mode == Mode::kReflect && p >= length)
        p = period - p;
    return mode == Mode::kClamp ? std::clamp<int64_t>(p, 0, length - 1) : p;
}

// Elements of the output, when those of the input and all coordinates are known.
void propagateContent(ir::InferContext& ctx, Shape const& y, std::vector<Dim> const& start,
                      std::vector<Dim> const& stride)
{
    auto const* content = ctx.content(0);
    auto known = [](std::vector<Dim> const& v) {
        return std::all_of(v.begin(), v.end(), [](Dim const& d) { return d.isConst(); });
    };
    if (!content || !isStatic(ctx.shape(0)) || !known(y) || !known(start) || !known(stride))
        return;
    Extents const x = extentsOf(ctx.shape(0)), to = extentsOf(y), strides = stridesOf(x);
    int64_t count = 1;
    for (int64_t d : to)
        count = d < 0 ? INT64_MAX : ir::mulSat(count, d);
    auto const* fill = ctx.content(4);
    if (count > ir::kMaxContent || int64_t(content->size()) != x.volume() || (ctx.has(4) && !fill))
        return;
    std::vector<Dim> out;
    Counter at(to);
    for (int64_t i = 0; i < count; ++i, at.next()) {
        int64_t from = 0;
        bool inside = true;
        for (int d = 0; d < x.rank; ++d) {
            int64_t const p = sourceIndex(ctx.attrs<Attrs>().mode,
                                          start[size_t(d)].value() + at.at[d] * stride[size_t(d)].value(), x[d]);
            inside = inside && p >= 0 && p < x[d];
            from += p * strides[d];
        }
        out.push_back(inside ? (*content)[size_t(from)] : fill ? fill->at(0) : Dim(0));
    }
    ctx.outputContent(0, std::move(out));
}

Result<void> infer(ir::InferContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    if (a.mode < Mode::kStrict || a.mode > Mode::kReflect)
        return ctx.error("mode " + std::to_string(int(a.mode)) + " is unknown (allowed: 0 to 4)");
    if (ctx.has(4)) {
        if (a.mode != Mode::kFill)
            return ctx.error("a fill value is given, but the mode is not fill");
        if (ctx.type(4) != ctx.type(0) || !volume(ctx.shape(4)).is(1))
            return ctx.error("the fill value " + ctx.describe(4) + " must be one element of type " +
                             nameOf(ctx.type(0)));
    }
    TW_ASSIGN(auto const start, parameter(ctx, 1, "start", a.start));
    TW_ASSIGN(auto const size, parameter(ctx, 2, "size", a.size));
    TW_ASSIGN(auto const stride, parameter(ctx, 3, "stride", a.stride));
    Shape const& x = ctx.shape(0);
    Shape y;
    for (size_t d = 0; d < x.size(); ++d) {
        if (!size) {
            // A strict slice that visits no element twice is no longer than its input.
            bool const within = a.mode == Mode::kStrict && stride && (*stride)[d].isConst() && !(*stride)[d].is(0);
            y.push_back(ctx.freshSymbol({0, within ? std::min<int64_t>(ctx.range(x[d]).hi, INT32_MAX) : INT32_MAX}));
            continue;
        }
        y.push_back((*size)[d]);
        std::string const where = "dimension " + std::to_string(d) + " of " + ctx.describe(0) + ": ";
        if (y[d].isConst() && y[d].value() < 0)
            return ctx.error(where + "size " + y[d].str() + " is negative");
        bool const known =
            start && stride && (*start)[d].isConst() && (*stride)[d].isConst() && y[d].isConst() && x[d].isConst();
        if (!known)
            continue;
        std::string const why =
            checkBounds(a.mode, x[d].value(), (*start)[d].value(), y[d].value(), (*stride)[d].value());
        if (!why.empty())
            return ctx.error(where + why);
    }
    ctx.output(0, ctx.type(0), y);
    if (start && stride)
        propagateContent(ctx, y, *start, *stride);
    return {};
}

uint32_t shapeInputs(ir::Node const&)
{
    return 1u << 1 | 1u << 2 | 1u << 3;
}

// By pixels: whole cache lines of every pixel, in kHWC8 whole vectors.
std::vector<ir::Alias> pixelAliases(Extents const& x, Extents const& y, Steps const& s, DataType type, Format format)
{
    for (int d = 0; d < x.rank; ++d)
        if (s.stride[d] != 1 || (d != 1 && (s.start[d] != 0 || x[d] != y[d])))
            return {};
    int64_t const line = format == Format::kHWC8 ? vectorOf(format) : kCacheLine / sizeOf(type);
    if (s.start[1] % line != 0 || y[1] % line != 0 || s.start[1] < 0 || s.start[1] > x[1] - y[1])
        return {};
    return {ir::Alias{true, 0, s.start[1]}};
}

// A part of the input that lies in one piece: the dimensions before some axis have one element, those behind it are
// taken whole.
std::vector<ir::Alias> aliases(ir::Node const& node, std::span<TensorRef const> in, std::span<TensorRef const> out)
{
    auto given = [&](size_t i) { return i < node.inputs.size() && node.inputs[i]; };
    auto data = [&](size_t i) { return given(i) ? in[i] : TensorRef{}; };
    Extents const &x = in[0].dims, &y = out[0].dims;
    if ((given(1) && !in[1].data) || (given(3) && !in[3].data) || y.volume() == 0)
        return {};
    Steps const s = stepsOf(node.attrsAs<Attrs>(), data(1), data(3), x.rank);
    if (in[0].format != out[0].format)
        return {};
    if (in[0].format == Format::kChannelsLast || (in[0].format == Format::kHWC8 && x.rank == 4))
        return pixelAliases(x, y, s, in[0].type, in[0].format);
    if (in[0].format != Format::kLinear)
        return {};
    Extents const strides = stridesOf(x);
    bool whole = true; // all dimensions behind this one
    int64_t offset = 0;
    for (int d = x.rank - 1; d >= 0; --d) {
        bool const inside = s.start[d] >= 0 && s.start[d] <= x[d] - y[d];
        if (!inside || (y[d] > 1 && (s.stride[d] != 1 || !whole)))
            return {};
        whole = whole && y[d] == x[d];
        offset += s.start[d] * strides[d];
    }
    return {ir::Alias{true, 0, offset}};
}

[[gnu::cold]] void cases(CaseList& list)
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
    slice("rank_8", f32({2, 2, 2, 2, 1, 2, 2, 3}), {0, 1, 0, 1, 0, 1, 0, 1}, {2, 1, 2, 1, 1, 1, 2, 2},
          {1, 1, 1, 1, 1, 1, 1, 1});
    slice("pad_2d_fill", f32({2, 3, 4}), {0, -1, -2}, {2, 6, 8}, {1, 1, 1}, Mode::kFill);
    slice("pad_2d_reflect", f32({2, 3, 4}), {0, -2, -3}, {2, 7, 10}, {1, 1, 1}, Mode::kReflect);
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
        slice("outside_" + type, input(t, {3, 6, 41}), {0, 7, 0}, {3, 5, 41}, {1, 1, 1}, Mode::kFill);
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
            std::string const name = std::to_string(n) + "_" + nameOf(t);
            CaseInput const x = input(t, {4, 5}, t == DataType::kBool ? std::vector<double>() : numbers);
            slice("one_element_" + name, x, {3, 4}, {n, 1}, {0, 1});
            slice("one_element_clamp_" + name, x, {4, 7}, {n, 2}, {1, 1}, Mode::kClamp);
            slice("one_element_wrap_" + name, x, {3, 4}, {n, 1}, {4, 5}, Mode::kWrap);
            slice("one_element_reflect_" + name, input(t, {5, 3, 1}), {4, 2, -1}, {1, n, 1}, {0, 0, 1}, Mode::kReflect);
            slice("one_element_fill_" + name, x, {3, 2}, {n, n}, {0, 0}, Mode::kFill);
        }
    slice("one_element_by_hand", f32({4, 5}, numbers), {3, 4}, {3, 1}, {0, 1}, Mode::kStrict, {{5, 5, 5}});
    CaseInput const start = constant(DataType::kInt32, {2}, {2, 4}), size = constant(DataType::kInt32, {2}, {2, 3}),
                    stride = constant(DataType::kInt32, {2}, {-1, -2});
    slice("all_inputs", f32({3, 5}), {}, {}, {}, Mode::kStrict, {}, {start, size, stride});
    slice("start_input", f32({3, 5}), {}, {1, 1}, {1, 1}, Mode::kStrict, {}, {start});
    slice("stride_input", f32({3, 5}), {2, 4}, {2, 3}, {}, Mode::kStrict, {}, {absent(), absent(), stride});
}

} // namespace

Steps stepsOf(Attrs const& a, TensorRef const& start, TensorRef const& stride, int rank)
{
    Steps s{};
    for (int d = 0; d < rank; ++d) {
        s.start[d] = start.data ? start.getInt(d) : a.start[size_t(d)];
        s.stride[d] = stride.data ? stride.getInt(d) : a.stride[size_t(d)];
    }
    return s;
}

ir::OpDef const& def()
{
    static constexpr ir::OpDef kDef{
        .name = "slice",
        .minInputs = 1,
        .maxInputs = 5,
        .makeAttrs = [] { return std::unique_ptr<ir::AttrsBase>(std::make_unique<Attrs>()); },
        .infer = infer,
        .shapeInputs = shapeInputs,
        .reference = reference,
        .cases = cases,
        .cpuTactics = cpuTactics,
        .cudaTactics = cudaTactics,
        .aliases = aliases,
        .isCheap = true,
    };
    return kDef;
}

} // namespace tw::ops::slice
