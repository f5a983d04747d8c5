// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "ir/graph.h"
#include "ir/op_def.h"
#include "ir/text.h"
#include "tactic/registry.h"

namespace tw::ir {

namespace {

constexpr char kGood[] = R"(graph "g" imported {
  input %0 "x" f32[2,3]
  const %1 "w" f32[3,2] = [1, 2, 3, 4, 5, 6]
  node 0 "mul" matrix_multiply(%0, %1) -> %2 "y" f32[2,2]
  node 1 "shape" shape(%2) -> %3 "s" i32[2]
  output %3
})";

std::unique_ptr<Graph> good()
{
    auto g = parse(kGood, ops::find);
    EXPECT_TRUE(g.ok()) << g.error().message;
    return std::move(*g);
}

void expectBad(Graph const& g, std::string const& message)
{
    auto v = verify(g);
    ASSERT_FALSE(v.ok()) << "want: " << message;
    EXPECT_NE(v.error().message.find(message), std::string::npos) << v.error().message;
}

} // namespace

TEST(Verify, AcceptsTheGraph)
{
    EXPECT_TRUE(verify(*good()).ok());
}

TEST(Verify, OrderOfNodes)
{
    auto g = good();
    std::swap(g->nodes[0], g->nodes[1]);
    expectBad(*g, "before it is made");
}

TEST(Verify, ForeignValues)
{
    auto g = good(), other = good();
    g->nodes[1]->inputs[0] = other->inputs[0];
    expectBad(*g, "'shape' uses a value before it is made");
    g = good();
    g->inputs[0] = other->inputs[0];
    expectBad(*g, "no input");
    g = good();
    g->outputs[0] = other->outputs[0];
    expectBad(*g, "that nothing makes");
    g = good();
    g->outputs[0] = nullptr;
    EXPECT_FALSE(verify(*g).ok());
}

TEST(Verify, InputsThatAreNone)
{
    auto g = good();
    g->inputs.push_back(g->nodes[0]->outputs[0]);
    expectBad(*g, "no input");
    g = good();
    g->inputs.push_back(g->nodes[0]->inputs[1]);
    expectBad(*g, "no input");
}

TEST(Verify, Arity)
{
    auto g = good();
    g->nodes[1]->inputs.push_back(g->inputs[0]);
    expectBad(*g, "has 2 inputs");
    g = good();
    g->nodes[0]->inputs[1] = nullptr;
    expectBad(*g, "misses input 1");
    g = good();
    g->nodes[1]->regions.push_back(std::make_unique<Graph>());
    expectBad(*g, "has 1 regions");
}

TEST(Verify, TypesAndShapesAsInferred)
{
    auto g = good();
    g->nodes[0]->outputs[0]->type = DataType::kHalf;
    expectBad(*g, "inference gives");
    g = good();
    g->nodes[0]->outputs[0]->shape = {2, 5};
    expectBad(*g, "inference gives");
    g = good();
    g->inputs[0]->shape = {2, 4};
    expectBad(*g, "cannot be multiplied");
}

TEST(Verify, Constants)
{
    auto g = good();
    g->nodes[0]->inputs[1]->shape = {3, 200};
    expectBad(*g, "bytes, it has fewer");
    g = good();
    g->nodes[0]->inputs[1]->shape = {3, Dim::symbol("N")};
    expectBad(*g, "no static shape");
    g = good();
    auto empty = std::make_shared<Constant>();
    g->nodes[0]->inputs[1]->constant = empty;
    expectBad(*g, "bytes, it has fewer");
}

TEST(Verify, OwnedOutputs)
{
    auto g = good();
    g->nodes[1]->outputs[0]->producer = g->nodes[0].get();
    expectBad(*g, "does not own");
    g = good();
    g->nodes[0]->op = nullptr;
    expectBad(*g, "has no op");
}

TEST(Verify, BodyHasTheNodesInputsAndOutputs)
{
    auto g = good();
    g->nodes[0]->body = good();
    expectBad(*g, "the body of node 'mul'");
}

TEST(Verify, Regions)
{
    auto g = parse(R"(graph "g" imported {
      const %0 "c" b[] = [1]
      node 0 "choose" conditional(%0)
        region graph "then" imported { const %0 "a" f32[] = [1] output %0 }
        region graph "else" imported { const %0 "a" f32[] = [2] output %0 }
        -> %1 "y" f32[]
      output %1 })",
                   ops::find);
    ASSERT_TRUE(g.ok()) << g.error().message;
    Graph& region = *(*g)->nodes[0]->regions[1];
    region.outputs[0]->constant = std::make_shared<Constant>();
    expectBad(**g, "graph 'else': constant 'a'");
    (*g)->nodes[0]->regions.pop_back();
    expectBad(**g, "has 1 regions");
}

} // namespace tw::ir
