// SPDX-License-Identifier: Apache-2.0
// OneHot. Indices and depth may have any number type; indices in [-depth, -1] count from the end.
#include "onnx/importer.h"

namespace tw::onnx {

namespace {

void importOneHot(ImportContext& ctx)
{
    ITensor& indices = ctx.cast(ctx.tensor(0), DataType::kINT32);
    Value depth = ctx.input(1);
    if (depth.isConstant() && depth.constant().count != 1)
        ctx.invalid("depth has shape " + describe(depth.dims()) + ", it must have one element");
    if (depth.isTensor())
        depth = Value(ctx.cast(depth.tensor(), DataType::kINT32));
    Sizes const sizes = ctx.sizesFrom(depth);
    if (sizes.size() != 1)
        ctx.invalid("depth has shape " + describe(depth.dims()) + ", it must have one element");
    if (sizes[0].known() && (sizes[0].value < 1 || sizes[0].value > INT32_MAX))
        ctx.fail(fmt::format("depth is {}, it must be positive and fit into 32 bits", sizes[0].value));
    ITensor& values = ctx.tensor(2);
    int const axis = ctx.axis(ctx.attrInt("axis", -1), indices.getDimensions().nbDims + 1);
    ctx.setOutput(0, ctx.out(ctx.added(ctx.network().addOneHot(indices, values, ctx.asScalar(sizes[0]), axis))));
}

} // namespace

void register_one_hot(ImporterMap& map)
{
    map.add("OneHot", importOneHot);
}

} // namespace tw::onnx
