// SPDX-License-Identifier: Apache-2.0
#include "cell_spelling.h"
#include "ops/gather/op.h"
#include "ops/identity/op.h"

namespace tw::test {

namespace {

// How the steps of a loop are written one after the other.
struct Unrolling
{
    bool gathered = false;   // steps of the input, else slices
    bool ownWeights = false; // a copy of the constants for each step
    bool zeros = false;      // initial states are constants, of zeros
    bool shared = false;     // one initial value for both states
    bool noStack = false;    // only the last states are outputs
    bool dropped = false; // initial states are zeros, and what is multiplied with them in the first step is not there
    bool apart = false;   // the first step may stay apart
    bool gates = false;   // a sum over a gate of the first step is an output
};

class Unroller
{
public:
    Unroller(ir::Graph& g, Unrolling const& u)
        : g_(g), u_(u), loop_(*g.nodes.back()), body_(*loop_.regions[1]), attrs_(loop_.attrsAs<ops::loop::Attrs>()),
          at_(attrs_)
    {}
    void run()
    {
        std::vector<ir::Value*> states;
        for (size_t i = 0; i < at_.carried; ++i)
            states.push_back(start(i));
        std::vector<ir::Value*> stack;
        int64_t const steps = loop_.inputs[at_.iteratedAt(0)]->shape[size_t(attrs_.iteratorAxes[0])].value();
        for (int64_t t = 0; t < steps; ++t) {
            std::vector<ir::Value*> const next = copyBody(states, attrs_.iteratorReverse[0] != 0 ? steps - 1 - t : t);
            states.assign(next.begin(), next.begin() + int64_t(at_.carried));
            stack.push_back(next.back());
        }
        if (attrs_.stackReverse[0] != 0)
            std::reverse(stack.begin(), stack.end());
        g_.outputs.clear();
        if (!u_.noStack)
            output(stacked(stack), "stack");
        for (ir::Value* v : states)
            output(v, "last" + std::to_string(g_.outputs.size()));
        if (gate_)
            output(gate_, "gate");
        g_.eraseNode(&loop_);
        g_.eraseUnusedValues();
    }

private:
    ir::Value* add(ir::OpDef const& op, ir::AttrsBase const& a, std::vector<ir::Value*> in)
    {
        auto n = g_.addNode(op, a.clone(), std::move(in), "n" + std::to_string(g_.nodes.size()));
        EXPECT_TRUE(n.ok()) << n.error().message;
        (*n)->layers = {(*n)->name};
        return (*n)->outputs[0];
    }
    void output(ir::Value* v, std::string const& name)
    {
        g_.outputs.push_back(g_.isOutput(v) ? add(ops::identity::def(), ops::identity::Attrs(), {v}) : v);
        g_.outputs.back()->name = name;
    }
    ir::Value* start(size_t i)
    {
        ir::Value* const v = loop_.inputs[u_.shared ? 0 : i];
        if (!u_.zeros && !u_.dropped)
            return v;
        if (!zeros_ || !u_.shared) {
            Tensor const t(v->type, ir::extentsOf(v->shape));
            zeros_ = g_.addConstant("zeros", v->type, ir::extentsOf(v->shape), t.data());
            nothing_.push_back(zeros_);
        }
        return zeros_;
    }
    ir::Value* reshaped(ir::Value* v, ir::Shape const& shape)
    {
        ops::shuffle::Attrs a;
        a.hasReshape = true;
        a.zeroIsPlaceholder = false;
        for (ir::Dim const& d : shape)
            a.reshape.push_back(d.value());
        return add(ops::shuffle::def(), a, {v});
    }
    ir::Value* step(int64_t t, ir::Shape const& shape)
    {
        ir::Value* const x = loop_.inputs[at_.iteratedAt(0)];
        size_t const axis = size_t(attrs_.iteratorAxes[0]);
        if (u_.gathered) {
            auto const index = int32_t(t);
            ops::gather::Attrs a;
            a.axis = int64_t(axis);
            return add(ops::gather::def(), a, {x, g_.addConstant("t", DataType::kInt32, {}, &index)});
        }
        ops::slice::Attrs a;
        for (ir::Dim const& d : x->shape)
            a.size.push_back(d.value());
        a.start.assign(a.size.size(), 0);
        a.stride.assign(a.size.size(), 1);
        a.start[axis] = t;
        a.size[axis] = 1;
        return reshaped(add(ops::slice::def(), a, {x}), shape);
    }
    std::vector<ir::Value*> copyBody(std::vector<ir::Value*> const& states, int64_t t)
    {
        std::map<ir::Value const*, ir::Value*> at;
        for (size_t i = 0; i < body_.inputs.size(); ++i)
            at[body_.inputs[i]] = i < at_.carried    ? states[i]
                                  : i == at_.carried ? step(t, body_.inputs[i]->shape)
                                                     : loop_.inputs[at_.inputOf(i)];
        for (auto const& v : body_.values())
            if (v->isConstant()) {
                ir::Value*& copy = constants_[v.get()];
                if (!copy || u_.ownWeights)
                    copy = g_.addConstant(v->name, v->type, ir::extentsOf(v->shape), constantBytes(*v));
                at[v.get()] = copy;
            }
        for (auto const& n : body_.nodes) {
            std::vector<ir::Value*> in;
            for (ir::Value const* v : n->inputs)
                in.push_back(v ? at.at(v) : nullptr);
            if (auto const left = leftOf(*n, in)) {
                at[n->outputs[0]] = *left;
                continue;
            }
            ir::Node* const copy = g_.cloneNode(*n, in);
            copy->layers = {n->name + std::to_string(t)};
            for (size_t i = 0; i < n->outputs.size(); ++i)
                at[n->outputs[i]] = copy->outputs[i];
            if (u_.gates && !gate_ && n->op == &ops::activation::def())
                gate_ = add(ops::activation::def(), ops::activation::Attrs(Kind::kRelu), {copy->outputs[0]});
        }
        std::vector<ir::Value*> out;
        for (ir::Value const* v : body_.outputs)
            out.push_back(at.at(v));
        return out;
    }
    // What a node gives of zeros, if that is not the node.
    std::optional<ir::Value*> leftOf(ir::Node const& n, std::vector<ir::Value*> const& in)
    {
        auto const isNothing = [&](ir::Value* v) {
            return v && std::find(nothing_.begin(), nothing_.end(), v) != nothing_.end();
        };
        if (!u_.dropped || std::none_of(in.begin(), in.end(), isNothing))
            return {};
        auto const o =
            n.op == &ops::elementwise::def() ? n.attrsAs<ops::elementwise::Attrs>().operation : Operation::kPow;
        if (o == Operation::kSum || (o == Operation::kSub && isNothing(in[1]))) {
            ir::Value* const other = isNothing(in[0]) ? in[1] : in[0]; // of all rows?
            return other->shape == n.outputs[0]->shape ? std::optional(other) : std::nullopt;
        }
        if (o != Operation::kProd && n.op != &ops::matrix_multiply::def() && n.op != &ops::slice::def() &&
            n.op != &ops::shuffle::def())
            return {};
        ir::Value const& v = *n.outputs[0];
        Tensor const t(v.type, ir::extentsOf(v.shape));
        nothing_.push_back(g_.addConstant("nothing", v.type, ir::extentsOf(v.shape), t.data()));
        return nothing_.back();
    }
    static void const* constantBytes(ir::Value const& v) { return v.constant->data->data(); }
    ir::Value* stacked(std::vector<ir::Value*> parts)
    {
        int64_t const axis = attrs_.stackAxes[0];
        for (ir::Value*& v : parts) {
            ir::Shape shape = v->shape;
            shape.insert(shape.begin() + axis, ir::Dim(1));
            v = reshaped(v, shape);
        }
        return add(ops::concatenation::def(), ops::concatenation::Attrs(int(axis)), parts);
    }

    ir::Graph& g_;
    Unrolling const u_;
    ir::Node& loop_;
    ir::Graph& body_;
    ops::loop::Attrs const attrs_;
    ops::loop::Layout const at_;
    std::map<ir::Value const*, ir::Value*> constants_;
    std::vector<ir::Value*> nothing_; // zeros
    ir::Value *zeros_ = nullptr, *gate_ = nullptr;
};

Result<bool> fuseUnrolled(ir::Graph& g, passes::PassContext const& ctx)
{
    bool changed = false;
    for (bool again = true; again; changed = changed || again) {
        TW_ASSIGN(bool const unread, passes::removeDead(g, ctx));
        TW_ASSIGN(bool const fused, passes::fuseUnrolledRecurrence(g, ctx));
        TW_ASSIGN(bool const folded, passes::foldConstants(g, ctx));
        TW_ASSIGN(bool const dead, passes::removeDead(g, ctx));
        again = unread || fused || folded || dead;
    }
    return changed;
}

std::string unrolled(Spelling const& s, Unrolling const& u = {}, PassCheck check = {})
{
    GraphMaker m = NetMaker(s).make();
    Unroller(m.g, u).run();
    check.tolerance = 2e-5;
    checkPass(m.g, fuseUnrolled, true, check);
    for (auto const& n : m.g.nodes)
        EXPECT_TRUE(u.apart || n->op != &ops::activation::def()) << nodesOf(m.g);
    return recurrencesOf(m.g);
}

Unrolling randomUnrolling(std::mt19937& rng)
{
    Unrolling u;
    u.gathered = coin(rng);
    u.ownWeights = coin(rng);
    u.zeros = coin(rng);
    u.shared = coin(rng);
    u.noStack = coin(rng);
    u.dropped = coin(rng);
    u.apart = u.dropped || u.zeros; // what is computed of zeros may have been folded
    return u;
}

} // namespace

TEST(FuseUnrolledRecurrence, Cells)
{
    EXPECT_EQ(unrolled({.cell = Cell::kRnn}), "rnn");
    EXPECT_EQ(unrolled({.cell = Cell::kLstm}), "lstm");
    EXPECT_EQ(unrolled({.cell = Cell::kGru}), "gru");
    EXPECT_EQ(unrolled({.cell = Cell::kGru, .resetAfter = true}), "gru after");
    EXPECT_EQ(unrolled({.cell = Cell::kLstm, .oneProduct = true, .joined = true, .transposed = true}), "lstm");
    EXPECT_EQ(unrolled({.cell = Cell::kGru, .oneProduct = true, .twoBiases = true, .resetAfter = true}), "gru after");
    EXPECT_EQ(unrolled({.steps = 2}), "lstm");
    EXPECT_EQ(unrolled({.peepholes = true}), "lstm peepholes");
    EXPECT_EQ(unrolled({.coupled = true, .clipped = true}), "lstm coupled clipped");
}

TEST(FuseUnrolledRecurrence, WaysToUnroll)
{
    EXPECT_EQ(unrolled({}, {.gathered = true}), "lstm");
    EXPECT_EQ(unrolled({}, {.ownWeights = true}), "lstm");
    EXPECT_EQ(unrolled({}, {.zeros = true}), "lstm");
    EXPECT_EQ(unrolled({}, {.zeros = true, .shared = true}), "lstm");
    EXPECT_EQ(unrolled({}, {.shared = true, .noStack = true}), "lstm");
    EXPECT_EQ(unrolled({.reverse = true, .stackReverse = true}), "lstm reverse");
    EXPECT_EQ(unrolled({.axis = 1, .stackAxis = 1}, {.gathered = true}), "lstm");
}

TEST(FuseUnrolledRecurrence, FirstStepsOfZeros)
{
    EXPECT_EQ(unrolled({.cell = Cell::kRnn}, {.dropped = true}), "rnn");
    EXPECT_EQ(unrolled({.cell = Cell::kRnn, .inFront = true}, {.dropped = true}), "rnn");
    EXPECT_EQ(unrolled({.cell = Cell::kLstm}, {.gathered = true, .dropped = true}), "lstm");
    EXPECT_EQ(unrolled({.cell = Cell::kLstm, .oneProduct = true, .twoBiases = true}, {.dropped = true}), "lstm");
    EXPECT_EQ(unrolled({.coupled = true}, {.noStack = true, .dropped = true}), "lstm coupled");
    EXPECT_EQ(unrolled({.cell = Cell::kGru}, {.dropped = true}), "gru");
    EXPECT_EQ(unrolled({.cell = Cell::kGru, .twoBiases = true, .resetAfter = true}, {.dropped = true}), "gru after");
    EXPECT_EQ(unrolled({.reverse = true, .stackReverse = true}, {.dropped = true}), "lstm reverse");
}

// All nodes but the cell's own inputs are gone.
TEST(FuseUnrolledRecurrence, StacksAreStates)
{
    GraphMaker m = NetMaker({.cell = Cell::kRnn, .inFront = true}).make();
    Unroller(m.g, {}).run();
    checkPass(m.g, fuseUnrolled, true, {.tolerance = 2e-5});
    for (auto const& n : m.g.nodes) {
        EXPECT_TRUE(n->op != &ops::concatenation::def()) << nodesOf(m.g);
        EXPECT_TRUE(n->op != &ops::recurrence::def() || n->inputs[0]->name == "x") << nodesOf(m.g);
    }
}

TEST(FuseUnrolledRecurrence, WhatStaysApart)
{
    for (bool refittable : {false, true}) {
        GraphMaker m = NetMaker({.cell = Cell::kLstm}).make();
        Unroller(m.g, {.gates = !refittable}).run();
        NullLog log;
        passes::PassContext ctx{{}, log};
        recipe::Recipes recipes;
        if (refittable) {
            for (auto const& v : m.g.values())
                if (v->isConstant()) {
                    auto c = std::make_shared<ir::Constant>(*v->constant);
                    c->layer = v->name;
                    c->role = ir::WeightsRole::kConstant;
                    v->constant = c;
                }
            ASSERT_TRUE(recipes.addSources(m.g).ok());
            ctx.recipes = &recipes;
        }
        auto const changed = passes::fuseUnrolledRecurrence(m.g, ctx);
        ASSERT_TRUE(changed.ok());
        // A gate that others read; weights that refit reaches.
        EXPECT_EQ(recurrencesOf(m.g), "") << refittable;
    }
}

TEST(FuseUnrolledRecurrence, RandomSpellings)
{
    for (unsigned seed = 0; seed < 300; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        std::mt19937 rng(seed);
        Spelling s = randomSpelling(rng);
        s.captured = false; // weights that are no constants are not looked for
        s.limit = Spelling::kNone;
        s.steps += 1;
        Unrolling const u = randomUnrolling(rng);
        EXPECT_NE(unrolled(s, u), "");
        if (HasFailure())
            break;
    }
}

} // namespace tw::test
