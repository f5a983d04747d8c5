// SPDX-License-Identifier: Apache-2.0
// What lower_precision and the builder's choice of types are made of: the types that each node may have and why, how a
// node, its constants and a fused node's body become the narrow type, f16 or what a build permits in its place.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "base/result.h"
#include "ir/graph.h"
#include "passes/pass.h"

namespace tw::passes {

// The types of the nodes of one graph: those preferred where nobody asks a clock, and what is allowed beside them.
struct Precisions
{
    DataType type = DataType::kHalf;             // the narrow one
    std::set<ir::Node const*> narrow;            // f32 outputs become `type`
    std::set<ir::Node const*> bound;             // of these: f32 is not allowed, the user asks for less
    std::set<ir::Value const*> shapes;           // host values: they and their types stay
    std::map<ir::Node const*, std::string> kept; // why `type` is not allowed for a node with f32 outputs

    bool isNarrow(ir::Node const* n) const { return n && narrow.contains(n); }
    // A value whose type is that of its maker.
    bool isOpen(ir::Value const* v) const { return v && isFullFloat(v->type) && !shapes.contains(v); }
    // Whether input i becomes narrow with its node.
    bool turns(ir::Node const& n, size_t i) const;
};

// The type that tensors of FP32 may be stored in by a build; nothing: FP32 alone.
std::optional<DataType> narrowType(Permissions permits, TargetInfo const& target);
// An error when the user demands FP16 of a node that does not take it.
Result<Precisions> choosePrecisions(ir::Graph const& g, PassContext const& ctx);

// Takes its inputs in f32 and f16 alike, each for itself.
bool readsAnyFloat(ir::Node const& n);
// Reads coordinates of pixels there, for which FP16 has too few digits.
bool readsCoordinates(ir::Node const& n, ir::Value const* x);
// Costs about as little in f32: moving and element-wise nodes, reductions, and outer products.
bool isCheap(ir::Node const& n);
// Whether a narrow type holds the constant well enough to compute with: not when everything it has would become subnormal
// there.
bool fits(ir::Value const& constant, DataType type);

// What became of weights on their way to a narrow type.
struct NarrowWeights
{
    int64_t outOfRange = 0, subnormal = 0;
    std::set<std::string> names;
    recipe::Recipes* recipes = nullptr; // as in PassContext

    // f32 to `type`, the same in all calls, rounded to nearest even; finite values beyond the range become the last finite one. Constants that
    // share their bytes, of other graphs too, go on to; they are counted once.
    Result<ir::Value*> convert(ir::Graph& g, ir::Value const& v, DataType type);
    void report(Log& log) const;

private:
    DataType type_ = DataType::kHalf;
    std::map<std::pair<void const*, int64_t>, BlobPtr> converted_; // by address and elements
    std::vector<BlobPtr> sources_;                                 // so that no address comes back
};

// y = x in another floating type, by a node before `position`.
Result<ir::Value*> addCast(ir::Graph& g, ir::Value* x, DataType type, int position);
// x in f16 and in f32 again, by nodes before `position`.
Result<ir::Value*> addRounding(ir::Graph& g, ir::Value* x, int position);
// The same behind the node that makes x: all that read x, and the graph where x is an output, read that.
Result<ir::Value*> roundForAll(ir::Graph& g, ir::Value* x);
// Body inputs and outputs take the types of the node's; between them the body computes in f32, as kernels do.
Result<void> fitBody(ir::Node& fused);

// Attributes that say a type, and the outputs for which `turns` holds, become `type`; the body follows. The inputs that
// turn have done so.
Result<void> makeNarrow(ir::Node& n, DataType type, std::function<bool(size_t)> const& turns);

// Rewrites the graph into the types of `p`, with conversions between them: one for each value.
struct Lowered
{
    bool changed = false;
    int casts = 0;
};
Result<Lowered> lowerTo(ir::Graph& g, Precisions const& p, NarrowWeights& weights);

// A node alone, in other types than it has in its graph: what tactics are tried on before the graph is rewritten.
struct PosedNode
{
    std::unique_ptr<ir::Graph> graph;
    ir::Node const* node = nullptr;
};
// In f32 or the narrow type of `p`. What reads both gets what the makers of its inputs have by `p`.
Result<PosedNode> poseNode(ir::Graph const& g, ir::Node const& n, DataType type, Precisions const& p,
                           NarrowWeights& weights);

} // namespace tw::passes
