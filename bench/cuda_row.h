// SPDX-License-Identifier: Apache-2.0
// One problem of bench_cuda_tactics.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/extents.h"
#include "base/types.h"
#include "ir/op_def.h"

namespace tw::bench {

struct Row
{
    std::string name;
    ir::OpDef const& op;
    std::unique_ptr<ir::AttrsBase> attrs;
    std::vector<std::pair<DataType, Extents>> inputs;
    double operations = 0; // 0: bytes count
    size_t constants = 0;  // of the last inputs
    size_t behind = 0;     // inputs after those
    double bytes = 0;      // that have to be moved; 0: all inputs and outputs
};

template <class A>
std::unique_ptr<ir::AttrsBase> with(std::function<void(A&)> const& set)
{
    auto a = std::make_unique<A>();
    set(*a);
    return a;
}

// Element by element, and what reduces or normalizes: softmax, layer norm, reductions, pooling.
std::vector<Row> elementRows();
// What only moves elements: transposes, reformats, slices, gathers, padding, resizes.
std::vector<Row> movingRows();
// Matrix products, convolutions, attention.
std::vector<Row> productRows();

} // namespace tw::bench
