// SPDX-License-Identifier: Apache-2.0
// Slice, Split, Tile.
#include "onnx/importer.h"

namespace tw::onnx {

namespace {

using nvinfer1::SliceMode;

// 1 for a negative number, else 0.
Size isNegative(ImportContext& ctx, Size const& s)
{
    return s.known() ? Size(s.value < 0) : ctx.min(ctx.max(ctx.sub(0, s), 0), 1);
}

Size clamp(ImportContext& ctx, Size const& s, Size const& low, Size const& high)
{
    return ctx.max(ctx.min(s, high), low);
}

void importSlice(ImportContext& ctx)
{
    ITensor& x = ctx.tensor(0);
    int const rank = x.getDimensions().nbDims;
    Sizes starts, ends, steps;
    std::vector<int64_t> axisList;
    bool hasAxes = false;
    if (ctx.opset() < 10) {
        for (int64_t v : ctx.requireInts("starts"))
            starts.emplace_back(v);
        for (int64_t v : ctx.requireInts("ends"))
            ends.emplace_back(v);
        hasAxes = ctx.hasAttr("axes");
        axisList = ctx.attrInts("axes");
    } else {
        starts = ctx.sizesFrom(ctx.input(1));
        ends = ctx.sizesFrom(ctx.input(2));
        hasAxes = ctx.hasInput(3);
        if (hasAxes)
            axisList = ctx.constantInts(3, "axes");
        if (ctx.hasInput(4))
            steps = ctx.sizesFrom(ctx.input(4));
    }
    if (!hasAxes)
        for (size_t i = 0; i < starts.size(); ++i)
            axisList.push_back(int64_t(i));
    if (steps.empty())
        steps.assign(starts.size(), Size(1));
    std::vector<int> const axes = ctx.axes(axisList, rank);
    if (starts.size() != axes.size() || ends.size() != axes.size() || steps.size() != axes.size())
        ctx.invalid("starts, ends, axes and steps must have one length");

    Sizes size = ctx.sizesOf(x), start(size.size(), Size(0)), stride(size.size(), Size(1));
    for (size_t i = 0; i < axes.size(); ++i) {
        size_t const a = size_t(axes[i]);
        Size const d = size[a], step = steps[i];
        if (step.known() && step.value == 0)
            ctx.invalid("a step must not be 0");
        // Positions are clamped to [0, d], for a negative step to [-1, d - 1].
        Size const back = isNegative(ctx, step);
        Size const low = ctx.sub(0, back), high = ctx.sub(d, back);
        auto position = [&](Size const& s) {
            if (back.known() && back.value == 0 && s.known() && s.value == 0)
                return Size(0); // also for an unknown d
            if (s.known() && s.value >= INT32_MAX)
                return high;
            return clamp(ctx, ctx.add(s, ctx.mul(isNegative(ctx, s), d)), low, high);
        };
        Size const from = position(starts[i]), to = position(ends[i]);
        // ceil((to - from) / step) = floor((to - from + step - sign(step)) / step)
        Size const sign = ctx.sub(1, ctx.add(back, back));
        Size const span = ctx.add(ctx.sub(to, from), ctx.sub(step, sign));
        size[a] = ctx.max(ctx.floorDiv(span, step), 0);
        start[a] = from;
        stride[a] = step;
    }
    ctx.setOutput(0, ctx.slice(x, start, size, stride));
}

// Parts by attribute (up to opset 12), by input, or as many equal ones as there are outputs.
void importSplit(ImportContext& ctx)
{
    ITensor& x = ctx.tensor(0);
    int const rank = x.getDimensions().nbDims, nbParts = ctx.nbOutputs();
    size_t const axis = size_t(ctx.axis(ctx.attrInt("axis", 0), rank));
    Sizes size = ctx.sizesOf(x);
    Sizes const start(size.size(), Size(0)), stride(size.size(), Size(1));
    Sizes parts;
    if (ctx.hasAttr("split")) {
        for (int64_t v : ctx.attrInts("split"))
            parts.emplace_back(v);
    } else if (ctx.hasInput(1)) {
        parts = ctx.sizesFrom(ctx.input(1));
    } else if (ctx.opset() >= 18) { // the last part is what the others, rounded up, leave
        if (ctx.attrInt("num_outputs", nbParts) != nbParts)
            ctx.invalid(fmt::format("num_outputs is not the number of outputs, {}", nbParts));
        Size const part = ctx.floorDiv(ctx.add(size[axis], nbParts - 1), nbParts);
        parts.assign(size_t(nbParts), part);
        parts.back() = ctx.sub(size[axis], ctx.mul(part, nbParts - 1));
    } else {
        if (size[axis].known() && size[axis].value % nbParts != 0)
            ctx.invalid(fmt::format("{} cannot be split into {} equal parts", size[axis].value, nbParts));
        parts.assign(size_t(nbParts), ctx.floorDiv(size[axis], nbParts));
    }
    if (int(parts.size()) != nbParts)
        ctx.invalid(fmt::format("{} lengths for {} outputs", parts.size(), nbParts));
    Size at(0);
    Size const whole = size[axis];
    for (int i = 0; i < nbParts; ++i) {
        Size const part = parts[size_t(i)];
        Sizes from = start;
        from[axis] = at;
        size[axis] = part;
        at = ctx.add(at, part);
        if ((part.known() && part.value < 0) || (at.known() && whole.known() && at.value > whole.value))
            ctx.invalid(fmt::format("the parts do not fit into {}", whole.value));
        ctx.setOutput(i, ctx.slice(x, from, size, stride));
    }
}

void importTile(ImportContext& ctx)
{
    ITensor& x = ctx.tensor(0);
    Sizes size = ctx.sizesOf(x);
    Sizes const repeats = ctx.sizesFrom(ctx.input(1));
    if (repeats.size() != size.size())
        ctx.invalid(fmt::format("{} repeats for rank {}", repeats.size(), size.size()));
    for (size_t i = 0; i < size.size(); ++i) {
        if (repeats[i].known() && repeats[i].value < 0)
            ctx.invalid("repeats must not be negative");
        size[i] = ctx.mul(size[i], repeats[i]);
    }
    ctx.setOutput(0, ctx.slice(x, Sizes(size.size(), Size(0)), size, Sizes(size.size(), Size(1)), SliceMode::kWRAP));
}

} // namespace

void register_slice(ImporterMap& map)
{
    map.add("Slice", importSlice);
    map.add("Split", importSplit);
    map.add("Tile", importTile, 6);
}

} // namespace tw::onnx
