// SPDX-License-Identifier: Apache-2.0
// Shape. Dimensions that are all known were folded before this is reached.
#include <algorithm>

#include "onnx/importer.h"

namespace tw::onnx {

namespace {

void importShape(ImportContext& ctx)
{
    ITensor& x = ctx.tensor(0);
    int64_t const rank = x.getDimensions().nbDims;
    auto bound = [&](int64_t v) { return std::clamp<int64_t>(v < 0 ? v + rank : v, 0, rank); };
    int64_t const start = bound(ctx.attrInt("start", 0)), end = bound(ctx.attrInt("end", rank));
    ITensor& shape = ctx.out(ctx.added(ctx.network().addShape(x)));
    if (start == 0 && end == rank)
        return ctx.setOutput(0, shape);
    ctx.setOutput(0, ctx.slice(shape, {Size(start)}, {Size(std::max<int64_t>(end - start, 0))}, {Size(1)}));
}

} // namespace

void register_shape(ImporterMap& map)
{
    map.add("Shape", importShape);
}

} // namespace tw::onnx
