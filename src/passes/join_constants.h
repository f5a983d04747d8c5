// SPDX-License-Identifier: Apache-2.0
// Constants put together of others, row by row.
#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"
#include "recipe/recipes.h"

namespace tw::passes {

// `count` elements of each row of `from`, from the element `first` on.
struct RowPart
{
    ir::Value const* from = nullptr; // null: zeros
    int64_t first = 0, count = 0;
};

// A constant of type and shape `dims`, each of whose `rows` rows is that of the parts side by side. `recipes`: null
// where nothing may be refitted.
Result<ir::Value*> joinConstants(ir::Graph& g, recipe::Recipes* recipes, std::string const& name, DataType type,
                                 Extents const& dims, int64_t rows, std::vector<RowPart> const& parts);

} // namespace tw::passes
