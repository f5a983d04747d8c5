// SPDX-License-Identifier: Apache-2.0
// Constant, whose numbers are known at import (fold.cpp): what is left has none that can be.
#include "onnx/importer.h"

namespace tw::onnx {

void register_constant(ImporterMap& map)
{
    map.add("Constant", [](auto& ctx) {
        for (char const* attr : {"value_string", "value_strings", "sparse_value"})
            ctx.check(!ctx.hasAttr(attr), fmt::format("attribute '{}' cannot be imported", attr));
        ctx.invalid("it has no value");
    });
}

} // namespace tw::onnx
