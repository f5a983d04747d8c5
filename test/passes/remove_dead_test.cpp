// SPDX-License-Identifier: Apache-2.0
#include "nodes.h"
#include "ops/loop/op.h"
#include "ops/topk/op.h"

namespace tw::test {

namespace {

std::vector<std::unique_ptr<ir::Graph>> regions(GraphMaker& a, GraphMaker& b)
{
    std::vector<std::unique_ptr<ir::Graph>> r;
    r.push_back(a.take());
    r.push_back(b.take());
    return r;
}

} // namespace

TEST(RemoveDead, WhatNoOutputNeeds)
{
    GraphMaker m;
    ir::Value* x = m.input("x", ir::shapeOf({2, 3}));
    ir::Value* a = activation(m, x, "a");
    ir::Value* b = activation(m, a, "b");
    activation(m, activation(m, b, "dead1"), "dead2");
    m.constant("unused", {4});
    m.output(b, "y");
    checkPass(m.g, passes::removeDead, true);
    EXPECT_EQ(nodesOf(m.g), "a:activation, b:activation");
    EXPECT_EQ(m.g.values().size(), 3u);
    checkPass(m.g, passes::removeDead, false);
}

TEST(RemoveDead, OneLiveOutputKeepsTheNode)
{
    GraphMaker m;
    ops::topk::Attrs top;
    top.k = 2;
    ir::Value* x = m.input("x", ir::shapeOf({8}));
    ir::Node* n = m.addNode(ops::topk::def(), std::make_unique<ops::topk::Attrs>(top), {x}, "top");
    m.output(n->outputs[1], "indices");
    checkPass(m.g, passes::removeDead, false);
    EXPECT_EQ(n->outputs.size(), 2u);
}

TEST(RemoveDead, InputsStay)
{
    GraphMaker m;
    m.input("unused", ir::shapeOf({2}));
    m.output(activation(m, m.input("x", ir::shapeOf({2})), "a"), "y");
    checkPass(m.g, passes::removeDead, false);
    EXPECT_EQ(m.g.inputs.size(), 2u);
}

TEST(RemoveDead, OutputsAndCapturesOfConditionals)
{
    GraphMaker outer;
    GraphMaker branch[2];
    for (int r = 0; r < 2; ++r) {
        ir::Value* p = branch[r].input("p", ir::shapeOf({3}));
        ir::Value* q = branch[r].input("q", ir::shapeOf({3}));
        branch[r].output(activation(branch[r], p, "of_p", r == 0 ? Kind::kRelu : Kind::kTanh));
        branch[r].output(activation(branch[r], q, "of_q"));
    }
    ir::Value* c = outer.input("c", {}, DataType::kBool);
    ir::Value* p = outer.input("p", ir::shapeOf({3}));
    ir::Value* q = activation(outer, outer.input("q", ir::shapeOf({3})), "before");
    ir::Node* n = outer.addNode(ops::conditional::def(), std::make_unique<ir::NoAttrs>(), {c, p, q}, "if",
                                regions(branch[0], branch[1]));
    outer.output(n->outputs[0], "y");
    NullLog log;
    auto ran = passes::run(outer.g, {{}, log}, {});
    ASSERT_TRUE(ran.ok()) << ran.error().message;
    EXPECT_EQ(nodesOf(outer.g), "if:conditional");
    EXPECT_EQ(n->outputs.size(), 1u);
    EXPECT_EQ(n->inputs.size(), 2u);
    EXPECT_EQ(nodesOf(*n->regions[1]), "of_p:activation");
    checkPass(outer.g, passes::removeDead, false);
}

TEST(RemoveDead, UnusedCaptureOfALoop)
{
    GraphMaker condition, body, outer;
    ir::Value* x = condition.input("x", {}, DataType::kBool);
    condition.input("unused", ir::shapeOf({3}));
    condition.output(x);
    ir::Value* going = body.input("x", {}, DataType::kBool);
    body.input("unused", ir::shapeOf({3}));
    body.output(body.add(ops::unary::def(), ops::unary::Attrs(ops::unary::Operation::kNot), {going}, "stop"));
    ops::loop::Attrs a;
    a.carried = 1;
    ir::Value* start = outer.input("start", {}, DataType::kBool);
    ir::Value* extra = activation(outer, outer.input("extra", ir::shapeOf({3})), "before");
    ir::Node* n = outer.addNode(ops::loop::def(), std::make_unique<ops::loop::Attrs>(a), {start, nullptr, extra},
                                "loop", regions(condition, body));
    outer.output(n->outputs[0], "y");
    NullLog log;
    auto ran = passes::run(outer.g, {{}, log}, {});
    ASSERT_TRUE(ran.ok()) << ran.error().message;
    EXPECT_EQ(nodesOf(outer.g), "loop:loop");
    EXPECT_EQ(n->inputs.size(), 2u);
    checkPass(outer.g, passes::removeDead, false);
}

} // namespace tw::test
