// SPDX-License-Identifier: Apache-2.0
// Parts and wholes: Concat, Stack, StridedSlice, Pad, GatherV2.
#include <algorithm>

#include "parsers/uff/constants.h"
#include "parsers/uff/node.h"
#include "parsers/uff/operations.h"

namespace tw::uff {

namespace {

std::vector<Constant> constantsOf(UffNode const& n)
{
    std::vector<Constant> parts;
    for (int i = 0; i < n.count(); ++i)
        parts.push_back(n.in(i).value.constant());
    return parts;
}

Tensor const& firstTensor(UffNode& n)
{
    int i = 0;
    while (!n.in(i).value.isTensor())
        ++i;
    return n.tensorOf(i);
}

} // namespace

void importConcat(UffNode& n)
{
    (void)n.in(0);
    int64_t const asked = n.requireInt("axis");
    if (n.allConstant()) {
        int const rank = n.in(0).value.rank();
        return n.give(Value(joined(n, constantsOf(n), n.axis(asked, rank))));
    }
    Tensor const& first = firstTensor(n);
    Layout layout = n.commonLayout();
    layout.units = 0;
    std::vector<ITensor*> parts;
    for (int i = 0; i < n.count(); ++i)
        parts.push_back(&n.beside(i, layout, first.value.type()));
    Tensor const shape{first.value, layout, ""};
    n.give(n.concat(parts, n.heldAxis(shape, asked, "axis")), layout);
}

void importStack(UffNode& n)
{
    (void)n.in(0);
    int64_t const asked = n.attrInt("axis", 0);
    if (n.allConstant()) {
        std::vector<Constant> parts = constantsOf(n);
        // Sizes of shapes: 0-D, or 1-D of one element where a Reduce kept its dimension.
        bool const areNumbers =
            std::ranges::all_of(parts, [](Constant const& c) { return c.count == 1 && c.dims.nbDims <= 1; });
        int const axis = n.axis(asked, areNumbers ? 1 : parts[0].dims.nbDims + 1);
        for (Constant& c : parts) {
            n.check(c.dims.nbDims < Dims::MAX_DIMS,
                    "the result has 9 dimensions, above the highest rank of the API, 8");
            Dims y{areNumbers ? 1 : c.dims.nbDims + 1, {1}};
            for (int i = 0; !areNumbers && i < y.nbDims; ++i)
                y.d[i] = i == axis ? 1 : c.dims.d[i - (i > axis)];
            c = n.reshaped(c, y);
        }
        return n.give(Value(joined(n, parts, axis)));
    }
    int const rank = firstTensor(n).value.rank();
    int const axis = n.axis(asked, rank + 2) - 1;
    if (axis < 0)
        n.fail("axis 0 would stand before the batch");
    std::vector<ITensor*> parts;
    for (int i = 0; i < n.count(); ++i)
        parts.push_back(&n.unsqueeze(n.beside(i, {.order = allAxes(rank)}, firstTensor(n).value.type()), {axis}));
    n.give(n.concat(parts, axis));
}

namespace {

// What a slice takes of an axis of the graph.
struct Taken
{
    int64_t start = 0, size = 0, stride = 1;
    bool isShrunk = false; // to one index, and the axis goes
};

bool hasBit(int64_t mask, size_t i)
{
    return (mask >> i & 1) != 0;
}

// By TensorFlow's rules; `size`: of the axis.
Taken takenOf(UffNode const& n, size_t i, int64_t size, std::vector<int64_t> const (&lists)[3])
{
    constexpr size_t kMostAxes = 9; // with the batch
    Taken t{0, size};
    if (i >= lists[0].size() || i >= kMostAxes)
        return t;
    int64_t const begin = lists[0][i], end = lists[1][i];
    t.stride = lists[2][i];
    if (t.stride == 0 || t.stride < -INT32_MAX || t.stride > INT32_MAX)
        n.invalid(fmt::format("the stride of axis {} is {}", i, t.stride));
    t.isShrunk = hasBit(n.attrInt("shrink_axis_mask", 0), i);
    if (t.isShrunk) {
        t.start = begin < 0 ? begin + size : begin;
        if (t.start < 0 || t.start >= size)
            n.invalid(fmt::format("index {} is outside of axis {} of {} elements", begin, i, size));
        t.size = t.stride = 1;
        return t;
    }
    bool const isUp = t.stride > 0;
    int64_t const low = isUp ? 0 : -1, high = isUp ? size : size - 1;
    auto const place = [&](int64_t v, bool isMasked, int64_t whole) {
        return isMasked ? whole : std::clamp(v < 0 ? v + size : v, low, high);
    };
    t.start = place(begin, hasBit(n.attrInt("begin_mask", 0), i), isUp ? low : high);
    int64_t const stop = place(end, hasBit(n.attrInt("end_mask", 0), i), isUp ? high : low);
    int64_t const way = isUp ? stop - t.start : t.start - stop, step = isUp ? t.stride : -t.stride;
    t.size = way > 0 ? (way + step - 1) / step : 0;
    return t;
}

} // namespace

void importStridedSlice(UffNode& n)
{
    for (char const* mask : {"new_axis_mask", "ellipsis_mask"})
        n.check(n.attrInt(mask, 0) == 0, fmt::format("field '{}' cannot be imported unless it is 0", mask));
    std::vector<int64_t> const lists[3] = {n.integersOf(1, "begin"), n.integersOf(2, "end"),
                                           n.integersOf(3, "the strides")};
    bool const isTensor = n.in(0).value.isTensor();
    Tensor const& x = isTensor ? n.tensorOf(0) : n.in(0);
    Dims const dims = x.value.dims();
    size_t const rank = size_t(dims.nbDims) + isTensor;
    if (lists[0].size() != lists[1].size() || lists[0].size() != lists[2].size() || lists[0].size() > rank)
        n.invalid(fmt::format("begin, end and strides have {}, {} and {} entries for {} dimensions", lists[0].size(),
                              lists[1].size(), lists[2].size(), rank));
    if (isTensor && !lists[0].empty()) {
        bool const isWhole = (lists[0][0] == 0 || hasBit(n.attrInt("begin_mask", 0), 0)) &&
                             hasBit(n.attrInt("end_mask", 0), 0) && lists[2][0] == 1 &&
                             !hasBit(n.attrInt("shrink_axis_mask", 0), 0);
        n.check(isWhole,
                "a part of the batch cannot be taken: axis 0 must begin at 0, with bit 0 of 'end_mask', stride 1 "
                "and no shrinking");
    }
    std::vector<Taken> taken; // by axis of x
    for (size_t i = 0; i < size_t(dims.nbDims); ++i)
        taken.push_back(takenOf(n, isTensor ? size_t(x.layout.order[i]) + 1 : i, dims.d[i], lists));
    std::vector<int> gone;
    Dims size{dims.nbDims, {}}, left{0, {}};
    for (size_t i = 0; i < taken.size(); ++i) {
        n.check(taken[i].size > 0, fmt::format("nothing is left of an axis of {} elements", dims.d[i]));
        size.d[i] = int32_t(taken[i].size);
        if (taken[i].isShrunk)
            gone.push_back(int(i));
        else
            left.d[left.nbDims++] = size.d[i];
    }
    if (isTensor) {
        auto const list = [&](int64_t Taken::*field) {
            return mapped(taken, [&](Taken const& t) { return Size(t.*field); });
        };
        ITensor& y = n.slice(x.value.tensor(), list(&Taken::start), list(&Taken::size), list(&Taken::stride));
        return n.give(n.squeeze(y, gone), without(x.layout, gone));
    }
    std::vector<int64_t> steps = stepsOf(dims);
    int64_t first = 0;
    for (size_t i = 0; i < taken.size(); ++i) {
        first += taken[i].start * steps[i];
        steps[i] *= taken[i].stride;
    }
    n.give(Value(n.reshaped(picked(n, x.value.constant(), size, steps, first), left)));
}

void importPad(UffNode& n)
{
    Tensor const& x = n.tensorOf(0);
    Dims const dims = x.value.dims();
    std::vector<int64_t> const pads = n.integersOf(1, "the paddings");
    if (pads.size() != 2 * (size_t(dims.nbDims) + 1))
        n.invalid(fmt::format("the paddings have {} entries; {} are needed, two for each dimension and the batch",
                              pads.size(), 2 * (dims.nbDims + 1)));
    n.check(pads[0] == 0 && pads[1] == 0, "the batch cannot be padded");
    Sizes start, size;
    Dims before{dims.nbDims, {}}, after{dims.nbDims, {}};
    constexpr int kPlane = 2; // the innermost dimensions, which have a layer of their own
    bool isPlane = dims.nbDims > kPlane;
    for (int i = 0; i < dims.nbDims; ++i) {
        size_t const axis = size_t(x.layout.order[size_t(i)]) + 1;
        int64_t const pre = pads[2 * axis], post = pads[2 * axis + 1];
        if (pre < 0 || post < 0 || pre + post + dims.d[i] > INT32_MAX)
            n.invalid(fmt::format("the paddings of axis {} are {} and {}", axis, pre, post));
        before.d[i] = int32_t(pre);
        after.d[i] = int32_t(post);
        start.emplace_back(-pre);
        size.emplace_back(pre + post + dims.d[i]);
        isPlane = isPlane && (i >= dims.nbDims - kPlane || pre + post == 0);
    }
    ITensor& t = x.value.tensor();
    if (!isPlane)
        return n.give(n.slice(t, start, size, Sizes(size.size(), Size(1)), nvinfer1::SliceMode::kFILL), x.layout);
    int const at = dims.nbDims - kPlane;
    auto& layer = n.added(n.network().addPaddingNd(t, makeDims({before.d + at, before.d + dims.nbDims}),
                                                   makeDims({after.d + at, after.d + dims.nbDims})));
    n.give(n.out(layer), x.layout);
}

namespace {

// Elements of a constant along an axis.
Constant gathered(UffNode const& n, Constant const& data, Constant const& indices, int axis)
{
    Dims one = data.dims, y{0, {}};
    one.d[axis] = 1;
    n.check(data.dims.nbDims + indices.dims.nbDims - 1 <= Dims::MAX_DIMS,
            "the result has more than 8 dimensions, the highest rank of the API");
    std::vector<int64_t> const steps = stepsOf(data.dims);
    std::vector<Constant> parts;
    for (int64_t k : indices.ints()) {
        if (k < 0 || k >= data.dims.d[axis])
            n.invalid(fmt::format("index {} is outside of axis {} of {} elements", k, axis, data.dims.d[axis]));
        parts.push_back(picked(n, data, one, steps, k * steps[size_t(axis)]));
    }
    n.check(!parts.empty(), "there are no indices");
    for (Dims const& d : {makeDims({data.dims.d, data.dims.d + axis}), indices.dims,
                          makeDims({data.dims.d + axis + 1, data.dims.d + data.dims.nbDims})})
        for (int i = 0; i < d.nbDims; ++i)
            y.d[y.nbDims++] = d.d[i];
    return n.reshaped(joined(n, parts, axis), y);
}

} // namespace

// Indices of TensorFlow are for the whole batch where the data have one.
void importGather(UffNode& n)
{
    Value const &data = (n.in(0).value.isTensor() ? n.tensorOf(0) : n.in(0)).value, &indices = n.in(1).value;
    int64_t const asked = n.hasAttr("axis") || !n.has(2)    ? n.attrInt("axis", 0)
                          : n.integersOf(2, "axis").empty() ? 0
                                                            : n.integersOf(2, "axis")[0];
    if (indices.type() != DataType::kINT32)
        n.invalid(fmt::format("the indices (input 1) are of type {}; they must be INT32", typeName(indices.type())));
    if (data.isConstant() && indices.isConstant())
        return n.give(Value(gathered(n, data.constant(), indices.constant(), n.axis(asked, data.rank()))));
    if (data.isConstant()) {
        int const axis = n.axis(asked, data.rank());
        n.check(axis == 0,
                fmt::format("axis is {}; of a constant whose indices have a batch, rows alone (axis 0) can be "
                            "taken",
                            axis));
        ITensor& i = n.inGraphOrder(1);
        return n.give(n.out(n.added(n.network().addGather(n.asTensor(data), i, 0))));
    }
    n.check(indices.isConstant(), "data and indices both have a batch, whose outcome would have two");
    Constant const& list = indices.constant();
    ITensor& x = n.inGraphOrder(0);
    int const axis = n.axis(asked, data.rank() + 1) - 1;
    n.check(axis >= 0, "axis 0 is the batch, which a network with an implicit batch cannot change");
    for (int64_t k : list.ints())
        if (k < 0 || k >= x.getDimensions().d[axis])
            n.invalid(
                fmt::format("index {} is outside of axis {} of {} elements", k, asked, x.getDimensions().d[axis]));
    n.give(n.out(n.added(n.network().addGather(x, n.asTensor(indices), axis))));
}

} // namespace tw::uff
