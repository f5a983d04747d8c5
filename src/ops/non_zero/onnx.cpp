// SPDX-License-Identifier: Apache-2.0
// NonZero.
#include "onnx/importer.h"

namespace tw::onnx {

namespace {} // namespace

void register_non_zero(ImporterMap& map)
{
    // A scalar that is not zero is a column of no coordinates, as of one element its only place.
    map.add("NonZero",
            [](auto& ctx) { ctx.setOutput(0, ctx.out(ctx.added(ctx.network().addNonZero(ctx.tensor(0))))); });
}

} // namespace tw::onnx
