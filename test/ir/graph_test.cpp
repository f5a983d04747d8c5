// SPDX-License-Identifier: Apache-2.0
#include "ir/graph.h"

#include <gtest/gtest.h>

#include "ir/op_def.h"
#include "ir/text.h"
#include "ops/shuffle/op.h"
#include "tactic/registry.h"

namespace tw::ir {

namespace {

std::unique_ptr<AttrsBase> attrsOf(char const* op)
{
    return ops::find(op)->makeAttrs();
}

// x [N,3] -> shape -> s; x -> non_zero -> z [2,$k]
struct Small
{
    Graph g;
    Value* x;
    Node *shape, *nonZero;
    Small()
    {
        g.name = "small";
        g.symbols["N"] = Symbol{{1, 8}, false};
        x = g.addInput("x", DataType::kFloat, {Dim::symbol("N"), 3});
        shape = *g.addNode(*ops::find("shape"), attrsOf("shape"), {x}, "shape");
        nonZero = *g.addNode(*ops::find("non_zero"), attrsOf("non_zero"), {x}, "non_zero");
        g.outputs = {shape->outputs[0], nonZero->outputs[0]};
    }
};

} // namespace

TEST(Graph, AddNodeInfers)
{
    Small s;
    EXPECT_EQ(str(s.shape->outputs[0]->shape), "[2]");
    ASSERT_TRUE(s.shape->outputs[0]->content);
    EXPECT_EQ((*s.shape->outputs[0]->content)[0], Dim::symbol("N"));
    // The node binds a symbol, up to the input's largest volume.
    Dim const n = s.nonZero->outputs[0]->shape[1];
    ASSERT_TRUE(s.g.symbols.contains(n.str()));
    EXPECT_EQ(s.g.symbols.at(n.str()), (Symbol{{0, 24}, true}));
    EXPECT_TRUE(verify(s.g).ok());
}

TEST(Graph, AddNodeErrorsLeaveTheGraphUnchanged)
{
    Small s;
    std::string const before = print(s.g);
    auto fails = [&](char const* op, std::vector<Value*> inputs, std::string const& message) {
        auto n = s.g.addNode(*ops::find(op), attrsOf(op), inputs, "bad");
        ASSERT_FALSE(n.ok()) << op;
        EXPECT_NE(n.error().message.find(message), std::string::npos) << n.error().message;
        EXPECT_NE(n.error().message.find("'bad'"), std::string::npos) << n.error().message;
        EXPECT_EQ(print(s.g), before);
    };
    fails("shape", {}, "0 inputs given");
    fails("shape", {s.x, s.x}, "2 inputs given");
    fails("shape", {nullptr}, "required input 0 is missing");
    fails("gather", {s.x, s.x}, "must be i32");
    fails("conditional", {s.x}, "one bool");
    auto shuffle = std::make_unique<ops::shuffle::Attrs>();
    shuffle->reshape = {70000, 70000};
    shuffle->hasReshape = true;
    auto n = s.g.addNode(*ops::find("shuffle"), std::move(shuffle), {s.x}, "huge");
    EXPECT_FALSE(n.ok()) << "2^31 elements or more";
    EXPECT_EQ(print(s.g), before);
}

TEST(Graph, RollBackTakesNodesAndValuesAway)
{
    Small s;
    std::string const before = print(s.g);
    Graph::Mark const mark = s.g.mark();
    Value* y = s.g.addInput("y", DataType::kFloat, {2});
    ASSERT_TRUE(s.g.addNode(*ops::find("shape"), attrsOf("shape"), {y}, "second").ok());
    EXPECT_NE(print(s.g), before);
    s.g.rollBack(mark);
    EXPECT_EQ(print(s.g), before);
    EXPECT_EQ(s.g.inputs.size(), 1u);
    EXPECT_TRUE(verify(s.g).ok());
}

TEST(Graph, CloneIsIndependent)
{
    Small s;
    auto copy = s.g.clone();
    EXPECT_EQ(print(*copy), print(s.g));
    EXPECT_TRUE(verify(*copy).ok());
    std::string const before = print(*copy);
    s.g.inputs[0]->name = "renamed";
    s.g.outputs.clear();
    s.g.eraseNode(s.nonZero);
    EXPECT_EQ(print(*copy), before);
    // Nodes made later do not take numbers that symbols are named after.
    Node* n = *copy->addNode(*ops::find("non_zero"), attrsOf("non_zero"), {copy->inputs[0]}, "third");
    EXPECT_NE(n->outputs[0]->shape[1], copy->nodes[1]->outputs[0]->shape[1]);
}

TEST(Graph, ReplaceAndErase)
{
    Small s;
    Value* c = s.g.addConstant("c", DataType::kInt32, {2}, std::vector<int32_t>{4, 3}.data());
    EXPECT_EQ(s.g.useCount(s.shape->outputs[0]), 1);
    s.g.replaceAllUses(s.shape->outputs[0], c);
    EXPECT_EQ(s.g.useCount(s.shape->outputs[0]), 0);
    EXPECT_TRUE(s.g.isOutput(c));
    size_t const values = s.g.values().size();
    s.g.eraseNode(s.shape);
    EXPECT_EQ(s.g.values().size(), values - 1);
    EXPECT_EQ(s.g.positionOf(s.nonZero), 0);
    s.g.replaceAllUses(c, s.nonZero->outputs[0]);
    s.g.eraseUnusedValues();
    EXPECT_EQ(s.g.values().size(), values - 2);
    EXPECT_TRUE(verify(s.g).ok());
}

TEST(Graph, InferAllFollowsNewShapes)
{
    Small s;
    s.g.inputs[0]->shape = {5, 3};
    ASSERT_TRUE(s.g.inferAll().ok());
    EXPECT_EQ((*s.shape->outputs[0]->content)[0], Dim(5));
    EXPECT_EQ(s.g.symbols.at(s.nonZero->outputs[0]->shape[1].str()).range.hi, 15);
}

TEST(Graph, InsertsAtAPosition)
{
    Small s;
    Node* n = *s.g.addNode(*ops::find("shape"), attrsOf("shape"), {s.x}, "first", {}, 0);
    EXPECT_EQ(s.g.positionOf(n), 0);
    EXPECT_EQ(s.g.positionOf(s.nonZero), 2);
    EXPECT_TRUE(verify(s.g).ok());
}

} // namespace tw::ir
