// SPDX-License-Identifier: Apache-2.0
#include "nodes.h"
#include "ops/concatenation/op.h"
#include "ops/padding/op.h"
#include "ops/pooling/op.h"
#include "ops/resize/op.h"
#include "ops/scale/op.h"
#include "ops/slice/op.h"

namespace tw::test {

namespace {

ops::shuffle::Attrs transpose(std::vector<int64_t> p)
{
    ops::shuffle::Attrs a;
    a.firstTranspose = std::move(p);
    return a;
}

ops::shuffle::Attrs reshape(std::vector<int64_t> dims)
{
    ops::shuffle::Attrs a;
    a.reshape = std::move(dims);
    a.hasReshape = true;
    return a;
}

ir::Value* shuffle(GraphMaker& m, ir::Value* x, ops::shuffle::Attrs a, char const* name)
{
    return m.add(ops::shuffle::def(), std::move(a), {x}, name);
}

} // namespace

TEST(RemoveIdentities, EveryKind)
{
    GraphMaker m;
    ir::Value* x = activation(m, m.input("x", ir::shapeOf({1, 2, 3, 4})), "first");
    ops::slice::Attrs all;
    all.start = {0, 0, 0, 0};
    all.size = {1, 2, 3, 4};
    all.stride = {1, 1, 1, 1};
    ops::resize::Attrs same;
    same.scales = {1, 1, 1, 1};
    x = m.add(ops::identity::def(), ops::identity::Attrs(), {x}, "identity");
    x = shuffle(m, x, transpose({0, 1, 2, 3}), "shuffle");
    x = shuffle(m, x, reshape({0, 2, -1, 4}), "reshape");
    x = m.add(ops::slice::def(), all, {x}, "slice");
    x = m.add(ops::resize::def(), same, {x}, "resize");
    x = m.add(ops::pooling::def(), ops::pooling::Attrs::plain(ops::pooling::Kind::kMax, {1, 1}), {x}, "pool");
    x = m.add(ops::padding::def(), ops::padding::Attrs{}, {x}, "pad");
    x = m.add(ops::reduce::def(), ops::reduce::Attrs{}, {x}, "reduce");
    x = m.add(ops::concatenation::def(), ops::concatenation::Attrs(1), {x}, "concat");
    x = m.add(ops::scale::def(), ops::scale::Attrs(ops::scale::Mode::kChannel),
              {x, m.constant("ones", {2}, {1, 1}), m.constant("zeros", {2}, {0, 0})}, "scale");
    ir::Value* zero = m.constant("zero", {1, 1, 1, 1}, {0});
    ir::Value* one = m.constant("one", {1, 1, 1, 1}, {1});
    x = m.add(ops::elementwise::def(), ops::elementwise::Attrs(Operation::kSum), {zero, x}, "sum");
    x = m.add(ops::elementwise::def(), ops::elementwise::Attrs(Operation::kDiv), {x, one}, "div");
    x = activation(m, x, "second");
    m.output(x, "y");
    checkPass(m.g, passes::removeIdentities, true);
    EXPECT_EQ(nodesOf(m.g), "first + second:activation");
}

TEST(RemoveIdentities, WhatChangesSomethingStays)
{
    GraphMaker m;
    ir::Value* x = m.input("x", ir::shapeOf({1, 4, 4}));
    ops::resize::Attrs sameSize; // 4.8 are still 4, at other places
    sameSize.scales = {1, 1, double(1.2f)};
    sameSize.mode = ops::resize::Mode::kLinear;
    x = m.add(ops::resize::def(), sameSize, {x}, "resize");
    x = shuffle(m, x, transpose({0, 2, 1}), "transpose");
    x = m.add(ops::identity::def(), ops::identity::Attrs(DataType::kHalf), {x}, "cast");
    ir::Value* one = m.constant("one", {1, 1, 1}, {1}, DataType::kHalf);
    x = m.add(ops::elementwise::def(), ops::elementwise::Attrs(Operation::kDiv), {one, x}, "reciprocal");
    ir::Value* zero = m.constant("zero", {3, 1, 1}, {0, 0, 0}, DataType::kHalf);
    x = m.add(ops::elementwise::def(), ops::elementwise::Attrs(Operation::kSum), {x, zero}, "stretched");
    m.output(x, "y");
    checkPass(m.g, passes::removeIdentities, false);
}

TEST(RemoveIdentities, OutputsOfInputsAndConstantsKeepTheirs)
{
    GraphMaker m;
    m.output(m.add(ops::identity::def(), ops::identity::Attrs(), {m.input("x", ir::shapeOf({2}))}, "a"), "y");
    m.output(m.add(ops::identity::def(), ops::identity::Attrs(), {m.constant("c", {2})}, "b"), "z");
    ir::Value* r = activation(m, m.g.inputs[0], "r");
    m.output(r, "w");
    m.output(m.add(ops::identity::def(), ops::identity::Attrs(), {r}, "d"), "w2"); // two names need two values
    checkPass(m.g, passes::removeIdentities, false);
}

TEST(RemoveIdentities, ShufflesJoin)
{
    ops::shuffle::Attrs heads = reshape({2, 3, 2, 2});
    heads.secondTranspose = {0, 2, 1, 3};
    struct Case
    {
        char const* name;
        ops::shuffle::Attrs first, second;
        size_t nodes;
    };
    Case const cases[] = {
        {"back and forth", transpose({0, 2, 1}), transpose({0, 2, 1}), 1},
        {"transposes", transpose({1, 2, 0}), transpose({1, 0, 2}), 2},
        {"reshapes", reshape({6, 4}), reshape({3, 8}), 2},
        {"transpose, reshape", transpose({2, 1, 0}), reshape({4, -1}), 2},
        {"reshape, transpose", reshape({4, 6}), transpose({1, 0}), 2},
        {"split into heads, merged", heads, reshape({2, 2, -1}), 3},
    };
    for (auto const& c : cases) {
        SCOPED_TRACE(c.name);
        GraphMaker m;
        ir::Value* x = activation(m, m.input("x", ir::shapeOf({2, 3, 4})), "r");
        m.output(shuffle(m, shuffle(m, x, c.first, "s1"), c.second, "s2"), "y");
        checkPass(m.g, passes::removeIdentities, c.nodes < 3);
        EXPECT_EQ(m.g.nodes.size(), c.nodes);
        if (c.nodes == 2) {
            EXPECT_EQ(m.g.nodes[1]->name, "s1 + s2");
            EXPECT_EQ(m.g.nodes[1]->layers, (std::vector<std::string>{"s1", "s2"}));
        }
    }
}

TEST(RemoveIdentities, ShufflesOfDynamicShapeJoin)
{
    GraphMaker m;
    m.g.symbols["N"].range = {1, 16};
    ir::Value* x = m.input("x", {ir::Dim::symbol("N"), 3, 4});
    m.output(shuffle(m, shuffle(m, x, reshape({-1, 4}), "s1"), reshape({-1, 3, 2, 2}), "s2"), "y");
    checkPass(m.g, passes::removeIdentities, true);
    EXPECT_EQ(nodesOf(m.g), "s1 + s2:shuffle");
}

} // namespace tw::test
