// SPDX-License-Identifier: Apache-2.0
// TensorScatter (opset 24): keys or values written into what is kept from earlier calls.
#include "onnx/importer.h"

namespace tw::onnx {

namespace {

using Op = nvinfer1::ElementWiseOperation;

// Where the update's rows go along the axis, in its shape: begin[b] + i, modulo `length` where they wrap.
ITensor& placesOf(ImportContext& ctx, ITensor& begin, Sizes const& update, int axis, Size const& length, bool wraps)
{
    int const rank = int(update.size());
    std::vector<int> others = allAxes(rank);
    std::erase(others, axis);
    ITensor& steps = ctx.unsqueeze(positions(ctx, update[size_t(axis)]), others);
    std::vector<int> behind = allAxes(rank);
    behind.erase(behind.begin());
    ITensor* at = &ctx.elementwise(ctx.unsqueeze(begin, behind), steps, Op::kSUM);
    if (wraps) {
        ITensor& n = ctx.reshape(ctx.asScalar(length), unitDims(rank));
        at = &ctx.elementwise(*at, ctx.elementwise(ctx.elementwise(*at, n, Op::kFLOOR_DIV), n, Op::kPROD), Op::kSUB);
    }
    return ctx.expand(*at, update);
}

void importTensorScatter(ImportContext& ctx)
{
    ITensor &cache = ctx.tensor(0), &update = ctx.tensor(1);
    Dims const d = cache.getDimensions(), u = update.getDimensions();
    int const rank = d.nbDims, axis = ctx.axis(ctx.attrInt("axis", -2), rank);
    if (axis == 0)
        ctx.invalid("axis is 0, which is the batch");
    bool fits = u.nbDims == rank;
    for (int i = 0; fits && i < rank; ++i)
        fits = d.d[i] < 0 || u.d[i] < 0 || (i == axis ? u.d[i] <= d.d[i] : u.d[i] == d.d[i]);
    if (!fits)
        ctx.invalid(fmt::format("an update of shape {} does not fit a cache of shape {} along axis {}", describe(u),
                                describe(d), axis));
    std::string const mode = ctx.attrString("mode", "linear");
    if (mode != "linear" && mode != "circular")
        ctx.invalid("mode '" + mode + "' is neither linear nor circular");
    Sizes const sizes = ctx.sizesOf(cache), written = ctx.sizesOf(update);
    size_t const along = size_t(axis);
    if (!ctx.hasInput(2)) { // the first rows
        Sizes start(size_t(rank), Size(0)), rest = sizes;
        start[along] = written[along];
        rest[along] = ctx.sub(sizes[along], written[along]);
        return ctx.setOutput(0,
                             ctx.concat({&update, &ctx.slice(cache, start, rest, Sizes(size_t(rank), Size(1)))}, axis));
    }
    ITensor& begin = ctx.tensor(2);
    if (begin.getType() != DataType::kINT32 || begin.getDimensions().nbDims != 1)
        ctx.invalid(fmt::format("write_indices is {} of shape {}, not integers of shape [batch]",
                                typeName(begin.getType()), describe(begin.getDimensions())));
    ITensor& places = placesOf(ctx, begin, written, axis, sizes[along], mode == "circular");
    auto& layer = ctx.added(ctx.network().addScatter(cache, places, update, nvinfer1::ScatterMode::kELEMENT));
    layer.setAxis(axis);
    ctx.setOutput(0, ctx.out(layer));
}

} // namespace

void register_composites_tensor_scatter(ImporterMap& map)
{
    map.add("TensorScatter", importTensorScatter, 24);
}

} // namespace tw::onnx
