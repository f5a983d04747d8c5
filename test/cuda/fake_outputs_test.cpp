// SPDX-License-Identifier: Apache-2.0
// Where inputs and outputs of an engine for a GPU lie: where the client is told, whatever shapes are made of.
#include <gtest/gtest.h>

#include "builder/lowering.h"
#include "cuda/fake_target.h"
#include "ir/shape_values.h"
#include "ir/text.h"
#include "tactic/registry.h"

namespace tw::test {

namespace {

// `text`, ready for tuning, for outputs and inputs that are all data.
Result<std::unique_ptr<ir::Graph>> lowered(std::string const& text)
{
    plan::Contents contents;
    TW_ASSIGN(contents.graph, ir::parse(text, ops::find));
    for (ir::Value const* v : contents.graph->inputs)
        contents.io.push_back(plan::IoTensor{v->name, true, false, true, false, {}});
    for (ir::Value const* v : contents.graph->outputs)
        contents.io.push_back(plan::IoTensor{v->name, false, false, true, false, {}});
    builder::Options options;
    TW_ASSIGN(options.cuda, fakeTarget());
    NullLog quiet;
    TW_TRY(builder::lower(contents, options, quiet));
    return std::move(contents.graph);
}

} // namespace

TEST(FakeOutputs, AShapeThatIsDataIsCopiedToTheGpu)
{
    auto g = lowered(R"(graph "g" imported { symbol N 1..8 input %0 "x" f32[N,4] const %1 "end" i32[2] = [1, 2]
        node 0 "shape" shape(%0) -> %2 "s" i32[2]
        node 1 "sub" elementwise(%2, %1) {operation = 4} -> %3 "start" i32[2]
        node 2 "slice" slice(%0, %3) {size = [1, 2], stride = [1, 1]} -> %4 "y" f32[1,2]
        output %3 output %4 })");
    ASSERT_TRUE(g.ok()) << g.error().message;
    ASSERT_EQ((*g)->outputs.size(), 2U);
    ir::Value const& start = *(*g)->outputs[0];
    EXPECT_EQ(start.name, "start");
    EXPECT_FALSE(start.host);
    ASSERT_NE(start.producer, nullptr);
    EXPECT_STREQ(start.producer->op->name, "identity");
    EXPECT_TRUE(start.producer->inputs[0]->host);
    EXPECT_FALSE(ir::hostValues(**g).contains(&start));
}

// A number that ends a loop, and no shape, when the client gives it: so it stays where the client gives it.
TEST(FakeOutputs, ContentsOfDataAreForgotten)
{
    auto g = ir::parse(R"(graph "g" imported { symbol n 0..9 input %0 "x" f32[2] input %1 "n" i32[] content [n]
        const %2 "zero" i32[] = [0]
        node 0 "loop" loop(%2, %0, _, %1) {carried = 2}
          region graph "condition" imported { symbol n 0..9 input %0 "i" i32[] input %1 "x" f32[2] input %2 "n" i32[] content [n]
            node 0 "less" elementwise(%0, %2) {operation = 13} -> %3 "go_on" b[] output %3 }
          region graph "body" imported { symbol n 0..9 input %0 "i" i32[] input %1 "x" f32[2] input %2 "n" i32[] content [n]
            const %3 "one" i32[] = [1] node 0 "next" elementwise(%0, %3) {operation = 0} -> %4 "next" i32[]
            node 1 "more" elementwise(%1, %1) {operation = 0} -> %5 "more" f32[2] output %4 output %5 }
        -> %3 "last" i32[], %4 "y" f32[2] output %4 })",
                       ops::find);
    ASSERT_TRUE(g.ok()) << g.error().message;
    ASSERT_TRUE(ir::forgetContentsOfData(**g).ok());
    EXPECT_FALSE((*g)->inputs[1]->content);
    for (auto const& region : (*g)->nodes[0]->regions)
        EXPECT_FALSE(region->inputs[2]->content);
}

} // namespace tw::test
