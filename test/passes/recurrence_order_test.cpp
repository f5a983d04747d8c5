// SPDX-License-Identifier: Apache-2.0
// Recurrent layers between transpositions, as importers write them.
#include "ops/activation/op.h"
#include "ops/recurrence/op.h"
#include "ops/shuffle/op.h"
#include "pass_test.h"

namespace tw::test {

namespace {

using namespace ops::recurrence;

constexpr int64_t kInputs = 5, kUnits = 4;

struct Network
{
    Cell cell = Cell::kLstm;
    Direction direction = Direction::kForward;
    bool batchFirst = true; // the layer is; x is not
    bool states = false, lengths = false;
    bool inOnnxOrder = true; // y
    bool isReadAsItIs = false;
    bool dynamic = false;
    bool transposesX = true;
};

ir::Value* transposed(GraphMaker& m, ir::Value* v, std::vector<int64_t> permutation, ir::Shape const& between = {})
{
    ops::shuffle::Attrs a;
    if (between.empty()) {
        a.firstTranspose = std::move(permutation);
    } else {
        a.hasReshape = true;
        for (ir::Dim const& d : between)
            a.reshape.push_back(d.isConst() ? d.value() : a.reshape.empty() ? 0 : -1);
        a.secondTranspose = std::move(permutation);
    }
    return m.add(ops::shuffle::def(), a, {v}, "shuffle");
}

GraphMaker make(Network const& n)
{
    GraphMaker m;
    Attrs a;
    a.cell = n.cell;
    a.direction = n.direction;
    a.hidden = kUnits;
    a.batchFirst = n.batchFirst;
    int64_t const d = directionsOf(a), g = gatesOf(a.cell) * kUnits;
    ir::Dim const steps = n.dynamic ? ir::Dim::symbol("T") : ir::Dim(6);
    ir::Dim const rows = 3;
    ir::Dim const first = n.batchFirst == n.transposesX ? steps : rows, second = first == steps ? rows : steps;
    ir::Value* x = m.input("x", {first, second, kInputs});
    std::vector<ir::Value*> in{n.transposesX ? transposed(m, x, {1, 0, 2}) : x, m.constant("r", {d, g, kUnits}),
                               m.constant("w", {d, g, kInputs}), m.constant("b", {d, 2 * g})};
    in.resize(n.cell == Cell::kLstm ? size_t(kC0 + 1) : size_t(kH0 + 1));
    if (n.lengths)
        in[kLengths] = m.i32("lengths", {2, 3, 1});
    for (size_t i = kH0; n.states && i < in.size(); ++i) {
        ir::Value* const state =
            m.input("s" + std::to_string(i), n.batchFirst ? ir::shapeOf({d, 3, kUnits}) : ir::shapeOf({3, d, kUnits}));
        in[i] = transposed(m, state, {1, 0, 2});
    }
    ir::Value* const y = m.add(ops::recurrence::def(), a, in, "cell");
    auto const outputs = y->producer->outputs;
    if (n.isReadAsItIs)
        m.output(m.add(ops::activation::def(), ops::activation::Attrs(ops::activation::Kind::kRelu), {y}, "relu"),
                 "relu");
    m.output(n.inOnnxOrder ? transposed(m, y, {1, 2, 0, 3}, {y->shape[0], y->shape[1], d, kUnits})
                           : transposed(m, y, {1, 0, 2}),
             "y");
    for (size_t i = 1; i < outputs.size(); ++i)
        m.output(transposed(m, outputs[i], {1, 0, 2}), "state" + std::to_string(i));
    return m;
}

Result<bool> fuseAndJoin(ir::Graph& g, passes::PassContext const& ctx)
{
    bool any = false;
    for (bool changed = true; changed; any = any || changed) {
        TW_ASSIGN(bool const fused, passes::fuseRecurrence(g, ctx));
        TW_ASSIGN(bool const joined, passes::removeIdentities(g, ctx));
        TW_ASSIGN(bool const removed, passes::removeDead(g, ctx));
        changed = fused || joined || removed;
    }
    return any;
}

// What is left: "recurrence reshape".
std::string left(Network const& n)
{
    GraphMaker m = make(n);
    PassCheck check;
    if (n.dynamic)
        check.sizes = {{"T", 6}};
    checkPass(m.g, fuseAndJoin, true, check);
    std::string out;
    for (auto const& node : m.g.nodes) {
        bool const isShuffle = node->op == &ops::shuffle::def();
        bool const moves = isShuffle && (!node->attrsAs<ops::shuffle::Attrs>().firstTranspose.empty() ||
                                         !node->attrsAs<ops::shuffle::Attrs>().secondTranspose.empty());
        out += (out.empty() ? "" : " ") + std::string(moves ? "transpose" : isShuffle ? "reshape" : node->op->name);
    }
    return out;
}

} // namespace

TEST(RecurrenceOrder, TranspositionsOnBothSidesGo)
{
    EXPECT_EQ(left({.inOnnxOrder = false}), "recurrence");
    EXPECT_EQ(left({.states = true, .lengths = true, .inOnnxOrder = false}), "recurrence");
    EXPECT_EQ(left({.cell = Cell::kGru, .direction = Direction::kReverse, .states = true, .inOnnxOrder = false}),
              "recurrence");
    EXPECT_EQ(left({.direction = Direction::kBoth, .states = true, .inOnnxOrder = false}), "recurrence");
    EXPECT_EQ(left({.batchFirst = false, .states = true, .inOnnxOrder = false}), "recurrence");
    EXPECT_EQ(left({.inOnnxOrder = false, .dynamic = true}), "recurrence");
}

TEST(RecurrenceOrder, OneDirectionInOnnxOrderIsAReshape)
{
    EXPECT_EQ(left({.states = true}), "recurrence reshape");
    EXPECT_EQ(left({.dynamic = true}), "recurrence reshape");
    EXPECT_EQ(left({.direction = Direction::kBoth}), "recurrence transpose");
}

TEST(RecurrenceOrder, StaysWhereTranspositionsWouldOnlyMove)
{
    for (Network const& n : {Network{.isReadAsItIs = true}, Network{.transposesX = false}}) {
        GraphMaker m = make(n);
        checkPass(m.g, passes::fuseRecurrence, false);
    }
}

} // namespace tw::test
