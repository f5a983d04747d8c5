// SPDX-License-Identifier: Apache-2.0
// The op `recurrence` of a cell that was found, and the nodes that bring its inputs into shape.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/tensor.h"
#include "ir/graph.h"
#include "ops/concatenation/op.h"
#include "ops/elementwise/op.h"
#include "ops/identity/op.h"
#include "ops/recurrence/op.h"
#include "ops/shuffle/op.h"
#include "ops/slice/op.h"
#include "passes/fuse_nodes.h"
#include "passes/recurrence/cell_algebra.h"
#include "tactic/registry.h"

namespace tw::passes {

// Which cell of ops/recurrence sums of a loop's body are.

// `scale` times a block of a matrix (a product) or of a vector (a bias).
struct CellBlock
{
    CellFactor factor;
    double scale = 1;
};
// What a product with an input reads: columns of a leaf.
struct CellSource
{
    int leaf = 0;
    int64_t begin = 0, count = 0;
    auto operator<=>(CellSource const&) const = default;
};
struct CellGate
{
    std::vector<std::pair<CellSource, CellBlock>> x;
    std::vector<CellBlock> h;
    std::vector<CellBlock> bias, stateBias, peepholes;
    double number = 0, stateNumber = 0; // parts of the biases that are the same for all columns
};
struct RecurrentCell
{
    ops::recurrence::Attrs attrs;
    std::vector<CellGate> gates; // in the op's order
    bool hasPeepholes = false;
    int c = -1; // the leaf of the cell state
};

// The states by their leaves, and the sums that are next.
struct CellState
{
    int leaf = 0;
    int next = 0;
};
// Columns of a leaf that are added to a gate as they are, as a sum of products, vectors and numbers.
using ResolveColumns = std::function<std::optional<int>(CellFactor const&)>;

std::optional<RecurrentCell> matchCell(CellTerms& terms, CellState const& h, std::vector<CellState> const& others,
                                       int64_t hidden, ResolveColumns const& resolve);

// Whether refit reaches a constant of the cell.
bool isRefitted(RecurrentCell const& cell, recipe::Recipes const* refit);

// Nodes in front of one node.
class NodeMaker
{
public:
    NodeMaker(ir::Graph& g, ir::Node& before) : g_(g), before_(before) {}

    Result<ir::Node*> node(ir::OpDef const& op, std::unique_ptr<ir::AttrsBase> attrs, std::vector<ir::Value*> inputs,
                           std::string const& name)
    {
        TW_ASSIGN(ir::Node * n, g_.addNode(op, std::move(attrs), std::move(inputs), before_.name + "." + name, {},
                                           g_.positionOf(&before_)));
        n->layers = before_.layers;
        n->outputs[0]->name = n->name;
        return n;
    }
    Result<ir::Value*> value(ir::OpDef const& op, ir::AttrsBase const& attrs, std::vector<ir::Value*> inputs,
                             std::string const& name)
    {
        TW_ASSIGN(ir::Node * n, node(op, attrs.clone(), std::move(inputs), name));
        return n->outputs[0];
    }
    // Null where attributes cannot say the shape.
    Result<ir::Value*> reshaped(ir::Value* v, ir::Shape const& shape)
    {
        if (v->shape == shape)
            return v;
        return addReshape(g_, v, shape, g_.positionOf(&before_));
    }
    Result<ir::Value*> transposed(ir::Value* v, std::vector<int64_t> const& permutation)
    {
        if (std::ranges::is_sorted(permutation))
            return v;
        ops::shuffle::Attrs a;
        a.firstTranspose = permutation;
        return value(ops::shuffle::def(), a, {v}, "transposed");
    }
    Result<ir::Value*> part(ir::Value* v, std::vector<int64_t> start, std::vector<int64_t> size, int64_t stride = 1)
    {
        ops::slice::Attrs a;
        a.stride.assign(start.size(), 1);
        a.stride[0] = stride;
        a.mode = ops::slice::Mode::kFill; // zeros around a block of a matrix
        a.start = std::move(start);
        a.size = std::move(size);
        return value(ops::slice::def(), a, {v}, "part");
    }
    Result<ir::Value*> joined(std::vector<ir::Value*> const& parts, int axis)
    {
        if (parts.size() == 1)
            return parts[0];
        return value(ops::concatenation::def(), ops::concatenation::Attrs(axis), parts, "joined");
    }
    Result<ir::Value*> sum(ir::Value* a, ir::Value* b)
    {
        using namespace ops::elementwise;
        return a ? value(def(), Attrs(Operation::kSum), {a, b}, "sum") : Result<ir::Value*>(b);
    }
    Result<ir::Value*> scaled(ir::Value* v, double scale)
    {
        using namespace ops::elementwise;
        if (scale == 1)
            return v;
        return value(def(), Attrs(Operation::kProd), {v, filled(v->type, Extents::ones(v->rank()), scale)}, "scaled");
    }
    ir::Value* filled(DataType type, Extents const& dims, double number)
    {
        Tensor t(type, dims);
        for (int64_t i = 0; i < t.ref().count(); ++i)
            t.ref().set(i, number);
        return g_.addConstant(before_.name + ".constant", type, dims, t.data());
    }
    // `with`, of the same shape, takes the place of `from`; where that is an output of the graph, a copy of it with the name.
    Result<void> replace(ir::Value* from, ir::Value* with)
    {
        if (g_.isOutput(from)) {
            TW_ASSIGN(with, value(ops::identity::def(), ops::identity::Attrs(), {with}, "out"));
            with->name = from->name;
        }
        g_.replaceAllUses(from, with);
        return {};
    }
    // A value of this graph, or a constant of any.
    ir::Value* brought(ir::Value* v)
    {
        return v->isConstant() ? g_.addConstant(v->name, v->type, ir::extentsOf(v->shape), v->constant) : v;
    }

private:
    ir::Graph& g_;
    ir::Node& before_;
};

// A tensor of steps whose rows are steps x sequences: `value` in the shape lead + [width], with steps at `axis`.
struct Sequence
{
    ir::Value* value = nullptr;
    ir::Shape lead;
    int axis = 0;
    int64_t width = 0;
    bool reverse = false;
    bool isBehind() const { return size_t(axis) > lead.size() - 1; } // steps come behind columns
};

// Leaves that gates read as inputs, each once.
std::vector<int> leavesOf(RecurrentCell const& cell);
// Null where attributes cannot say a shape. `lengths`: i32, one for each sequence or one for all; null: there are none.
Result<ir::Node*> makeRecurrence(NodeMaker& maker, RecurrentCell const& cell, std::map<int, Sequence> const& sequences,
                                 ir::Value* h0, ir::Value* c0, ir::Value* lengths = nullptr);
// What n gives for each step where a state is kept past the end of a sequence, in the shape of output 0. Null where
// attributes cannot say a shape.
Result<ir::Value*> keptStates(NodeMaker& maker, ir::Node& n);

// Sequences that a cell reads, as the graph around it makes them.

// The steps of `v` along `axis`, each of the shape `slice`, which is v's without the axis: some dimensions of it are the
// sequences, `rows` of them, the rest are columns. None where that is not so.
std::optional<Sequence> sequenceOf(ir::Value* v, int axis, bool reverse, ir::Shape const& slice, ir::Dim const& rows);

// Reads columns of sequences that are added to gates as sums of products, which become the cell's own: products in front
// of the cell or, where they are none, a product with ones on the diagonal.
class SequenceReader
{
public:
    SequenceReader(ir::Graph& g, CellTerms& terms, recipe::Recipes const* refit, std::string name)
        : g_(g), terms_(terms), refit_(refit), name_(std::move(name))
    {}
    // None where they have more than 2048 columns. Leaves of the sum: f's, or sequences that resolved() knows.
    std::optional<int> resolve(Sequence const& q, CellFactor const& f);
    Sequence const* resolved(int leaf) const; // null: it is none

private:
    std::optional<int> resolveProducts(Sequence const& q, CellFactor const& f);
    ir::Value* diagonal(DataType type, int64_t n);
    int leafOf(Sequence const& like, ir::Value* v, CellReader const& reader);

    ir::Graph& g_;
    CellTerms& terms_;
    recipe::Recipes const* const refit_;
    std::string const name_;
    std::vector<Sequence> resolved_;
    std::map<int64_t, ir::Value*> diagonals_;
};

// Recurrent layers read and write sequences in the order in which they lie: importers bring steps and sequences into the
// order of IRNNv2Layer, and what they made back into that of the model.
//   before: transpose(x) -> recurrence [N,T,E] -> y [N,T,H] -> transpose        after: recurrence [T,N,E] -> y [T,N,H]
// and the other way round.

// Whether it changed the graph. Leaves alone: layers whose y is read by others than shuffles, which would only be
// transposed elsewhere.
Result<bool> dropTranspositions(ir::Graph& g);

} // namespace tw::passes
