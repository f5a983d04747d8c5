// SPDX-License-Identifier: Apache-2.0
#include "ops/cumulative_sum/op.h"
#include "ops/elementwise/op.h"
#include "ops/shape/op.h"
#include "ops/slice/op.h"
#include "pass_test.h"

namespace tw::test {

namespace {

using ops::elementwise::Operation;

// y[i] = x[i - by] along `axis`; its size from the shape of the input where that is not known yet.
ir::Value* moved(GraphMaker& m, ir::Value* x, int axis, int64_t by, ops::slice::Mode mode = ops::slice::Mode::kFill)
{
    ops::slice::Attrs a;
    a.start.assign(x->shape.size(), 0);
    a.start[size_t(axis)] = -by;
    a.stride.assign(x->shape.size(), 1);
    a.mode = mode;
    std::vector<ir::Value*> inputs{x};
    if (isStatic(x->shape)) {
        for (ir::Dim const& d : x->shape)
            a.size.push_back(d.value());
    } else {
        inputs.push_back(nullptr);
        inputs.push_back(m.add(ops::shape::def(), {m.g.inputs[0]}, "shape"));
    }
    return m.add(ops::slice::def(), a, inputs, "move" + std::to_string(by));
}

ir::Value* doubled(GraphMaker& m, ir::Value* x, int axis, int64_t by, Operation operation = Operation::kSum)
{
    return m.add(ops::elementwise::def(), ops::elementwise::Attrs(operation), {x, moved(m, x, axis, by)},
                 "sum" + std::to_string(by));
}

ir::Value* summed(GraphMaker& m, ir::Value* x, int axis, int64_t direction, int64_t reach)
{
    for (int64_t by = 1; by < reach; by *= 2)
        x = doubled(m, x, axis, direction * by);
    return x;
}

std::string attributesOf(ir::Node const& n)
{
    auto const& a = n.attrsAs<ops::cumulative_sum::Attrs>();
    return std::to_string(a.axis) + (a.exclusive ? " exclusive" : "") + (a.reverse ? " reverse" : "");
}

// The one node of the result, if there is only one.
std::string fused(DataType type, ir::Shape const& shape, int axis, int64_t direction, bool exclusive, int64_t reach)
{
    GraphMaker m;
    ir::Value* x = m.input("x", shape, type);
    m.output(summed(m, exclusive ? moved(m, x, axis, direction) : x, axis, direction, reach), "y");
    checkPass(m.g, passes::fuseCumulativeSum, true);
    std::string found;
    for (auto const& n : m.g.nodes)
        if (n->op != &ops::shape::def())
            found += n->op == &ops::cumulative_sum::def() ? attributesOf(*n) : n->op->name;
    return found;
}

std::string unchanged(GraphMaker& m, ir::Value* y)
{
    m.output(y, "y");
    checkPass(m.g, passes::fuseCumulativeSum, false);
    return nodesOf(m.g);
}

} // namespace

TEST(FuseCumulativeSum, WindowsThatDoubleBecomeOneSum)
{
    EXPECT_EQ(fused(DataType::kFloat, ir::shapeOf({2, 5}), 1, 1, false, 5), "1");
    EXPECT_EQ(fused(DataType::kInt32, ir::shapeOf({8, 3}), 0, 1, false, 8), "0");
    EXPECT_EQ(fused(DataType::kFloat, ir::shapeOf({2, 2}), 1, -1, false, 2), "1 reverse");
    EXPECT_EQ(fused(DataType::kInt32, ir::shapeOf({2, 9, 3}), 1, 1, true, 9), "1 exclusive");
    EXPECT_EQ(fused(DataType::kInt32, ir::shapeOf({130}), 0, -1, true, 130), "0 exclusive reverse");
}

TEST(FuseCumulativeSum, AxesThatAreNotKnownYet)
{
    EXPECT_EQ(fused(DataType::kInt32, {2, ir::Dim::symbol("N")}, 1, 1, false, INT32_MAX), "1");
    EXPECT_EQ(fused(DataType::kFloat, {ir::Dim::symbol("N"), 6}, 1, 1, true, 6), "1 exclusive");
    GraphMaker m; // a profile's maximum is reach enough
    m.g.symbols["N"] = ir::Symbol{{1, 16}, false};
    ir::Value* x = m.input("x", {ir::Dim::symbol("N")});
    m.output(summed(m, x, 0, 1, 16), "y");
    checkPass(m.g, passes::fuseCumulativeSum, true);
    EXPECT_EQ(m.g.nodes.back()->op, &ops::cumulative_sum::def());
}

TEST(FuseCumulativeSum, KeepsLayersAndName)
{
    GraphMaker m;
    m.output(summed(m, m.input("x", ir::shapeOf({4})), 0, 1, 4), "y");
    checkPass(m.g, passes::fuseCumulativeSum, true);
    ASSERT_EQ(nodesOf(m.g), "move1 + sum1 + move2 + sum2:cumulative_sum");
    EXPECT_EQ(m.g.nodes[0]->layers, (std::vector<std::string>{"move1", "sum1", "move2", "sum2"}));
}

TEST(FuseCumulativeSum, LeavesOthersAlone)
{
    {
        GraphMaker m; // too narrow
        unchanged(m, summed(m, m.input("x", ir::shapeOf({2, 5})), 1, 1, 4));
    }
    {
        GraphMaker m; // the length may be more than the windows reach
        unchanged(m, summed(m, m.input("x", {ir::Dim::symbol("N")}), 0, 1, 1 << 20));
    }
    {
        GraphMaker m; // 1 and 3
        unchanged(m, doubled(m, doubled(m, m.input("x", ir::shapeOf({4})), 0, 1), 0, 3));
    }
    {
        GraphMaker m; // to and fro
        unchanged(m, doubled(m, doubled(m, m.input("x", ir::shapeOf({4})), 0, 1), 0, -2));
    }
    {
        GraphMaker m; // two axes
        unchanged(m, doubled(m, doubled(m, m.input("x", ir::shapeOf({4, 4})), 0, 1), 1, 2));
    }
    {
        GraphMaker m; // products
        unchanged(m, doubled(m, doubled(m, m.input("x", ir::shapeOf({4})), 0, 1, Operation::kProd), 0, 2));
    }
    {
        GraphMaker m; // what comes in from the side is no 0
        ir::Value* x = m.input("x", ir::shapeOf({2}));
        unchanged(m, m.add(ops::elementwise::def(), ops::elementwise::Attrs(Operation::kSum),
                           {x, moved(m, x, 0, 1, ops::slice::Mode::kClamp)}, "sum"));
    }
    {
        GraphMaker m; // 8 bits saturate on the way
        unchanged(m, summed(m, m.input("x", ir::shapeOf({4}), DataType::kInt8), 0, 1, 4));
    }
    {
        GraphMaker m; // somebody reads a part
        ir::Value* half = doubled(m, m.input("x", ir::shapeOf({4})), 0, 1);
        m.output(half, "half");
        unchanged(m, doubled(m, half, 0, 2));
    }
}

} // namespace tw::test
