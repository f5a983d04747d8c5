// SPDX-License-Identifier: Apache-2.0
// The order of a tensor's axes. A graph has the axes in the order of its framework, which its nodes count them in: TensorFlow's
// images are N H W C. Layers for images take C H W, so tensors of the network stay in that order as long as no node asks for
// another; a Transpose is written down and done where a node needs it, so that one undoes another.
#pragma once

#include <string>
#include <vector>

#include "importers/common/values.h"

namespace tw_uff {
class DimensionOrders;
}

namespace tw::uff {

using namespace importers;

struct Layout
{
    std::vector<int> order; // [i]: which of the graph's axes axis i of the network's tensor is; both without the batch
    bool isTransposed = false; // by a Transpose of the graph, behind which its order is the one that was asked for
    int units = 0;        // dimensions of 1 behind those: a fully connected layer gives K, 1, 1, which plugins count on
    bool isImage = false; // it comes of a node that said which axis the channels are
};

// What a node gives. Constants have no batch and stand in the graph's order.
struct Tensor
{
    Value value;
    Layout layout;
    std::string missing; // why there is no value, where the graph has one
};

Tensor asInGraph(Value const& value);

bool isInOrder(std::vector<int> const& order); // 0, 1, 2, ...
// Which axes to take one after another to get from one order to the other: both are permutations of as many axes.
std::vector<int> between(std::vector<int> const& from, std::vector<int> const& to);
std::vector<int> inverse(std::vector<int> const& permutation);

// Without these axes of the network's tensor.
Layout without(Layout const& layout, std::vector<int> const& axes);

// Axis -> its place in the canonical order (data: N C and the others, kernels: K C and the others), of a tensor with `rank`
// axes. Empty: the orders have none for it, or not so many.
std::vector<int> placesOf(tw_uff::DimensionOrders const& orders, int rank);

} // namespace tw::uff
