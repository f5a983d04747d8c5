// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "interp/interp.h"
#include "ir/text.h"
#include "tactic/registry.h"

namespace tw::ops {

TEST(Loop, EndlessLoopIsAnError)
{
    auto g = ir::parse(R"(graph "g" imported {
      input %0 "x" f32[2]
      node 0 "forever" loop(%0, _) {carried = 1}
        region graph "condition" imported { input %0 "x" f32[2] const %1 "yes" b[] = [1] output %1 }
        region graph "body" imported { input %0 "x" f32[2] output %0 }
        -> %1 "y" f32[2]
      output %1 })",
                       find);
    ASSERT_TRUE(g.ok()) << g.error().message;
    interp::Options options;
    options.maxTrips = 100;
    Tensor x(DataType::kFloat, {2});
    auto r = interp::run(**g, {x.ref()}, options);
    ASSERT_FALSE(r.ok());
    EXPECT_NE(r.error().message.find("did not end after 100"), std::string::npos) << r.error().message;
}

TEST(Loop, CarriedValuesKeepTheirShape)
{
    auto g = ir::parse(R"(graph "g" imported {
      input %0 "x" f32[2]
      node 0 "grow" loop(%0, _) {carried = 1}
        region graph "condition" imported { input %0 "x" f32[2] const %1 "yes" b[] = [1] output %1 }
        region graph "body" imported { input %0 "x" f32[2]
          node 0 "more" slice(%0) {start = [0], size = [3], stride = [1], mode = 2} -> %1 "y" f32[3] output %1 }
        -> %1 "y" f32[2]
      output %1 })",
                       find);
    ASSERT_FALSE(g.ok());
    EXPECT_NE(g.error().message.find("must not change"), std::string::npos) << g.error().message;
}

TEST(Loop, SymbolsOfRegionsStandForTheCallersSizes)
{
    auto g = ir::parse(R"(graph "g" imported {
      symbol N 0..9
      input %0 "x" f32[N,2]
      input %1 "yes" b[]
      node 0 "pick" conditional(%1, %0)
        region graph "then" imported { input %0 "x" f32[M,2] output %0 }
        region graph "else" imported { symbol M 0..9 input %0 "x" f32[M,2]
          node 0 "flip" shuffle(%0) {first_transpose = [1, 0]} -> %1 "t" f32[2,M]
          node 1 "flat" shuffle(%1) {has_reshape = 1, reshape = [-1, 2]} -> %2 "y" f32[M,2] output %2 }
        -> %2 "y" f32[N,2]
      output %2 })",
                       find);
    ASSERT_TRUE(g.ok()) << g.error().message;
    EXPECT_EQ((*g)->outputs[0]->shape[0], ir::Dim::symbol("N"));
    Tensor x(DataType::kFloat, {3, 2}), yes(DataType::kBool, {});
    for (int i = 0; i < 6; ++i)
        x.ref().set(i, i);
    auto r = interp::run(**g, {x.ref(), yes.ref()});
    ASSERT_TRUE(r.ok()) << r.error().message;
    EXPECT_EQ((*r)[0].dims(), (Extents{3, 2}));
    EXPECT_EQ((*r)[0].ref().get(1), 2) << "0 2 4 1 3 5";
}

} // namespace tw::ops
