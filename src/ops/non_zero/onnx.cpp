// SPDX-License-Identifier: Apache-2.0
// NonZero.
#include "onnx/importer.h"

namespace tw::onnx {

namespace {

// A scalar that is not zero is a column of no coordinates, as of one element its only place.
void importNonZero(ImportContext& ctx)
{
    ctx.setOutput(0, ctx.out(ctx.added(ctx.network().addNonZero(ctx.tensor(0)))));
}

} // namespace

void register_non_zero(ImporterMap& map)
{
    map.add("NonZero", importNonZero);
}

} // namespace tw::onnx
