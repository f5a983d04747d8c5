// SPDX-License-Identifier: Apache-2.0
// Attention with sinks, a score of each head whose weight goes nowhere, as exporters write it:
//   p = softmax(concatenation(s, sinks))[.., : -1], perhaps of the scores less the largest of them;  y = p v
// No op has softmax with sinks but attention, so fuse_attention sees p = softmax(s) until its node is there, and gets the sinks then.
#pragma once

#include <functional>
#include <optional>

#include "passes/rewrite.h"

namespace tw::passes {

struct SinkScores
{
    ir::Node* part = nullptr; // the slice
    ir::Value* scores = nullptr;
    ir::Value* sinks = nullptr;                     // as many elements as heads
    ir::Node *softmax = nullptr, *joined = nullptr; // the concatenation
};

// Of the product's weights; none: they have no sinks.
std::optional<SinkScores> sinkScoresOf(ir::Graph const& g, ir::Node const& product);

// What `fuse` makes of the product behind softmax(s), with the sinks then; null, and nothing changed: nothing. It has no body: its op
// says what it means.
Result<ir::Node*> fuseWithSinks(ir::Graph& g, ir::Node& product, SinkScores const& found,
                                std::function<Result<ir::Node*>(ir::Node&)> const& fuse);

} // namespace tw::passes
