// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/fill/op.h"
#include "ops/select/op.h"
#include "ops/shape/op.h"
#include "passes/recurrence/recurrence.h"

namespace tw::passes {

using ir::Dim;
using ir::Shape;

std::vector<int> leavesOf(RecurrentCell const& cell)
{
    std::vector<int> leaves;
    for (CellGate const& g : cell.gates)
        for (auto const& [source, block] : g.x)
            if (!contains(leaves, source.leaf))
                leaves.push_back(source.leaf);
    return leaves;
}
namespace {

class CellNode
{
public:
    CellNode(NodeMaker& maker, std::map<int, Sequence> const& sequences) : maker_(maker), sequences_(sequences) {}

    // [count, rows] of a product's matrix, with zeros around up to `all` rows, of which the block's first is `first`.
    Result<ir::Value*> matrix(CellBlock const& b, int64_t first, int64_t all)
    {
        CellFactor const& f = b.factor;
        Shape const shape = f.transposed ? Shape{Dim(f.width), Dim(f.height)} : Shape{Dim(f.height), Dim(f.width)};
        TW_ASSIGN(ir::Value * v, maker_.reshaped(maker_.brought(f.value), shape));
        bool const whole = f.row == 0 && f.rows == f.height && f.begin == 0 && f.count == f.width;
        if (!whole) {
            std::vector<int64_t> start{f.row, f.begin}, size{f.rows, f.count};
            if (f.transposed) {
                std::swap(start[0], start[1]);
                std::swap(size[0], size[1]);
            }
            TW_ASSIGN(v, maker_.part(v, start, size));
        }
        if (!f.transposed)
            TW_SET(v, maker_.transposed(v, {1, 0}));
        if (f.rows != all)
            TW_SET(v, maker_.part(v, {0, -first}, {f.count, all}));
        return maker_.scaled(v, b.scale);
    }
    Result<ir::Value*> vector(std::vector<CellBlock> const& blocks, double number, DataType type, int64_t hidden)
    {
        ir::Value* sum = nullptr;
        for (CellBlock const& b : blocks) {
            TW_ASSIGN(ir::Value * v,
                      maker_.reshaped(maker_.brought(b.factor.value), {ir::volume(b.factor.value->shape)}));
            if (!v->shape[0].is(hidden) || b.factor.begin != 0)
                TW_SET(v, maker_.part(v, {b.factor.begin}, {hidden}));
            TW_ASSIGN(v, maker_.scaled(v, b.scale));
            TW_ASSIGN(sum, maker_.sum(sum, v));
        }
        if (!sum || number != 0)
            TW_SET(sum, maker_.sum(sum, maker_.filled(type, {hidden}, number)));
        return sum;
    }
    // [1, all elements]
    Result<ir::Value*> row(std::vector<ir::Value*> const& parts, int64_t hidden)
    {
        TW_ASSIGN(ir::Value * v, maker_.joined(parts, 0));
        return maker_.reshaped(v, {Dim(1), Dim(int64_t(parts.size()) * hidden)});
    }
    Result<ir::Value*> inputWeights(RecurrentCell const& cell, std::vector<int> const& leaves, DataType type)
    {
        int64_t const hidden = cell.attrs.hidden;
        int64_t all = 0;
        std::vector<ir::Value*> gates;
        for (CellGate const& g : cell.gates) {
            std::vector<ir::Value*> parts;
            all = 0;
            for (int leaf : leaves) {
                int64_t const width = sequences_.at(leaf).width;
                ir::Value* sum = nullptr;
                for (auto const& [source, block] : g.x)
                    if (source.leaf == leaf) {
                        TW_ASSIGN(ir::Value * v, matrix(block, source.begin, width));
                        TW_ASSIGN(sum, maker_.sum(sum, v));
                    }
                parts.push_back(sum ? sum : maker_.filled(type, {hidden, width}, 0));
                all += width;
            }
            TW_ASSIGN(ir::Value * gate, maker_.joined(parts, 1));
            gates.push_back(gate);
        }
        TW_ASSIGN(ir::Value * w, maker_.joined(gates, 0));
        return maker_.reshaped(w, {Dim(1), Dim(int64_t(gates.size()) * hidden), Dim(all)});
    }
    Result<ir::Value*> stateWeights(RecurrentCell const& cell, DataType type)
    {
        int64_t const hidden = cell.attrs.hidden;
        std::vector<ir::Value*> gates;
        for (CellGate const& g : cell.gates) {
            ir::Value* sum = nullptr;
            for (CellBlock const& b : g.h) {
                TW_ASSIGN(ir::Value * v, matrix(b, 0, hidden));
                TW_ASSIGN(sum, maker_.sum(sum, v));
            }
            gates.push_back(sum ? sum : maker_.filled(type, {hidden, hidden}, 0));
        }
        TW_ASSIGN(ir::Value * r, maker_.joined(gates, 0));
        return maker_.reshaped(r, {Dim(1), Dim(int64_t(gates.size()) * hidden), Dim(hidden)});
    }
    Result<ir::Value*> biases(RecurrentCell const& cell, DataType type)
    {
        bool const any = std::ranges::any_of(cell.gates, [](CellGate const& g) {
            return !g.bias.empty() || !g.stateBias.empty() || g.number != 0 || g.stateNumber != 0;
        });
        if (!any)
            return static_cast<ir::Value*>(nullptr);
        std::vector<ir::Value*> parts;
        for (bool ofState : {false, true})
            for (CellGate const& g : cell.gates) {
                TW_ASSIGN(ir::Value * v, vector(ofState ? g.stateBias : g.bias, ofState ? g.stateNumber : g.number,
                                                type, cell.attrs.hidden));
                parts.push_back(v);
            }
        return row(parts, cell.attrs.hidden);
    }
    Result<ir::Value*> peepholes(RecurrentCell const& cell, DataType type)
    {
        if (!cell.hasPeepholes)
            return static_cast<ir::Value*>(nullptr);
        std::vector<ir::Value*> parts;
        for (size_t g : {0, 1, 2}) {
            TW_ASSIGN(ir::Value * v, vector(cell.gates[g].peepholes, 0, type, cell.attrs.hidden));
            parts.push_back(v);
        }
        return row(parts, cell.attrs.hidden);
    }
    // [steps, sequences..., width]
    Result<ir::Value*> stepsFirst(Sequence const& q)
    {
        std::vector<int64_t> order{q.axis};
        if (q.isBehind()) {
            for (int d = 0; d < q.value->rank(); ++d)
                if (d != q.axis)
                    order.push_back(d);
            TW_ASSIGN(ir::Value * v, maker_.transposed(q.value, order));
            Shape shape{q.lead.back()};
            shape.insert(shape.end(), q.lead.begin(), q.lead.end() - 1);
            shape.push_back(Dim(q.width));
            return maker_.reshaped(v, shape);
        }
        Shape shape = q.lead;
        shape.push_back(Dim(q.width));
        TW_ASSIGN(ir::Value * v, maker_.reshaped(q.value, shape));
        for (int64_t d = 0; d < int64_t(shape.size()); ++d)
            if (d != q.axis)
                order.push_back(d);
        return v ? maker_.transposed(v, order) : Result<ir::Value*>(v);
    }
    Result<ir::Value*> inputs(std::vector<int> const& leaves)
    {
        std::vector<ir::Value*> parts;
        for (int leaf : leaves) {
            Sequence const q = sequences_.at(leaf);
            TW_ASSIGN(ir::Value * v, stepsFirst(q));
            if (v && !parts.empty()) {
                Shape shape = parts[0]->shape;
                shape.back() = Dim(q.width);
                TW_ASSIGN(v, maker_.reshaped(v, shape));
            }
            if (!v)
                return v;
            parts.push_back(v);
        }
        return maker_.joined(parts, parts[0]->rank() - 1);
    }

    // One for each sequence; null where a shape cannot be said.
    Result<ir::Value*> lengthsOf(ir::Value* lengths, Shape const& sequences)
    {
        ir::Value* const none = nullptr;
        if (ir::volume(lengths->shape) == ir::volume(sequences))
            return maker_.reshaped(lengths, sequences);
        if (!ir::isStatic(sequences))
            return none;
        TW_ASSIGN(ir::Value * v, maker_.reshaped(lengths, Shape(sequences.size(), Dim(1))));
        return v ? maker_.sum(v, maker_.filled(DataType::kInt32, ir::extentsOf(sequences), 0)) : none;
    }

    // Null where a shape cannot be said.
    Result<ir::Node*> make(RecurrentCell const& cell, ir::Value* h0, ir::Value* c0, ir::Value* lengths)
    {
        using namespace ops::recurrence;
        ir::Node* const none = nullptr;
        std::vector<int> const leaves = leavesOf(cell);
        DataType const type = h0->type;
        TW_ASSIGN(ir::Value * x, inputs(leaves));
        if (!x)
            return none;
        Shape state = x->shape;
        state[0] = Dim(1);
        state.back() = Dim(cell.attrs.hidden);
        std::vector<ir::Value*> list(kInputs, nullptr);
        list[kX] = x;
        TW_ASSIGN(list[kH0], maker_.reshaped(h0, state));
        if (cell.c >= 0)
            TW_SET(list[kC0], maker_.reshaped(c0, state));
        if (lengths)
            TW_SET(list[kLengths], lengthsOf(lengths, Shape(x->shape.begin() + 1, x->shape.end() - 1)));
        if (!list[kH0] || (cell.c >= 0 && !list[kC0]) || (lengths && !list[kLengths]))
            return none;
        TW_ASSIGN(list[kR], stateWeights(cell, type));
        TW_ASSIGN(list[kW], inputWeights(cell, leaves, type));
        TW_ASSIGN(list[kBias], biases(cell, type));
        TW_ASSIGN(list[kPeepholes], peepholes(cell, type));
        while (!list.back())
            list.pop_back();
        auto attrs = std::make_unique<ops::recurrence::Attrs>(cell.attrs);
        attrs->direction = sequences_.at(leaves[0]).reverse ? Direction::kReverse : Direction::kForward;
        if (attrs->functions == std::vector<int64_t>(attrs->functions.size(), -1) || hasDefaultFunctions(*attrs)) {
            attrs->functions.clear();
            attrs->alpha.clear();
            attrs->beta.clear();
        }
        TW_ASSIGN(ir::Node * n, maker_.node(ops::recurrence::def(), std::move(attrs), list, "cell"));
        for (size_t k = 1; k < n->outputs.size(); ++k)
            n->outputs[k]->name = n->name + (k == 1 ? ".h" : ".c");
        return n;
    }

private:
    NodeMaker& maker_;
    std::map<int, Sequence> const& sequences_;
};

} // namespace

Result<ir::Node*> makeRecurrence(NodeMaker& maker, RecurrentCell const& cell, std::map<int, Sequence> const& sequences,
                                 ir::Value* h0, ir::Value* c0, ir::Value* lengths)
{
    return CellNode(maker, sequences).make(cell, h0, c0, lengths);
}

namespace {

// The numbers of steps, [T, 1...].
Result<ir::Value*> stepNumbers(NodeMaker& maker, ir::Value* y)
{
    ops::fill::Attrs fill;
    fill.outputType = DataType::kInt32;
    std::vector<ir::Value*> sizes;
    if (y->shape[0].isConst()) {
        fill.dims = {y->shape[0].value()};
    } else {
        ops::slice::Attrs first;
        first.start = {0};
        first.size = first.stride = {1};
        TW_ASSIGN(ir::Value * all, maker.value(ops::shape::def(), ir::NoAttrs(), {y}, "sizes"));
        TW_ASSIGN(all, maker.value(ops::slice::def(), first, {all}, "steps"));
        sizes = {all};
    }
    TW_ASSIGN(ir::Value * numbers, maker.value(ops::fill::def(), fill, sizes, "numbers"));
    Shape shape(y->shape.size(), Dim(1));
    shape[0] = y->shape[0];
    return maker.reshaped(numbers, shape);
}

} // namespace

Result<ir::Value*> keptStates(NodeMaker& maker, ir::Node& n)
{
    using namespace ops::recurrence;
    ir::Value *const y = n.outputs[0], *const none = nullptr;
    bool const reverse = n.attrsAs<Attrs>().direction == Direction::kReverse;
    Shape shape(y->shape.begin(), y->shape.end());
    shape.front() = shape.back() = Dim(1);
    TW_ASSIGN(ir::Value * lengths, maker.reshaped(n.inputs[kLengths], shape));
    TW_ASSIGN(ir::Value * numbers, stepNumbers(maker, y));
    if (!lengths || !numbers)
        return none;
    using ops::elementwise::Operation;
    TW_ASSIGN(ir::Value * inside, maker.value(ops::elementwise::def(), ops::elementwise::Attrs(Operation::kLess),
                                              {numbers, lengths}, "inside"));
    // From last to first a sequence has not begun past its end.
    return maker.value(ops::select::def(), ir::NoAttrs(), {inside, y, reverse ? n.inputs[kH0] : n.outputs[1]}, "kept");
}

} // namespace tw::passes
