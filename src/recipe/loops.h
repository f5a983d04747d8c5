// SPDX-License-Identifier: Apache-2.0
// What the files of loops share (runLoop(), recipes.h). Each loop gives the node's output; without data where there is none for it.
#pragma once

#include <vector>

#include "base/tensor.h"
#include "ir/graph.h"

namespace tw::recipe {

// `narrow` stretched over `wide`: element k of it stands for `inner` neighbours, `outer` times.
struct Rows
{
    int64_t outer = 1, count = 1, inner = 1;
};

// False: it is not stretched so.
bool findRows(Extents const& wide, Extents const& narrow, Rows& rows);

// Of weights that become INT8 (int8_loops.cpp): magnitudes and roundings, largest elements, and numbers by steps.
Tensor unaryLoop(ir::Node const& node, std::vector<TensorRef> const& inputs);
Tensor reduceLoop(ir::Node const& node, std::vector<TensorRef> const& inputs);
Tensor quantizeLoop(ir::Node const& node, std::vector<TensorRef> const& inputs);

} // namespace tw::recipe
