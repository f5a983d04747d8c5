// SPDX-License-Identifier: Apache-2.0
// TensorScatter (opset 24): keys or values written into what is kept from earlier calls, in place where a client gives both
// one address.
#include <vector>

#include "onnx/importer.h"

namespace tw::onnx {

ITensor& scattered(ImportContext& ctx, ITensor& cache, ITensor& update, ITensor* begin, int axis,
                   std::string const& mode)
{
    std::vector<ITensor*> inputs{&cache, &update};
    if (begin)
        inputs.push_back(begin);
    bool const isBool = cache.getType() == DataType::kBOOL; // of which plugins have none
    for (size_t i = 0; isBool && i < 2; ++i)
        inputs[i] = &ctx.cast(*inputs[i], DataType::kINT32);
    using enum nvinfer1::PluginFieldType;
    auto const along = int32_t(axis);
    nvinfer1::PluginField const fields[] = {{"axis", &along, kINT32, 1},
                                            {"mode", mode.data(), kCHAR, int32_t(mode.size())}};
    ITensor& y = standardPlugin(ctx, "TensorScatter", fields, inputs);
    return isBool ? ctx.cast(y, DataType::kBOOL) : y;
}

namespace {

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
    ITensor* const begin = ctx.hasInput(2) ? &ctx.tensor(2) : nullptr;
    if (begin && (begin->getType() != DataType::kINT32 || begin->getDimensions().nbDims != 1))
        ctx.invalid(fmt::format("write_indices is {} of shape {}, not integers of shape [batch]",
                                typeName(begin->getType()), describe(begin->getDimensions())));
    ctx.setOutput(0, scattered(ctx, cache, update, begin, axis, mode));
}

} // namespace

void register_composites_tensor_scatter(ImporterMap& map)
{
    map.add("TensorScatter", importTensorScatter, 24);
}

} // namespace tw::onnx
