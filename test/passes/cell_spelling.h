// SPDX-License-Identifier: Apache-2.0
// Recurrent cells in a loop, written down in many ways.
#pragma once

#include <random>

#include "nodes.h"
#include "ops/concatenation/op.h"
#include "ops/loop/op.h"
#include "ops/recurrence/op.h"
#include "ops/select/op.h"
#include "ops/slice/op.h"

namespace tw::test {

using ops::recurrence::Cell;

// How a cell is written down.
struct Spelling
{
    Cell cell = Cell::kLstm;
    int64_t steps = 4, sequences = 3, inputs = 5, hidden = 6;
    bool oneProduct = false; // for all gates
    bool joined = false;     // of x and h as one row
    bool transposed = false; // weights
    bool twoBiases = false, noBias = false;
    bool resetAfter = false;                 // GRU: r * (h R)
    bool swapped = false;                    // GRU: z and 1 - z change places
    bool factored = false;                   // GRU: n + z * (h - n)
    bool inFront = false;                    // products with x stand in front of the loop
    bool captured = false;                   // weights are inputs of the network
    bool hard = false;                       // hard sigmoid
    bool peepholes = false, coupled = false; // LSTM; coupled: f = 1 - i
    bool clipped = false;
    int flat = 0; // states [N,H]; 1: [1,N,H]; 2: [H] (of one sequence)
    bool reverse = false, stackReverse = false;
    int axis = 0, stackAxis = 0; // of steps
    bool projected = false;      // what is stacked is a product with h
    // States stay as they are past the length of a sequence.
    enum Limit : int
    {
        kNone,
        kCarried,  // the number of the step is carried
        kIterated, // the loop goes along it
        kMask,     // the loop goes along conditions
    };
    int limit = kNone;
    bool contrary = false; // the condition holds past the length
    bool zeroed = false;   // what is stacked is zero there
};

class NetMaker
{
public:
    explicit NetMaker(Spelling const& s) : s_(s), gates_(ops::recurrence::gatesOf(s.cell)) {}

    // Outputs: the stack, h, c.
    GraphMaker make()
    {
        int64_t const n = s_.sequences, h = s_.hidden;
        ir::Shape const state = s_.flat == 2   ? ir::shapeOf({h})
                                : s_.flat == 1 ? ir::shapeOf({1, n, h})
                                               : ir::shapeOf({n, h});
        ir::Shape x = s_.flat == 2   ? ir::shapeOf({s_.inputs})
                      : s_.flat == 1 ? ir::shapeOf({1, n, s_.inputs})
                                     : ir::shapeOf({n, s_.inputs});
        int carried = s_.cell == Cell::kLstm ? 2 : 1;
        std::vector<ir::Value*> in{out_.input("h0", state)};
        in_.push_back(body_.input("h", state));
        if (carried == 2) {
            in.push_back(out_.input("c0", state));
            in_.push_back(body_.input("c", state));
        }
        if (s_.limit == Spelling::kCarried) {
            in.push_back(out_.constant("first", {}, {s_.reverse ? double(s_.steps - 1) : 0.0}, DataType::kInt32));
            number_ = body_.input("number", {}, DataType::kInt32);
            ++carried;
        }
        x.insert(x.begin() + s_.axis, s_.steps);
        ir::Value* sequence = out_.input("x", x);
        outer_ = {in[0]};
        if (s_.inFront)
            sequence = inFront(sequence);
        in.push_back(out_.constant("count", {}, {double(s_.steps)}, DataType::kInt32));
        in.push_back(sequence);
        if (s_.limit > Spelling::kCarried)
            in.push_back(s_.limit == Spelling::kMask ? mask() : numbers({s_.steps}));
        in.push_back(nullptr);
        ir::Shape slice = sequence->shape;
        slice.erase(slice.begin() + s_.axis);
        x_ = body_.input("x_t", slice);
        captures_ = &in;
        if (s_.limit > Spelling::kCarried) {
            ir::Shape const each = s_.limit == Spelling::kMask ? ir::shapeOf({lengthCount()}) : ir::Shape();
            number_ = body_.input("number", each, s_.limit == Spelling::kMask ? DataType::kBool : DataType::kInt32);
        }
        ir::Value* const condition = s_.limit == Spelling::kNone ? nullptr : isPast(in);
        ir::Value *const hNew = s_.cell == Cell::kLstm  ? lstm()
                                : s_.cell == Cell::kGru ? gru()
                                                        : rnn(),
                         *const hNext = limited(condition, hNew, in_[0]);
        body_.output(hNext, "h_next");
        if (s_.cell == Cell::kLstm)
            body_.output(limited(condition, cNext_, in_[1]), "c_next");
        if (s_.limit == Spelling::kCarried)
            body_.output(apply(Operation::kSum, number_,
                               body_.constant("step", {}, {s_.reverse ? -1.0 : 1.0}, DataType::kInt32)));
        ir::Value* const seen = s_.zeroed && condition ? limited(condition, hNew, zeros(hNew->rank())) : hNext;
        body_.output(s_.projected ? product(hNext, weights("P", h, 7), false) : seen);
        return finish(in, carried);
    }

private:
    GraphMaker finish(std::vector<ir::Value*> const& in, int carried)
    {
        ops::loop::Attrs a;
        a.carried = carried;
        a.iteratorAxes = {s_.axis};
        a.iteratorReverse = {s_.reverse};
        if (s_.limit > Spelling::kCarried) {
            a.iteratorAxes.push_back(0);
            a.iteratorReverse.push_back(s_.reverse);
        }
        a.stackAxes = {s_.stackAxis};
        a.stackReverse = {s_.stackReverse};
        GraphMaker condition;
        for (ir::Value const* v : body_.g.inputs)
            condition.input(v->name, v->shape, v->type);
        condition.output(condition.constant("yes", {}, {1}, DataType::kBool));
        std::vector<std::unique_ptr<ir::Graph>> regions;
        regions.push_back(condition.take());
        regions.push_back(body_.take());
        ir::Node* const n = out_.addNode(ops::loop::def(), a.clone(), in, "loop", std::move(regions));
        for (size_t i = n->outputs.size(); i-- > 0;)
            if (s_.limit != Spelling::kCarried || int(i) != carried - 1) // the number
                out_.output(n->outputs[i], "out" + std::to_string(i));
        return std::move(out_);
    }
    // ---- lengths

    int64_t lengthCount() const { return s_.flat == 2 ? 1 : s_.sequences; }
    ir::Value* numbers(Extents const& dims)
    {
        std::vector<double> list;
        for (int64_t t = 0; t < s_.steps; ++t)
            list.push_back(double(t));
        return out_.constant("numbers", dims, list, DataType::kInt32);
    }
    ir::Value* compared(GraphMaker& m, Operation o, ir::Value* a, ir::Value* b)
    {
        return m.add(ops::elementwise::def(), ops::elementwise::Attrs(o), {a, b}, "compared");
    }
    // Of all steps, before or past the length.
    ir::Value* mask()
    {
        ir::Value* const lengths = out_.input("lengths", ir::shapeOf({1, lengthCount()}), DataType::kInt32);
        ir::Value* const all = numbers({s_.steps, 1});
        ir::Value* const before = compared(out_, Operation::kGreater, lengths, all);
        return s_.contrary
                   ? out_.add(ops::unary::def(), ops::unary::Attrs(ops::unary::Operation::kNot), {before}, "not")
                   : before;
    }
    ir::Value* shaped(ir::Value* v, int64_t count)
    {
        ops::shuffle::Attrs a;
        a.hasReshape = true;
        a.reshape.assign(size_t(s_.flat == 2 ? 1 : s_.flat == 1 ? 3 : 2), 1);
        if (s_.flat != 2)
            a.reshape[a.reshape.size() - 2] = count;
        return body_.add(ops::shuffle::def(), a, {v}, "shaped");
    }
    // The condition of a step, for each sequence.
    ir::Value* isPast(std::vector<ir::Value*>& in)
    {
        if (s_.limit == Spelling::kMask)
            return shaped(number_, lengthCount());
        in.push_back(out_.input("lengths", ir::shapeOf({lengthCount()}), DataType::kInt32));
        ir::Value* const lengths = shaped(body_.input("lengths", in.back()->shape, DataType::kInt32), lengthCount());
        ir::Value* const number = shaped(number_, 1);
        if (!s_.contrary)
            return compared(body_, Operation::kLess, number, lengths);
        return compared(body_, Operation::kOr, compared(body_, Operation::kGreater, number, lengths),
                        compared(body_, Operation::kEqual, number, lengths));
    }
    ir::Value* zeros(int rank)
    {
        Extents ones;
        for (int d = 0; d < rank; ++d)
            ones.push(1);
        return body_.constant("zero", ones, {0});
    }
    ir::Value* limited(ir::Value* condition, ir::Value* next, ir::Value* kept)
    {
        if (!condition)
            return next;
        return body_.add(ops::select::def(), {condition, s_.contrary ? kept : next, s_.contrary ? next : kept},
                         "limited");
    }

    // [rows, columns], transposed where all are.
    ir::Value* weights(std::string const& name, int64_t rows, int64_t columns)
    {
        Extents const dims = s_.transposed ? Extents{columns, rows} : Extents{rows, columns};
        if (!s_.captured)
            return body_.constant(name, dims);
        ir::Shape const shape = ir::shapeOf(dims);
        captures_->push_back(out_.input(name, shape));
        return body_.input(name, shape);
    }
    ir::Value* product(ir::Value* x, ir::Value* w, bool outside)
    {
        using ops::matrix_multiply::MatrixOperation;
        GraphMaker& m = outside ? out_ : body_;
        if (w->rank() < x->rank()) {
            ops::shuffle::Attrs a;
            a.hasReshape = true;
            a.reshape.assign(size_t(x->rank() - 2), 1);
            for (ir::Dim const& d : w->shape)
                a.reshape.push_back(d.value());
            w = m.add(ops::shuffle::def(), a, {w}, "reshape");
        }
        ops::matrix_multiply::Attrs const a(x->rank() == 1 ? MatrixOperation::kVector : MatrixOperation::kNone,
                                            s_.transposed ? MatrixOperation::kTranspose : MatrixOperation::kNone);
        return m.add(ops::matrix_multiply::def(), a, {x, w}, "product");
    }
    ir::Value* bias(std::string const& name, int64_t columns, ir::Value* like, bool outside)
    {
        Extents dims;
        for (int d = 1; d < like->rank(); ++d)
            dims.push(1);
        dims.push(columns);
        return (outside ? out_ : body_).constant(name, dims);
    }
    ir::Value* inFront(ir::Value* x)
    {
        int64_t const columns = gates_ * s_.hidden;
        Extents const dims = s_.transposed ? Extents{columns, s_.inputs} : Extents{s_.inputs, columns};
        ir::Value* const y = product(x, out_.constant("W", dims), true);
        ir::Value* const b = s_.noBias ? nullptr : bias("bW", columns, y, true);
        return b ? out_.add(ops::elementwise::def(), ops::elementwise::Attrs(Operation::kSum), {b, y}, "biased") : y;
    }
    ir::Value* apply(Operation o, ir::Value* a, ir::Value* b)
    {
        return body_.add(ops::elementwise::def(), ops::elementwise::Attrs(o), {a, b}, "e");
    }
    ir::Value* sum(ir::Value* a, ir::Value* b) { return !a ? b : !b ? a : apply(Operation::kSum, a, b); }
    ir::Value* times(ir::Value* a, ir::Value* b) { return apply(Operation::kProd, a, b); }
    ir::Value* lessThanOne(ir::Value* a)
    {
        Extents ones;
        for (int d = 0; d < a->rank(); ++d)
            ones.push(1);
        return apply(Operation::kSub, body_.constant("one", ones, {1}), a);
    }
    ir::Value* function(Kind k, ir::Value* x)
    {
        if (s_.clipped)
            x = body_.add(ops::activation::def(), ops::activation::Attrs(Kind::kClip, -0.5F, 0.5F), {x}, "clip");
        if (k == Kind::kSigmoid && s_.hard)
            return body_.add(ops::activation::def(), ops::activation::Attrs(Kind::kHardSigmoid, 0.2F, 0.5F), {x}, "f");
        return body_.add(ops::activation::def(), ops::activation::Attrs(k), {x}, "f");
    }
    ir::Value* columns(ir::Value* v, int64_t gate)
    {
        ops::slice::Attrs a;
        for (ir::Dim const& d : v->shape)
            a.size.push_back(d.value());
        a.start.assign(a.size.size(), 0);
        a.stride.assign(a.size.size(), 1);
        a.start.back() = gate * s_.hidden;
        a.size.back() = s_.hidden;
        return body_.add(ops::slice::def(), a, {v}, "gate");
    }
    ir::Value* row(ir::Value* x, ir::Value* h)
    {
        return body_.add(ops::concatenation::def(), ops::concatenation::Attrs(x->rank() - 1), {x, h}, "row");
    }
    // What is computed of x and of h for all gates, or for one.
    struct Parts
    {
        ir::Value *x = nullptr, *h = nullptr;
    };
    Parts parts(std::string const& name, int64_t width, ir::Value* h)
    {
        Parts p;
        if (s_.joined && !s_.inFront) {
            p.x = product(row(x_, h), weights("WR" + name, s_.inputs + s_.hidden, width), false);
        } else {
            p.x = s_.inFront ? nullptr : product(x_, weights("W" + name, s_.inputs, width), false);
            p.h = product(h, weights("R" + name, s_.hidden, width), false);
        }
        if (!s_.noBias && p.x)
            p.x = sum(p.x, bias("b" + name, width, p.x, false));
        if (s_.twoBiases && p.h)
            p.h = sum(p.h, bias("bR" + name, width, p.h, false));
        return p;
    }
    Parts gate(int64_t g, ir::Value* h)
    {
        Parts p;
        if (s_.oneProduct) {
            if (!all_.x && !all_.h)
                all_ = parts("all", gates_ * s_.hidden, in_[0]);
            p.x = all_.x ? columns(all_.x, g) : nullptr;
            p.h = all_.h ? columns(all_.h, g) : nullptr;
        } else {
            p = parts(std::to_string(g), s_.hidden, h);
        }
        if (s_.inFront)
            p.x = columns(x_, g);
        return p;
    }
    ir::Value* linear(int64_t g)
    {
        Parts const p = gate(g, in_[0]);
        return sum(p.x, p.h);
    }
    ir::Value* seen(ir::Value* x, int which, ir::Value* c)
    {
        return s_.peepholes ? sum(x, times(bias("p" + std::to_string(which), s_.hidden, c, false), c)) : x;
    }
    ir::Value* rnn() { return function(Kind::kTanh, linear(0)); }
    ir::Value* lstm()
    {
        ir::Value* const c = in_[1];
        ir::Value* const i = function(Kind::kSigmoid, seen(linear(0), 0, c));
        ir::Value* const f = s_.coupled ? lessThanOne(i) : function(Kind::kSigmoid, seen(linear(2), 2, c));
        cNext_ = sum(times(f, c), times(function(Kind::kTanh, linear(3)), i));
        ir::Value* const o = function(Kind::kSigmoid, seen(linear(1), 1, cNext_));
        return times(o, body_.add(ops::activation::def(), ops::activation::Attrs(Kind::kTanh), {cNext_}, "f"));
    }
    ir::Value* gru()
    {
        ir::Value *const z = function(Kind::kSigmoid, linear(0)), *const r = function(Kind::kSigmoid, linear(1));
        ir::Value* n = nullptr;
        if (s_.resetAfter) {
            Parts const p = gate(2, in_[0]);
            n = function(Kind::kTanh, sum(p.x, times(r, p.h)));
        } else {
            Parts const p = gate(2, times(r, in_[0]));
            n = function(Kind::kTanh, sum(p.x, p.h));
        }
        ir::Value *const a = s_.swapped ? in_[0] : n, *const b = s_.swapped ? n : in_[0];
        if (s_.factored)
            return sum(a, times(z, apply(Operation::kSub, b, a)));
        return sum(times(lessThanOne(z), a), times(z, b));
    }

    Spelling const s_;
    int64_t const gates_;
    GraphMaker out_, body_;
    std::vector<ir::Value*> in_, outer_;
    std::vector<ir::Value*>* captures_ = nullptr;
    ir::Value *x_ = nullptr, *cNext_ = nullptr, *number_ = nullptr;
    Parts all_;
};

inline bool coin(std::mt19937& rng)
{
    return rng() % 2 != 0;
}

inline Spelling randomSpelling(std::mt19937& rng)
{
    Spelling s;
    s.cell = Cell(rng() % 3);
    s.steps = 2 + int64_t(rng() % 4);
    s.sequences = 1 + int64_t(rng() % 3);
    s.inputs = 1 + int64_t(rng() % 6);
    s.hidden = 2 + int64_t(rng() % 6);
    s.oneProduct = coin(rng);
    s.joined = coin(rng);
    s.transposed = coin(rng);
    s.noBias = coin(rng);
    s.twoBiases = coin(rng);
    s.resetAfter = coin(rng);
    s.factored = coin(rng);
    s.captured = coin(rng);
    s.hard = coin(rng);
    s.peepholes = s.cell == Cell::kLstm && coin(rng);
    s.coupled = s.cell == Cell::kLstm && coin(rng);
    s.clipped = coin(rng);
    s.flat = int(rng() % 3);
    s.reverse = coin(rng);
    s.stackReverse = coin(rng);
    s.swapped = coin(rng);
    s.inFront = coin(rng);
    s.axis = s.inFront || s.flat == 2 ? 0 : int(rng() % 2);
    if (s.flat == 2 && !s.inFront)
        s.axis = int(rng() % 2);
    s.stackAxis = int(rng() % 2);
    if (s.cell == Cell::kGru && (s.resetAfter || s.oneProduct))
        s.joined = false;
    if (s.cell == Cell::kGru && s.oneProduct)
        s.resetAfter = true;
    if (s.inFront)
        s.captured = false;
    s.projected = !s.captured && rng() % 4 == 0;
    s.limit = int(rng() % 8);
    s.limit = s.limit > Spelling::kMask ? Spelling::kNone : s.limit;
    s.contrary = coin(rng);
    s.zeroed = !s.projected && coin(rng);
    return s;
}

// The attributes of the only recurrence; "" where there is none.
inline std::string recurrencesOf(ir::Graph const& g)
{
    std::string found;
    for (auto const& n : g.nodes) {
        if (n->op == &ops::recurrence::def()) {
            auto const& a = n->attrsAs<ops::recurrence::Attrs>();
            found += std::string(a.cell == Cell::kLstm  ? "lstm"
                                 : a.cell == Cell::kGru ? "gru"
                                                        : "rnn") +
                     (a.linearBeforeReset ? " after" : "") + (a.inputForget ? " coupled" : "") +
                     (a.clip > 0 ? " clipped" : "") + (a.functions.empty() ? "" : " functions") +
                     (a.direction == ops::recurrence::Direction::kReverse ? " reverse" : "") +
                     (n->inputs.size() > ops::recurrence::kPeepholes ? " peepholes" : "") +
                     (n->inputs.size() > ops::recurrence::kLengths && n->inputs[ops::recurrence::kLengths] ? " lengths"
                                                                                                           : "");
        }
    }
    return found;
}

} // namespace tw::test
