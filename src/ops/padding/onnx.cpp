// SPDX-License-Identifier: Apache-2.0
// Pad. It becomes a slice that begins before the tensor: all dimensions, modes and values that a slice has.
#include "onnx/importer.h"

namespace tw::onnx {

namespace {

using nvinfer1::SliceMode;

SliceMode modeOf(ImportContext& ctx)
{
    std::string const mode = ctx.attrString("mode", "constant");
    if (mode == "constant")
        return SliceMode::kFILL;
    if (mode == "reflect")
        return SliceMode::kREFLECT;
    if (mode == "edge")
        return SliceMode::kCLAMP;
    if (mode == "wrap")
        return SliceMode::kWRAP;
    ctx.fail("attribute 'mode' is '" + mode + "'; constant, reflect, edge and wrap are possible");
}

// [before..., after...] for every axis of the input.
Sizes padsOf(ImportContext& ctx, int rank)
{
    Sizes given;
    if (ctx.opset() < 11) {
        std::vector<int64_t> const pads = ctx.hasAttr("paddings") ? ctx.attrInts("paddings") : ctx.requireInts("pads");
        given.assign(pads.begin(), pads.end());
    } else {
        given = ctx.sizesFrom(ctx.input(1));
    }
    std::vector<int> axes = allAxes(rank);
    if (ctx.hasInput(3))
        axes = ctx.axes(ctx.constantInts(3, "axes"), rank);
    if (given.size() != 2 * axes.size())
        ctx.invalid(fmt::format("there are {} pads for {} dimensions", given.size(), axes.size()));
    Sizes pads(2 * size_t(rank), Size(0));
    for (size_t i = 0; i < axes.size(); ++i) {
        pads[size_t(axes[i])] = given[i];
        pads[size_t(rank + axes[i])] = given[axes.size() + i];
    }
    return pads;
}

// The fill value as a scalar of the data's type; null for zero.
Value fillOf(ImportContext& ctx, DataType type)
{
    if (ctx.opset() < 11) {
        float const value = ctx.attrFloat("value", 0);
        return value == 0 ? Value() : Value(ctx.filled(value, type, Dims{0, {}}));
    }
    Value const value = ctx.optionalInput(2);
    if (value.isNull())
        return value;
    if (value.isTensor())
        return ctx.cast(ctx.reshape(value.tensor(), Dims{0, {}}), type);
    if (value.constant().count != 1)
        ctx.invalid(fmt::format("the constant value has {} elements, not one", value.constant().count));
    ctx.decideBy(value);
    double const number = value.constant().floatAt(0);
    return number == 0 ? Value() : Value(ctx.filled(number, type, Dims{0, {}}));
}

// x without what negative pads take away, which then become 0: what repeats is the rest.
ITensor& cropped(ImportContext& ctx, ITensor& x, Sizes& pads)
{
    Sizes size = ctx.sizesOf(x), start(size.size(), Size(0));
    bool isWhole = true;
    for (size_t i = 0; i < pads.size(); ++i) {
        Size& pad = pads[i];
        size_t const axis = i % size.size();
        if (!pad.known() || pad.value >= 0)
            continue;
        isWhole = false;
        size[axis] = ctx.add(size[axis], pad);
        if (i < size.size())
            start[axis] = Size(-pad.value);
        pad = Size(0);
    }
    return isWhole ? x : ctx.slice(x, start, size, Sizes(size.size(), Size(1)));
}

void importPad(ImportContext& ctx)
{
    int const rank = ctx.input(0).rank();
    SliceMode const mode = modeOf(ctx);
    Sizes pads = padsOf(ctx, rank);
    bool const repeats = mode == SliceMode::kWRAP || mode == SliceMode::kREFLECT;
    ITensor& x = repeats ? cropped(ctx, ctx.tensor(0), pads) : ctx.tensor(0);
    Sizes const in = ctx.sizesOf(x);
    Sizes start, size, stride(size_t(rank), Size(1));
    for (int i = 0; i < rank; ++i) {
        Size const before = pads[size_t(i)], after = pads[size_t(rank + i)];
        start.push_back(ctx.sub(0, before));
        size.push_back(ctx.add(in[size_t(i)], ctx.add(before, after)));
        if (size.back().known() && size.back().value < 0)
            ctx.invalid(fmt::format("the pads crop more than dimension {} has", i));
    }
    Value const fill = mode == SliceMode::kFILL ? fillOf(ctx, x.getType()) : Value();
    ITensor* const value = fill.isNull() ? nullptr : &ctx.asTensor(fill);
    ctx.setOutput(0, ctx.slice(x, start, size, stride, mode, value));
}

} // namespace

void register_padding(ImporterMap& map)
{
    map.add("Pad", importPad);
}

} // namespace tw::onnx
