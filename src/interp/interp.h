// SPDX-License-Identifier: Apache-2.0
// Runs any graph on the reference files: constant folding, shape tensors, calibration, and the oracle of every test.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "base/result.h"
#include "base/tensor.h"
#include "ir/graph.h"

namespace tw::interp {

struct Options
{
    // Called with every value as it is computed (graph inputs and constants not included).
    std::function<void(ir::Value const&, TensorRef const&)> observe;
    // State of random ops; one for each execution context.
    uint64_t* randomState = nullptr;
    // Elements of output 0 that are looked at, for nodes whose output has so many elements (see RefContext::wants).
    std::vector<bool> wanted;
    // What is f16 is kept in f32, rounded nowhere between inputs and outputs: kernels may compute f16 graphs so.
    bool widensHalf = false;
    // Axis 0 of inputs may have another size than the graph declares.
    bool takesAnyBatch = false;
    // A loop that runs longer than this is an error: graphs may be untrusted.
    int64_t maxTrips = 1'000'000;
};

// `inputs` in the order of graph.inputs, with the graph's types; shapes must agree with the graph's (symbols take the
// values that the inputs give them). Outputs in the order of graph.outputs.
Result<std::vector<Tensor>> run(ir::Graph const& graph, std::vector<TensorRef> const& inputs,
                                Options const& options = {});

// One node on concrete inputs (null data: optional input that is not given). Element limit: 2^31 - 1 an output.
Result<std::vector<Tensor>> runNode(ir::Node const& node, std::vector<TensorRef> const& inputs,
                                    Options const& options = {});

// Types and shapes of a node's outputs for concrete inputs; a data-dependent size comes out as its upper bound with
// `bounded` set. Elements of shape inputs are read from the tensors.
struct ConcreteOutput
{
    DataType type;
    Extents dims;
    bool bounded = false;
    bool unlimited = false; // bounded, and nothing is known of the bound: dims are 0 there
};
Result<std::vector<ConcreteOutput>> inferConcrete(ir::Node const& node, std::vector<TensorRef> const& inputs);

} // namespace tw::interp
