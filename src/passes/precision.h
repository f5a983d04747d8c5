// SPDX-License-Identifier: Apache-2.0
// What lower_precision is made of: which nodes stay in f32, how constants become f16, and how a fused node's body
// follows.
#pragma once

#include <map>
#include <set>
#include <string>

#include "base/result.h"
#include "ir/graph.h"
#include "passes/pass.h"

namespace tw::passes {

// Nodes of one graph, by what lower_precision does with them.
struct Precisions
{
    std::set<ir::Node const*> half;              // f32 outputs become f16
    std::set<ir::Value const*> shapes;           // host values: they and their types stay
    std::map<ir::Node const*, char const*> kept; // why a node with f32 outputs stays in f32
};

// An error when the user demands FP16 of a node that does not take it.
Result<Precisions> choosePrecisions(ir::Graph const& g, PassContext const& ctx);

// Takes its inputs in f32 and f16 alike, each for itself.
bool readsAnyFloat(ir::Node const& n);
// Whether FP16 holds the constant well enough to compute with: not when everything it has would become subnormal there.
bool fitsHalf(ir::Value const& constant);

// What became of weights on their way to f16.
struct HalfWeights
{
    int64_t outOfRange = 0, subnormal = 0;
    std::set<std::string> names;

    // f32 to f16, rounded to nearest even; finite values beyond the range become the last finite one. Constants that
    // share their bytes go on to; they are counted once.
    ir::Value* convert(ir::Graph& g, ir::Value const& v);
    void report(Log& log) const;

private:
    std::map<std::pair<void const*, int64_t>, BlobPtr> converted_; // by address and elements
    std::vector<BlobPtr> sources_;                                 // so that no address comes back
};

// y = x in another floating type, by a node in front of `position`.
Result<ir::Value*> addCast(ir::Graph& g, ir::Value* x, DataType type, int position);
// Body inputs and outputs take the types of the node's; between them the body computes in f32, as kernels do.
Result<void> fitBody(ir::Node& fused);

} // namespace tw::passes
