// SPDX-License-Identifier: Apache-2.0
#include "importers/common/node.h"

namespace tw::importers {

ITensor& positions(ImportContext& ctx, Size const& count)
{
    bool const known = count.known() && count.value >= 0 && count.value <= INT32_MAX;
    Dims const dims{1, {known ? int32_t(count.value) : 0}};
    auto& fill = ctx.added(ctx.network().addFill(dims, nvinfer1::FillOperation::kLINSPACE));
    if (!known)
        fill.setInput(0, ctx.asTensor(count));
    fill.setInput(1, ctx.scalar(0, DataType::kINT32, 0));
    fill.setInput(2, ctx.asTensor(Value(ctx.intConstant({1}))));
    return ctx.out(fill);
}

} // namespace tw::importers
