// SPDX-License-Identifier: Apache-2.0
// How the constants of an engine are computed of the weights that refit replaces. While a network is built, passes give
// each constant that they compute of others its recipe; a refit runs the recipes again with other weights.
// The recipes are one graph: sources are constants that name a layer, everything else follows by nodes.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "base/blob.h"
#include "base/result.h"
#include "base/tensor.h"
#include "base/workers.h"
#include "ir/graph.h"
#include "ops/shuffle/op.h"
#include "tactic/registry.h"

namespace tw::recipe {

// In the name of weights that are a part of an array: "W<mark>128/512", 128 its first element, 512 those of the whole.
inline constexpr char kPartMark = '\x1f';

// Constants are known by their Blob object: values that only see its bytes in other dimensions share it, while two
// sources keep one each, whatever bytes they have at first.
class Recipes
{
public:
    // Constants of floating types that came from a layer, regions too, become sources. Those that neither a name nor a layer
    // and role tell from others do not. Scales of quantize and dequantize of role kAny are of the range of the tensor that they
    // name as layer.
    Result<void> addSources(ir::Graph const& g);
    // Whether a source is part of what the constant's elements follow from.
    bool reaches(ir::Value const& constant) const;
    // Whether a pass must decide nothing by the elements: one of these sources is weights of a layer, or a constant of more
    // than one element. Constants of one element are numbers that patterns ask for (an epsilon, a half, an exponent).
    bool protects(ir::Value const& constant) const;
    // `made` are the elements of the only output of `computation`, a graph of constants. Nothing when no source reaches
    // it.
    Result<void> record(ir::Graph const& computation, BlobPtr const& made);
    // What a rewrite stands on: a refit is refused, with `text`, when it makes the one number of `a` differ from that of
    // `b`, or an element of `scale` no positive finite number.
    Result<void> keepEqual(ir::Value const& a, ir::Value const& b, std::string const& text);
    Result<void> keepPositive(ir::Value const& scale, std::string const& text);
    // `step`, one f32, is that of `tensor` in INT8: its range, the largest magnitude, by 127. The range becomes a source,
    // of role kAny and with the tensor's name for a layer.
    Result<void> addRange(std::string const& tensor, BlobPtr const& step);
    // Elements that the build has looked at and cannot change any more: their sources are none from here on.
    void fix(Blob const& blob);

    // Around a pass: a constant whose elements it has seen (passes::constantOf) and that a node reads no longer has decided
    // something, and finish() fixes its sources of those that passes may use.
    class Watch
    {
    public:
        Watch(Recipes* recipes, ir::Graph const& g); // null: nothing is watched
        ~Watch();
        void finish();
        static void see(ir::Value const& constant);

    private:
        // By constant: which inputs of which nodes it is. (A new node may lie where an old one was.)
        using Readers = std::map<Blob const*, std::set<std::tuple<ir::Node const*, ir::OpDef const*, size_t>>>;
        void collectReaders(ir::Graph const& g, Readers& readers) const;

        Recipes* recipes_;
        ir::Graph const& g_;
        Readers before_;
        std::set<Blob const*> seen_;
        Watch* outer_;
    };

    // What the constants of `g` (and of its regions) are, as plan::Contents has it. Nothing is recorded afterwards.
    struct Finished
    {
        std::unique_ptr<ir::Graph> recipes;
        std::map<ir::Value const*, int32_t> made;
    };
    Result<Finished> finish(ir::Graph const& g);

private:
    using Sources = std::set<ir::Value const*>;
    struct Known
    {
        BlobPtr data; // so that no address comes back
        ir::Value* value = nullptr;
        Sources sources;
    };
    // A node of the recipes that makes BOOL; it must make nothing but true.
    struct Condition
    {
        ir::Value* holds = nullptr;
        Sources sources;
    };
    Result<ir::Value*> valueOf(ir::Value const& constant, Sources& sources);
    Result<ir::Value*> floatsOf(ir::Value const& constant, Sources& sources);
    Result<ir::Value*> compare(int32_t operation, ir::Value* a, ir::Value* b, std::string const& name);
    void keepConditions(Sources const& used);
    bool mayBeUsed(ir::Value const& source) const;
    void fixNamesakes();
    bool isLive(Known const& k) const;

    std::unique_ptr<ir::Graph> graph_ = std::make_unique<ir::Graph>();
    std::map<Blob const*, Known> known_;
    std::map<std::tuple<Blob const*, DataType, std::string>, ir::Value*> views_; // in other dimensions, and literals
    Sources fixed_;
    Sources scales_; // read as scales of quantize and dequantize alone: what passes ask of these, they keep
    std::vector<Condition> conditions_;
    std::set<std::pair<Blob const*, Blob const*>> compared_; // there is a condition of
};

// Computes constants of constants, and records how. Used by passes: take() what there is, add() nodes, then finish().
class Computation
{
public:
    explicit Computation(Recipes* recipes) : recipes_(recipes) {} // null: nothing is recorded
    ir::Value* take(ir::Value const& constant);
    // The same elements in other dimensions.
    ir::Value* take(ir::Value const& constant, Extents const& dims);
    ir::Value* literal(DataType type, Extents const& dims, double value);
    Result<ir::Value*> add(ir::OpDef const& op, ir::AttrsBase const& attrs, std::vector<ir::Value*> inputs);
    Result<BlobPtr> finish(ir::Value* result);

    // One that is to be finished. What is done of many at a time is shared out to the workers, and recorded in order.
    struct Open;
    static Result<std::vector<BlobPtr>> finishAll(std::vector<Open>& list, Workers& workers);

private:
    Recipes* recipes_;
    ir::Graph graph_;
};

struct Computation::Open
{
    Computation computation;
    ir::Value* result = nullptr;
};

// Runs recipes. Nodes that large weights go through have loops of their own, which give the bits of their reference.

Result<std::vector<Tensor>> evaluateNode(ir::Node const& node, std::vector<TensorRef> const& inputs);

// Graphs of constants: the bytes of each output, null for those that need none of the constants in `changed` (by
// position among values(); empty: all are wanted). Nodes that do not wait for each other are shared out to the workers.
Result<std::vector<BlobPtr>> evaluate(ir::Graph const& graph, std::vector<bool> const& changed,
                                      Workers& workers = serialWorkers());

// Loops for what passes do to large weights: one factor for each channel, side by side, parts, transposed, in FP16. Each
// gives the bits of the op's reference: of two floats a sum, difference, product or quotient that is rounded from
// double is the one that is rounded at once, and so is that of two narrow ones which is rounded from float: its 24 bits
// are twice their 11 or 8, and two more (of BF16 from 2^-126 on).

// The node's output; without data where there is no loop for it.
Tensor runLoop(ir::Node const& node, std::vector<TensorRef> const& inputs);

// A constant's elements in other dimensions, as a node of the recipes.

inline Result<ir::Value*> reshaped(ir::Graph& g, ir::Value* v, Extents const& dims)
{
    if (v->isConstant() && ir::extentsOf(v->shape) == dims)
        return v;
    ops::shuffle::Attrs a;
    a.hasReshape = true;
    a.zeroIsPlaceholder = false;
    a.reshape.assign(dims.begin(), dims.end());
    TW_ASSIGN(ir::Node * n, g.addNode(ops::shuffle::def(), a.clone(), {v}, v->name + ".view"));
    return n->outputs[0];
}

} // namespace tw::recipe
